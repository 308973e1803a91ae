"""How soon a monitor notices a broken ceiling, and how often it raises a false alarm: ours and MAPIE's."""

from collections.abc import Callable
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import missing
from benchmarks.record import Aim, Measure, Result
from benchmarks.timing import Scale
from pac_wrap import Guarantee, Monitor, calibrate
from pac_wrap.method.monitoring.bets import log_evidence

Labels = NDArray[np.int64]
CEILING = ALPHA = 0.05
# errors before and after the change, and labels before it and after
CASES: dict[str, tuple[float, float, int, int]] = {
    "0.10 from the start": (0.1, 0.1, 0, 2000),
    "0.20 from the start": (0.2, 0.2, 0, 600),
    "0.10 after 2,000 at 0.04": (0.04, 0.1, 2000, 6000),
    "0.10 after 20,000 at 0.04": (0.04, 0.1, 20_000, 20_000),
}
NULL = "false alarms in 5,000 at 0.05"
ABOUT = """\
Labelled normal points come one after the other, and some verdicts on them are false alarms. The
table gives the median number of labels from the change until a monitor of a rate above {ceiling} raises its
alarm, over {runs} streams that all methods see alike, and the share of streams whose alarm came before there
was a change, or, at a rate right at the ceiling, within 5,000 labels. Each
has a chance of {alpha} to raise a false alarm at any time:
MAPIE's `RiskMonitoring` is given twice that, as half of it is for a reference sample, and {ceiling} itself as
its threshold. *One bet* is the Beta mixture alone; `Monitor` also places new bets later, so that labels
before a change do not hide it. A dash: most streams ended without an alarm."""


def ours(labels: Labels) -> float:
    """Return the label at which the monitor raises its alarm, inf if it does not."""
    asked = Guarantee(max_fpr=CEILING, max_fnr=None)
    monitor = Monitor(calibrate(np.arange(1000.0), [], asked), alpha=ALPHA)
    monitor.update(labels, np.zeros(labels.size))
    return inf if monitor.alarm is None else float(monitor.alarm.row)


def one_bet(labels: Labels) -> float:
    """Return the label at which one bet raises its alarm, on a rate that was too high from the start."""
    heights = log_evidence(np.cumsum(labels), np.arange(1, labels.size + 1), CEILING)
    return _first(heights >= -np.log(ALPHA))


def mapie(labels: Labels) -> float:
    """Return the label at which MAPIE raises its alarm, inf if it does not."""
    monitor: Any = import_module("mapie.exchangeability_testing").RiskMonitoring(
        "fpr", test_level=2.0 * ALPHA, threshold=CEILING, warn=False
    )
    # it starts from scratch with every batch, and takes seconds for each
    for part in np.array_split(labels, [300, 900, 2700]):
        monitor.update(np.zeros(part.size, dtype=int), part)
        reached = monitor.online_risk_lower_bound_sequence_history > CEILING
        if reached.any():
            break
    return _first(reached)


def _first(reached: NDArray[np.bool_]) -> float:
    return float(np.argmax(reached)) + 1.0 if reached.any() else inf


METHODS: dict[str, Callable[[Labels], float]] = {"PAC-Wrap, Monitor": ours, "PAC-Wrap, one bet": one_bet}


def measure(scale: Scale) -> Result:
    """Return the delays and the false alarms of all methods."""
    runs, most = scale.pick(1, 20, 20), scale.pick(50, 10**6, 10**6)
    methods = METHODS | ({} if missing("mapie") else {"MAPIE, RiskMonitoring": mapie})
    random = np.random.default_rng(0)
    measures = []
    for case, (before, after, wait, labels) in CASES.items():
        streams = [
            np.r_[random.random(wait) < before, random.random(labels) < after].astype(np.int64)[:most]
            for _ in range(runs)
        ]
        for name, watch in methods.items():
            found = np.array([watch(stream) for stream in streams])
            late = float(np.median(found[found > wait])) - wait if (found > wait).any() else inf
            measures.append(Measure(name, case, late if late < inf else None, "labels"))
            if wait:
                early = float(np.mean(found <= wait))
                measures.append(Measure(name, f"alarm before, {case}", early, "chance"))
    null = [(random.random(5000) < CEILING).astype(np.int64)[:most] for _ in range(runs)]
    for name, watch in methods.items():
        share = float(np.mean([watch(stream) < inf for stream in null]))
        aim = Aim("<=", ALPHA) if name in METHODS else None
        measures.append(Measure(name, NULL, share, "chance", aim))
    left_out = tuple(filter(None, [missing("mapie")]))
    return Result(
        "watch",
        "How soon a broken ceiling is noticed",
        ABOUT.format(ceiling=CEILING, alpha=ALPHA, runs=runs),
        scale.name,
        measures=tuple(measures),
        left_out=left_out,
    )
