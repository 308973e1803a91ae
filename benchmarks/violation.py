"""Time `violation_rate` beside naive resampling, in one run, and print a Markdown table.

python benchmarks/violation.py [--repeats 9] [--json PATH]
"""

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pac_wrap import UpsideDownWarning, calibrate
from pac_wrap.binomial import error_budget
from pac_wrap.validation import violation_rate

Floats = NDArray[np.float64]
POPULATION, SIZE, TRIALS, CEILING, DELTA = 52_000, 2_000, 4_000, 0.05, 0.05


@dataclass(frozen=True)
class Timing:
    """Seconds that all trials take: the median of the repeats, the fastest and the slowest.

    `trials` were really run; the seconds are scaled to `TRIALS`.
    """

    name: str
    trials: int
    median: float
    fastest: float
    slowest: float
    violations: float


def direct(normal: Floats, anomalous: Floats, trials: int, random: np.random.Generator) -> float:
    """Return the share of FPR violations found by `violation_rate`."""
    found = violation_rate(normal, anomalous, (SIZE, SIZE), trials=trials, random=random)
    assert found.fpr is not None
    return found.fpr.value


def resampled(normal: Floats, anomalous: Floats, trials: int, random: np.random.Generator) -> float:
    """Return the same by drawing every calibration set: indices, partition, count over the population.

    It counts the two rates only; `violation_rate` also counts abstentions and separation.
    """
    budget = error_budget(SIZE, CEILING, DELTA)
    assert budget is not None
    broken = 0
    for _ in range(trials):
        drawn = normal[random.integers(POPULATION, size=SIZE)]
        drawn.partition(SIZE - 1 - budget)
        flagged = int(np.count_nonzero(normal > drawn[SIZE - 1 - budget]))
        broken += flagged / POPULATION > CEILING
        drawn = anomalous[random.integers(POPULATION, size=SIZE)]
        drawn.partition(budget)
        np.count_nonzero(anomalous < drawn[budget])
    return broken / trials


def searched(normal: Floats, anomalous: Floats, trials: int, random: np.random.Generator) -> float:
    """Return the same with both populations sorted once, so that counting is a binary search."""
    budget = error_budget(SIZE, CEILING, DELTA)
    assert budget is not None
    normal, anomalous = np.sort(normal), np.sort(anomalous)
    high, low = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        drawn = normal[random.integers(POPULATION, size=SIZE)]
        drawn.partition(SIZE - 1 - budget)
        high[trial] = drawn[SIZE - 1 - budget]
        drawn = anomalous[random.integers(POPULATION, size=SIZE)]
        drawn.partition(budget)
        low[trial] = drawn[budget]
    flagged = POPULATION - np.searchsorted(normal, high, side="right")
    np.searchsorted(anomalous, low, side="left")
    return float(np.mean(flagged / POPULATION > CEILING))


def calibrated(normal: Floats, anomalous: Floats, trials: int, random: np.random.Generator) -> float:
    """Return the same through `calibrate`, which also makes a whole certificate of each draw."""
    broken = 0
    for _ in range(trials):
        rule = calibrate(
            normal[random.integers(POPULATION, size=SIZE)], anomalous[random.integers(POPULATION, size=SIZE)]
        ).thresholds
        broken += float(rule.y_fp(normal).mean()) > CEILING
        rule.y_fn(anomalous).mean()
    return broken / trials


Method = Callable[[Floats, Floats, int, np.random.Generator], float]
METHODS: dict[str, tuple[Method, int]] = {
    "`violation_rate`": (direct, TRIALS),
    "resampling, populations sorted once": (searched, TRIALS),
    "resampling, counting every point": (resampled, TRIALS),
    "resampling through `calibrate`": (calibrated, 400),
}


def measure(repeats: int) -> list[Timing]:
    """Return the timings, the methods taking turns so that a busy moment hits all of them."""
    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, POPULATION), random.normal(4, 1, POPULATION)
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    violations: dict[str, list[float]] = {name: [] for name in METHODS}
    for repeat in range(repeats + 1):
        for name, (method, trials) in METHODS.items():
            start = time.perf_counter()
            share = method(normal, anomalous, trials, random)
            elapsed = time.perf_counter() - start
            if repeat:  # the first round only warms up
                seconds[name].append(elapsed * TRIALS / trials)
                violations[name].append(share)
    return [
        Timing(
            name,
            trials,
            statistics.median(seconds[name]),
            min(seconds[name]),
            max(seconds[name]),
            statistics.mean(violations[name]),
        )
        for name, (_, trials) in METHODS.items()
    ]


def table(timings: list[Timing]) -> str:
    """Return the timings as a Markdown table; the ratio is to `violation_rate`."""
    lines = [
        f"| method | trials run | ms per {TRIALS:,} trials (fastest to slowest) | ratio | FPR violated |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {timing.name} | {timing.trials:,} | {1e3 * timing.median:,.1f}"
        f" ({1e3 * timing.fastest:,.1f} to {1e3 * timing.slowest:,.1f})"
        f" | {timing.median / timings[0].median:,.0f} | {timing.violations:.3f} |"
        for timing in timings
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="timed rounds, after one to warm up")
    parser.add_argument("--json", type=Path, help="write the timings to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UpsideDownWarning)
    timings = measure(options.repeats)
    print(table(timings))
    if options.json is not None:
        setting = {"population": POPULATION, "size": SIZE, "trials": TRIALS, "repeats": options.repeats}
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        record = {**setting, **versions, "timings": [asdict(timing) for timing in timings]}
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
