"""`violation_rate` beside resampling: the paper's check of a promise by simulation."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.record import Aim, Measure, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import UpsideDownWarning, calibrate
from pac_wrap.tails import error_budget
from pac_wrap.validation import exact_violation, violation_rate

Floats = NDArray[np.float64]
CEILING, DELTA = 0.05, 0.05
AIM = Aim(">=", 500.0)
ABOUT = """\
{trials:,} trials; populations of {population:,} scores, calibration sets of {size:,} per class, the sizes
of the paper's Q1. `violation_rate` draws the two thresholds of a trial directly, eq. (19) of [the
theory](../docs/theory.md); it also counts abstentions and separation and gives exact intervals. Naive
resampling draws every calibration set and calls `calibrate`, which makes a whole certificate; it runs
{naive:,} trials and is scaled. The two others are NumPy written as well as we could, with a partition
instead of a certificate: one counts over the population, one has it sorted once; they count the two rates
only. The ratio is to `violation_rate`. It belongs to these sizes: larger calibration sets slow resampling,
but not `violation_rate`. The shares of violated FPR show that all measure the same; the exact probability
needs no trials."""
Method = Callable[[Floats, Floats, int, int, np.random.Generator], float]


def direct(normal: Floats, anomalous: Floats, size: int, trials: int, random: np.random.Generator) -> float:
    """Return the share of FPR violations found by `violation_rate`."""
    found = violation_rate(normal, anomalous, (size, size), trials=trials, random=random)
    assert found.fpr is not None
    return found.fpr.value


def counted(normal: Floats, anomalous: Floats, size: int, trials: int, random: np.random.Generator) -> float:
    """Return the violation rates by drawing every calibration set, and counting over the population."""
    budget = error_budget(size, CEILING, DELTA)
    assert budget is not None
    broken = 0
    for _ in range(trials):
        drawn = normal[random.integers(normal.size, size=size)]
        drawn.partition(size - 1 - budget)
        flagged = int(np.count_nonzero(normal > drawn[size - 1 - budget]))
        broken += flagged / normal.size > CEILING
        drawn = anomalous[random.integers(anomalous.size, size=size)]
        drawn.partition(budget)
        np.count_nonzero(anomalous < drawn[budget])
    return broken / trials


def searched(normal: Floats, anomalous: Floats, size: int, trials: int, random: np.random.Generator) -> float:
    """Return the violation rates with both populations sorted once, so that counting is a binary search."""
    budget = error_budget(size, CEILING, DELTA)
    assert budget is not None
    normal, anomalous = np.sort(normal), np.sort(anomalous)
    high, low = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        drawn = normal[random.integers(normal.size, size=size)]
        drawn.partition(size - 1 - budget)
        high[trial] = drawn[size - 1 - budget]
        drawn = anomalous[random.integers(anomalous.size, size=size)]
        drawn.partition(budget)
        low[trial] = drawn[budget]
    flagged = normal.size - np.searchsorted(normal, high, side="right")
    np.searchsorted(anomalous, low, side="left")
    return float(np.mean(flagged / normal.size > CEILING))


def naive(normal: Floats, anomalous: Floats, size: int, trials: int, random: np.random.Generator) -> float:
    """Return the violation rates through `calibrate`, which also makes a whole certificate of each draw."""
    broken = 0
    for _ in range(trials):
        rule = calibrate(
            normal[random.integers(normal.size, size=size)],
            anomalous[random.integers(anomalous.size, size=size)],
        ).thresholds
        broken += float(rule.y_fp(normal).mean()) > CEILING
        rule.y_fn(anomalous).mean()
    return broken / trials


METHODS: dict[str, tuple[Role, Method]] = {
    "`violation_rate`": ("ours", direct),
    "naive resampling": ("limit", naive),
    "resampling, sorted once": ("peer", searched),
    "resampling, counting": ("peer", counted),
}


def measure(scale: Scale) -> Result:
    """Return the timings of all trials, and the shares that were found."""
    population, size, trials, short = scale.pick(
        (2000, 200, 40, 4), (52_000, 2000, 4000, 400), (52_000, 2000, 4000, 400)
    )
    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, population), random.normal(4, 1, population)
    shares: dict[str, list[float]] = {name: [] for name in METHODS}

    def run(name: str, method: Method, count: int) -> None:
        shares[name].append(method(normal, anomalous, size, count, random))

    methods: dict[str, tuple[Role, Action]] = {
        name: (role, partial(run, name, method, short if method is naive else trials))
        for name, (role, method) in METHODS.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        compared = compare(
            f"{trials:,} trials",
            None,
            methods,
            scale,
            reference="ours",
            judged="limit",
            aim=AIM,
            scaled={"naive resampling": trials / short},
        )
    exact = exact_violation(normal, anomalous, (size, size)).fpr
    measures = [Measure(name, "FPR violated", float(np.mean(found)), "") for name, found in shares.items()]
    measures.append(Measure("exact probability", "FPR violated", exact, ""))
    about = ABOUT.format(population=population, size=size, trials=trials, naive=short)
    return Result(
        "violation", "Check of a promise by simulation", about, scale.name, (compared,), (), tuple(measures)
    )
