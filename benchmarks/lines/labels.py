"""How many labels a promise needs, and what it gives away: ours, the theoretical least, bounds, and peers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.bounds import Budget, approximate, bentkus, bounded, exact_budget, exact_least, hoeffding
from benchmarks.peers import (
    Floats,
    Mask,
    Rule,
    crepes_rule,
    left_out,
    mapie_set_rule,
    missing,
    nonconformist_rule,
    percentile_rule,
)
from benchmarks.record import Aim, Measure, Result
from benchmarks.timing import Scale
from pac_wrap import Guarantee, calibrate, certify_curve
from pac_wrap_paper.baselines import Controller, both_classes

DELTA = 0.05
# for each ceiling, the labels at which the chance to exceed it is given; power is that at the last
LABELS = {0.05: (59, 299, 1000), 0.01: (299, 1000)}
MOST_LABELS = 20_000
GRID = 100
OURS = "PAC-Wrap"
ABOUT = """\
For a ceiling on the false positive rate at delta = {delta}, the least number of normal labels with which a
method ever raises an alarm, found by search through the package itself; then, for some numbers of labels,
the chance that the true rate of its threshold exceeds the ceiling, and the expected true rate as a share of
the ceiling at {most:,} labels (more is more power). Both are exact: a method that lets k of n calibration
scores lie above its threshold has a true rate with the law Beta(k + 1, n - k), whatever the scores are, if
they have no ties; k is read off the package on n distinct scores. The least possible is the smallest n with
(1 - ceiling)^n <= delta.

