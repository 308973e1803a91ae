"""How often a group's ceiling is exceeded, on the census: ours, one rule for all, and Mondrian conformal."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.peers import left_out, missing
from benchmarks.record import Aim, Measure, Result, SkipError
from benchmarks.timing import Scale
from pac_wrap import Guarantee, calibrate, calibrate_labelled
from pac_wrap.base.floats import shared_together
from pac_wrap.tails import error_budget
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import locate
from pac_wrap_paper.studies.groups import LEARNED, scored_people

Floats = NDArray[np.float64]
# the normal scores of each group that calibrate, and points of each group: which of these are alarms
Alarms = Callable[[list[Floats], list[Floats]], list[NDArray[np.bool_]]]
CEILING = DELTA = 0.05
ASKED = Guarantee(max_fpr=CEILING, max_fnr=None, delta_fpr=DELTA)
N = 200
POPULATION = 1000
ABOUT = """\
Twelve groups of the census, by sex and age, and a detector of incomes above 50,000 dollars as in the
study. {pool:,} normal people of each group are the population; {draws:,} calibrations (ten times as many
for ours) of {n} of each group are drawn from it, with replacement. Each method finds which scores are
alarms, and a group's rate of false alarms is known exactly, from the population. The ceiling is
{ceiling} for every group. *Worst group* and *mean group* are shares of calibrations in which that rate
exceeds the ceiling; *some group* is that for any of the twelve. The *exact chance* is computed without
drawing: that of the worst group, at most delta = {delta}; and where the promises hold together, that
of some group. *Found* is the share of people with high incomes who are alarms, as a mean of the groups.

The methods promise different things. Ours promises every group's ceiling with confidence 1 - delta, or all
ceilings together with this confidence.
One rule for all promises the rate of the mixture of groups, with confidence, and nothing about a group.
crepes (Mondrian: a category for each group) promises every group's rate on average over calibrations, so
many calibrations exceed it, as they may. MAPIE has had no categories since version 1."""


def ours(drawn: list[Floats], points: list[Floats], *, together: bool = False) -> list[NDArray[np.bool_]]:
    """Return the alarms of a rule for each group."""
    groups = np.repeat(np.arange(len(drawn)), [one.size for one in drawn])
    scores = np.concatenate(drawn)
    made = calibrate_labelled(scores, np.zeros(scores.size, dtype=int), ASKED, together=together, by=groups)
    return [one >= high for one, (_, high) in zip(points, made.rules.T[: len(points)], strict=True)]


def at_once(drawn: list[Floats], points: list[Floats]) -> list[NDArray[np.bool_]]:
    """Return the alarms of a rule for each group, where all promises hold together."""
    return ours(drawn, points, together=True)


def one_rule(drawn: list[Floats], points: list[Floats]) -> list[NDArray[np.bool_]]:
    """Return the alarms of one rule for all groups."""
    rule = calibrate(np.concatenate(drawn), np.empty(0), ASKED).rule
    return [one >= rule.anomaly_from for one in points]


def mondrian(drawn: list[Floats], points: list[Floats]) -> list[NDArray[np.bool_]]:
    """Return the alarms of crepes: p-values within the group, not smoothed, at most the ceiling."""
    crepes: Any = import_module("crepes")
    classifier = crepes.ConformalClassifier()
    groups, asked = (np.repeat(np.arange(len(some)), [one.size for one in some]) for some in (drawn, points))
    classifier.fit(np.concatenate(drawn), bins=groups)
    p = classifier.predict_p(np.concatenate(points)[:, None], bins=asked, smoothing=False)
    return np.split(np.asarray(p)[:, 0] <= CEILING, np.cumsum([one.size for one in points])[:-1])


# how many times the draws each of them gets: crepes is slower
METHODS: dict[str, tuple[str | None, Alarms, int]] = {
    "PAC-Wrap, each group by itself": (None, ours, 10),
    "PAC-Wrap, all groups at once": (None, at_once, 10),
    "PAC-Wrap, one rule for all": (None, one_rule, 10),
    "crepes, Mondrian": ("crepes", mondrian, 1),
}


def measure(scale: Scale) -> Result:
    """Return how often each method exceeds a group's ceiling."""
    draws = scale.pick(1, 200, 200)
    normal, anomalous = _population()
    measures = []
    for name, (package, alarms, times) in METHODS.items():
        if package is None or not missing(package):
            measures += _described(name, alarms, normal, anomalous, times * draws)
    about = ABOUT.format(pool=POPULATION, draws=draws, n=N, ceiling=CEILING, delta=DELTA)
    return Result(
        "groups",
        "Groups: how often one of them exceeds its ceiling",
        about,
        scale.name,
        measures=tuple(measures),
        left_out=left_out(),
    )


def _described(
    name: str, alarms: Alarms, normal: list[Floats], anomalous: list[Floats], draws: int
) -> list[Measure]:
    random = np.random.default_rng(0)
    above, found = np.zeros((draws, len(normal)), dtype=bool), np.empty(draws)
    for draw in range(draws):
        drawn = [random.choice(one, N) for one in normal]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            low, high = alarms(drawn, normal), alarms(drawn, anomalous)
        above[draw] = [np.mean(one) > CEILING for one in low]
        found[draw] = np.mean([np.mean(one) for one in high])
    chances = above.mean(axis=0)
    exact = None
    if alarms is ours:
        exact = max(_exact(one, DELTA) for one in normal)
    if alarms is at_once:
        kept = [1.0 - _exact(one, shared_together(DELTA, len(normal))) for one in normal]
        exact = 1.0 - float(np.prod(kept))
    return [
        Measure(name, "worst group", float(chances.max()), "share"),
        Measure(name, "mean group", float(chances.mean()), "share"),
        Measure(name, "some group", float(above.any(axis=1).mean()), "share"),
        Measure(name, "exact chance", exact, "chance", None if exact is None else Aim("<=", DELTA)),
        Measure(name, "found", float(found.mean()), "share"),
    ]


def _exact(scores: Floats, delta: float) -> float:
    """Return the chance that N draws lead to a threshold that breaks the ceiling; scores may be tied."""
    errors = error_budget(N, CEILING, delta)
    assert errors is not None
    # a threshold breaks the ceiling exactly if it is not above this score
    last = np.sort(scores)[::-1][int(np.floor(CEILING * scores.size))]
    return float(binom.cdf(errors, N, np.mean(scores >= last)))


def _population() -> tuple[list[Floats], list[Floats]]:
    """Return the normal and the anomalous scores of each group of the census, by people it has not seen."""
    absent = [file.name for file in ENTRIES["census"].files if locate(file) is None]
    if absent:
        raise SkipError(f"neither PAC_WRAP_DATA nor the cache holds {', '.join(absent)}")
    people = scored_people(LEARNED)
    score, label, group = people.scores, people.labels == 1, people.groups
    random = np.random.default_rng(0)
    names = sorted(set(group.tolist()))
    normal = [random.permutation(score[~label & (group == name)])[:POPULATION] for name in names]
    return normal, [score[label & (group == name)] for name in names]
