"""`certify_curve` beside `calibrate` and beside sorting the same scores."""

from functools import partial
from time import process_time

import numpy as np

from benchmarks.lines.calibrate import Floats, drawn
from benchmarks.record import Aim, Comparison, Measure, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import calibrate, certify_curve
from pac_wrap.method.curves.band import band_of

A_SECOND = Aim("<=", 1.0)
ABOUT = """\
`certify_curve` bounds both rates at every threshold at once: it solves the local level of each class, which
takes most of the time up to a million scores and does not depend on them, and sorts the scores. *Level
known* is the same call again: levels are kept for each number of labels and delta. `calibrate` finds one
threshold per class. The size is that of one class."""


def anew(normal: Floats, anomalous: Floats) -> None:
    """Certify a curve, with no level known from before."""
    band_of.cache_clear()
    certify_curve(normal, anomalous)


def level_seconds(size: int) -> float:
    """Return the processor time that the level and the bounds of one class take, with none known before."""
    band_of.cache_clear()
    start = process_time()
    band_of(size, 0.05)
    return process_time() - start


def both_sorted(normal: Floats, anomalous: Floats) -> None:
    """Sort both classes."""
    np.sort(normal)
    np.sort(anomalous)


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes."""
    sizes = scale.pick((200, 400, 800, 1600), *[(10**3, 10**4, 10**5, 10**6, 10**7)] * 2)
    comparisons: list[Comparison] = []
    for size in sizes:
        classes = drawn(size, np.float64)
        methods: dict[str, tuple[Role, Action]] = {
            "`certify_curve`": ("ours", partial(anew, *classes)),
            "`calibrate`": ("limit", partial(calibrate, *classes)),
            "`certify_curve`, level known": ("peer", partial(certify_curve, *classes)),
            "two `np.sort`": ("peer", partial(both_sorted, *classes)),
        }
        comparisons.append(compare("float64", size, methods, scale))
    measures = [
        Measure("level of one class", f"n = {size:,}", level_seconds(size), "s of processor", A_SECOND)
        for size in sizes
    ]
    return Result(
        "curve",
        "Certify every threshold at once",
        ABOUT,
        scale.name,
        tuple(comparisons),
        measures=tuple(measures),
    )
