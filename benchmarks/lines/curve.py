"""`certify_curve` beside `calibrate` and beside sorting the same scores."""

from functools import partial

import numpy as np

from benchmarks.lines.calibrate import Floats, drawn
from benchmarks.record import Comparison, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import calibrate, certify_curve
from pac_wrap.method.curves.band import band_of

ABOUT = """\
`certify_curve` bounds both rates at every threshold at once: it solves the local level of each class, which
takes most of the time and does not depend on the scores, and finds up to a thousand ranks. *Level known* is
the same call again: levels are kept for each number of labels and delta. `calibrate` finds one threshold per
class; sorting both classes would give every rank and nothing else. The size is that of one class."""


def anew(normal: Floats, anomalous: Floats) -> None:
    """Certify a curve, with no level known from before."""
    band_of.cache_clear()
    certify_curve(normal, anomalous)


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
    return Result(
        "curve",
        "Certify every threshold at once",
        ABOUT,
        scale.name,
        tuple(comparisons),
    )
