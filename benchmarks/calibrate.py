"""Time `calibrate` beside two `np.partition` calls on the same arrays, in one run, as a Markdown table.

python benchmarks/calibrate.py [--large] [--repeats 15] [--json PATH]
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap import calibrate
from pac_wrap.binomial import error_budget

Floats = NDArray[np.floating]
CEILING, DELTA = 0.05, 0.05
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
LARGE = 10**8
KINDS: tuple[type[np.floating], ...] = (np.float64, np.float32)


@dataclass(frozen=True)
class Timing:
    """Seconds for one size, per class, and one type: medians of the repeats, the fastest and the slowest.

    `ratio` is the median of the ratios of neighbouring runs; `least_ratio` compares the fastest runs, and
    `cpu_ratio` is the median in processor time: a busy machine distorts these two less.
    """

    scores: int
    kind: str
    median: float
    fastest: float
    slowest: float
    partitions: float
    ratio: float
    least_ratio: float
    cpu_ratio: float


def partitions(normal: Floats, anomalous: Floats) -> None:
    """Find both thresholds with np.partition, and nothing else."""
    budget = error_budget(normal.size, CEILING, DELTA)
    assert budget is not None
    np.partition(normal, normal.size - 1 - budget)
    np.partition(anomalous, budget)


def clocked(
    action: Callable[[Floats, Floats], Any], normal: Floats, anomalous: Floats
) -> tuple[float, float]:
    """Return the seconds that an action takes, by the clock and of the processor."""
    cpu, clock = time.process_time(), time.perf_counter()
    action(normal, anomalous)
    return time.perf_counter() - clock, time.process_time() - cpu


def measure(size: int, kind: type[np.floating], repeats: int) -> Timing:
    """Return the timing of one size, both methods taking turns so that a busy moment hits both."""
    random = np.random.default_rng(0)
    normal = random.normal(0, 1, size).astype(kind)
    anomalous = random.normal(4, 1, size).astype(kind)
    ours, theirs = [], []
    for repeat in range(repeats + 1):
        pair = clocked(partitions, normal, anomalous), clocked(calibrate, normal, anomalous)
        if repeat:  # the first round only warms up
            theirs.append(pair[0])
            ours.append(pair[1])
    seconds = [clock for clock, _ in ours]
    ratios = [a[0] / b[0] for a, b in zip(ours, theirs, strict=True)]
    cpu = [a[1] / b[1] for a, b in zip(ours, theirs, strict=True) if b[1]]
    return Timing(
        size,
        np.dtype(kind).name,
        statistics.median(seconds),
        min(seconds),
        max(seconds),
        statistics.median(clock for clock, _ in theirs),
        statistics.median(ratios),
        min(seconds) / min(clock for clock, _ in theirs),
        statistics.median(cpu),
    )


def growth(timings: list[Timing]) -> float:
    """Return the slope of log time on log size, by least squares: 1 is linear."""
    sizes = np.log([timing.scores for timing in timings])
    slope, _ = np.polyfit(sizes, np.log([timing.median for timing in timings]), 1)
    return float(slope)


def exponents(timings: list[Timing]) -> dict[str, float]:
    """Return the growth exponent of each type, from 10^5 on, where the constant part is small."""
    grown = {}
    for kind in dict.fromkeys(timing.kind for timing in timings):
        large = [timing for timing in timings if timing.kind == kind and timing.scores >= 10**5]
        if len(large) > 1:
            grown[kind] = growth(large)
    return grown


def table(timings: list[Timing]) -> str:
    """Return the timings as a Markdown table; ratios are to two np.partition calls on the same arrays."""
    lines = [
        "| scores per class | type | `calibrate`, ms (fastest to slowest) | two `np.partition`, ms"
        " | ratio | of the fastest | of processor time |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {timing.scores:,} | {timing.kind} | {1e3 * timing.median:,.2f}"
        f" ({1e3 * timing.fastest:,.2f} to {1e3 * timing.slowest:,.2f}) | {1e3 * timing.partitions:,.2f}"
        f" | {timing.ratio:.2f} | {timing.least_ratio:.2f} | {timing.cpu_ratio:.2f} |"
        for timing in timings
    ]
    lines += [""]
    lines += [f"Growth exponent from 10^5, {kind}: {slope:.2f}" for kind, slope in exponents(timings).items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 10^8 scores per class, about 4 GB")
    parser.add_argument("--repeats", type=int, default=15, help="timed rounds, after one to warm up")
    parser.add_argument("--json", type=Path, help="write the timings to this file")
    options = parser.parse_args()
    sizes = (*SIZES, LARGE) if options.large else SIZES
    # the largest take long, and vary little
    repeats = {size: options.repeats if size <= 10**6 else max(3, options.repeats // 3) for size in sizes}
    timings = [measure(size, kind, repeats[size]) for size in sizes for kind in KINDS]
    print(table(timings))
    if options.json is not None:
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        setting = {"ceiling": CEILING, "delta": DELTA, "repeats": options.repeats}
        record = {**setting, **versions, "growth": exponents(timings)}
        record["timings"] = [asdict(timing) for timing in timings]
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
