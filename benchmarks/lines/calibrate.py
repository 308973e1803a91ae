"""`calibrate` beside two `np.partition` calls on the same arrays."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import Mapie, Nonconformist, left_out, missing, probabilities
from benchmarks.plain import IN_NUMPY, in_numpy
from benchmarks.record import Aim, Comparison, Result, Role
from benchmarks.timing import Action, Scale, affordable, compare, growths
from pac_wrap import calibrate
from pac_wrap.tails import error_budget
from pac_wrap_paper.baselines import Crepes

CEILING, DELTA = 0.05, 0.05
AIM, AIM_FROM = Aim("<=", 1.3), 10**6
ABOUT = """\
`calibrate` finds both thresholds, and also looks for NaN, takes a digest of every score, compares the
classes and counts who lies beyond the other threshold; the limit is two `np.partition` calls on the same
arrays, which copy and find the ranks, and nothing else. The size is that of one class. MAPIE tests 100
thresholds per rate; nonconformist sorts both classes; crepes only stores the scores and does the work with
every prediction. *Ours in NumPy* is `calibrate` where there is no C compiler."""
Floats = NDArray[np.floating]


def partitions(normal: Floats, anomalous: Floats) -> None:
    """Find both thresholds with np.partition, and nothing else."""
    budget = error_budget(normal.size, CEILING, DELTA)
    assert budget is not None
    np.partition(normal, normal.size - 1 - budget)
    np.partition(anomalous, budget)


def drawn(size: int, kind: type[np.floating]) -> tuple[Floats, Floats]:
    """Return the scores of two classes that overlap a little."""
    random = np.random.default_rng(0)
    normal, anomalous = (random.standard_normal(size).astype(kind) for _ in range(2))
    anomalous += kind(4)
    return normal, anomalous


def peers(normal: Floats, anomalous: Floats) -> dict[str, Action]:
    """Return this step as other packages do it, as far as they are installed."""
    found: dict[str, Action] = {}
    low, high = normal.astype(np.float64), anomalous.astype(np.float64)
    if not missing("mapie"):
        rows = probabilities(low, high)
        found["MAPIE"] = lambda: Mapie(CEILING, DELTA).calibrate(*rows)
    if not missing("nonconformist"):
        found["nonconformist"] = lambda: Nonconformist().calibrate(low, high)
    if not missing("crepes"):
        found["crepes"] = lambda: Crepes().calibrate(low, high)
    return found


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes and both types."""
    sizes = scale.pick(
        (200, 400, 800, 1600),
        (10**3, 10**4, 10**5, 10**6, 3 * 10**6, 10**7),
        (10**3, 10**4, 10**5, 10**6, 3 * 10**6, 10**7, 10**8),
    )
    comparisons: list[Comparison] = []
    for kind in (np.float64, np.float32):
        last = None
        for size in sizes:
            normal, anomalous = drawn(size, kind)
            methods: dict[str, tuple[Role, Action]] = {
                "`calibrate`": ("ours", partial(calibrate, normal, anomalous)),
                "two `np.partition`": ("limit", partial(partitions, normal, anomalous)),
            }
            if size >= 10**5:
                methods[IN_NUMPY] = ("peer", in_numpy(partial(calibrate, normal, anomalous)))
            if kind is np.float64 and size <= 10**6:
                others = affordable(peers(normal, anomalous), last, scale)
                methods |= {name: ("peer", other) for name, other in others.items()}
            aim = AIM if size >= AIM_FROM else None
            last = compare(np.dtype(kind).name, size, methods, scale, aim=aim)
            comparisons.append(last)
    return Result(
        "calibrate",
        "Calibrate both classes in memory",
        ABOUT,
        scale.name,
        tuple(comparisons),
        growths(comparisons, scale),
        left_out=left_out(),
    )