The methods promise different things. Ours, the bounds, and MAPIE's controllers promise a rate below the
ceiling with confidence 1 - delta. Conformal classifiers (crepes, nonconformist, MAPIE's) promise it on
average over calibrations, and keep that. They do not claim a confidence, so they may have a chance above
delta; it is the chance of one calibration.
A percentile promises nothing (it interpolates; its numbers are those of the score
below), nor does the normal approximation at finite n (used from one error on). MAPIE's controllers choose
among given thresholds, so their rows are shares of {draws:,} simulated calibrations with the real package:
uniform scores, {grid} thresholds spread evenly where the rate is at most twice the ceiling. Their default
shares delta among all thresholds (Bonferroni-Holm); `fixed_sequence` does not need to, but takes one rate
at a time. *Every threshold* is `certify_curve`: its bounds hold at all thresholds at once, so that one may be
chosen after looking. *Raise* is `overlap="raise"` where the classes are far apart: one threshold for both
rates, whose ceilings could have been raised, with as many anomalies as normal labels. Hoeffding's row is what
the inequality of Dvoretzky, Kiefer and Wolfowitz gives at every threshold (with Massart's constant)."""


def our_rule(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return where our rule rules the normal label out."""
    asked = Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=delta)
    return np.asarray(calibrate(normal, normal[:0], asked).thresholds.y_fp(probes) == 1)


def our_curve(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return where the bound that holds at every threshold at once is within the ceiling."""
    return np.asarray(certify_curve(normal, normal[:0], delta_fpr=delta).fpr(probes) <= ceiling)


def our_raise(n: int, ceiling: float, delta: float) -> int | None:
    """Return the error budget of one threshold for both rates, if the ceiling need not be raised.

    As many anomalies lie far above, so that nothing else forces it up.
    """
    normal = np.arange(n, dtype=float)
    asked = Guarantee(ceiling, ceiling, delta, delta)
    found = calibrate(normal, normal + 2.0 * n, asked, overlap="raise")
    kept = not found.uncertified and found.fpr.ceiling == ceiling
    return found.fpr.budget.errors if kept and found.fpr.budget else None


def probed(rule: Rule, n: int, ceiling: float, delta: float) -> int | None:
    """Return how many of n distinct calibration scores lie above a threshold, or None without alarms."""
    flagged = np.flatnonzero(rule(np.arange(n, dtype=float), np.arange(-0.5, n), ceiling, delta))
    return None if flagged.size == 0 else n - int(flagged[0])


def least(answers: Callable[[int], bool]) -> int | None:
    """Return the least number of labels from which a method answers, by doubling and halving."""
    high = 1
    while not answers(high):
        high *= 2
        if high > MOST_LABELS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if answers(middle) else (middle, high)
    return high


def described(name: str, budget: Budget, ceiling: float) -> list[Measure]:
    """Return the numbers of a method that is known by its error budget; ours has aims."""
    number = least(lambda n: budget(n, ceiling, DELTA) is not None)
    aim = Aim("=", exact_least(ceiling, DELTA)) if name == OURS else None
    found = [Measure(name, f"labels for {ceiling}", number, "labels", aim)]
    for n in LABELS[ceiling]:
        errors = budget(n, ceiling, DELTA)
        chance = 0.0 if errors is None else float(binom.cdf(errors, n, ceiling))
        kept = Aim("<=", DELTA) if name == OURS else None
        found.append(Measure(name, f"chance above {ceiling}, n = {n:,}", chance, "chance", kept))
    best = Aim("=", _used(exact_budget(n, ceiling, DELTA), n, ceiling)) if name == OURS else None
    used = _used(errors, n, ceiling)
    return [*found, Measure(name, f"share of {ceiling} used, n = {n:,}", used, "share", best)]


def controlled(name: str, options: dict[str, Any], ceiling: float, draws: int) -> list[Measure]:
    """Return the numbers of MAPIE's controller: labels by search, the rest by simulation."""
    random = np.random.default_rng(0)
    thresholds = np.linspace(1.0 - 2.0 * ceiling, 1.0, GRID, endpoint=False)

    def rate(scores: Floats) -> float | None:
        controller = Controller("fpr", ceiling, DELTA, list_predict_params=thresholds, **options)
        # one anomaly, far up, so that both labels occur; it does not count for the false positive rate
        chance = np.append(scores, 1.0)
        labels = np.append(np.zeros(scores.size, dtype=int), 1)
        picked = controller.calibrate(both_classes(chance), labels)
        return None if picked is None else 1.0 - picked

    number = least(lambda n: rate(np.zeros(n)) is not None)
    found = [Measure(name, f"labels for {ceiling}", number, "labels")]
    for n in LABELS[ceiling]:
        rates = np.array([rate(random.random(n)) or 0.0 for _ in range(draws)])
        # a threshold of the grid whose rate is the ceiling itself does not exceed it
        chance = float(np.mean(rates > ceiling + 1e-12))
        found.append(Measure(name, f"chance above {ceiling}, n = {n:,}", chance, "chance"))
    used = float(rates.mean()) / ceiling
    return [*found, Measure(name, f"share of {ceiling} used, n = {n:,}", used, "share")]


def _used(errors: int | None, n: int, ceiling: float) -> float:
    """Return the mean of Beta(errors + 1, n - errors) over the ceiling; nothing is used without a budget."""
    return 0.0 if errors is None else (errors + 1) / (n + 1) / ceiling


METHODS: dict[str, Budget] = {
    OURS: partial(probed, our_rule),
    "PAC-Wrap, every threshold": partial(probed, our_curve),
    "PAC-Wrap, raise": our_raise,
    "least possible": exact_budget,
    "bound of Hoeffding and Bentkus": partial(bounded, bentkus),
    "bound of Hoeffding": partial(bounded, hoeffding),
    "normal approximation": partial(bounded, approximate),
    "percentile": partial(probed, percentile_rule),
}
CONFORMAL: dict[str, tuple[str, Rule]] = {
    "crepes": ("crepes", crepes_rule),
    "nonconformist": ("nonconformist", nonconformist_rule),
    "MAPIE, split conformal": ("mapie", mapie_set_rule),
}
CONTROLLERS: dict[str, dict[str, Any]] = {
    "MAPIE, controller": {},
    "MAPIE, controller, fixed sequence": {"fwer_method": "fixed_sequence"},
}


def measure(scale: Scale) -> Result:
    """Return the numbers of all methods."""
    draws = scale.pick(2, 400, 400)
    methods = dict(METHODS)
    methods |= {
        name: partial(probed, rule) for name, (package, rule) in CONFORMAL.items() if not missing(package)
    }
    controllers = {} if missing("mapie") else CONTROLLERS
    measures = []
    for ceiling in LABELS:
        for name, budget in methods.items():
            measures += described(name, budget, ceiling)
        for name, options in controllers.items():
            measures += controlled(name, options, ceiling, draws)
    return Result(
        "labels",
        "Labels that a promise needs, and its power",
        ABOUT.format(delta=DELTA, most=max(map(max, LABELS.values())), draws=draws, grid=GRID),
        scale.name,
        measures=tuple(measures),
        left_out=left_out(),
    )
