"""One verdict, or a hundred, from Python beside an `np.searchsorted` call."""

from functools import partial

import numpy as np

from benchmarks.lines.calibrate import drawn
from benchmarks.lines.verdicts import LABELS, peers
from benchmarks.peers import left_out
from benchmarks.record import Aim, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import calibrate

AIM = Aim("<=", 3.0)
ABOUT = """\
`certificate.verdicts` of an array of one score and of a hundred; the limit is `np.searchsorted` of the same
array among the two thresholds. The peers as above."""


def measure(scale: Scale) -> Result:
    """Return the timings of both sizes."""
    certificate = calibrate(*drawn(LABELS, np.float64))
    thresholds = np.sort(
        [certificate.thresholds.alarm_from or 0.0, certificate.thresholds.clear_below or 0.0]
    )
    comparisons = []
    for size in (1, 100):
        scores = np.random.default_rng(0).normal(2.0, 2.0, size)
        methods: dict[str, tuple[Role, Action]] = {
            "`verdicts`": ("ours", partial(certificate.verdicts, scores)),
            "`np.searchsorted`": ("limit", partial(np.searchsorted, thresholds, scores, side="right")),
        }
        methods |= {name: ("peer", action) for name, action in peers(scores).items()}
        comparisons.append(compare("float64", size, methods, scale, aim=AIM))
    return Result(
        "single",
        "One verdict, and a hundred",
        ABOUT,
        scale.name,
        tuple(comparisons),
        left_out=left_out(),
    )
