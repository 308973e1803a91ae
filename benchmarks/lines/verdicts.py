"""Verdicts from scores beside one pass that reads the array and writes a byte for each score."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.lines.calibrate import drawn
from benchmarks.memory import MB, temporaries
from benchmarks.peers import Mapie, Nonconformist, left_out, missing, probabilities
from benchmarks.plain import IN_NUMPY, in_numpy
from benchmarks.record import Aim, Comparison, Measure, Result, Role
from benchmarks.timing import Action, Scale, affordable, compare, growths
from pac_wrap import calibrate
from pac_wrap_paper.baselines import Crepes

AIM, AIM_FROM = Aim("<=", 2.0), 10**5
# what a few MB are
SCRATCH = Aim("<=", 4.0)
LABELS = 1000
ABOUT = """\
`certificate.verdicts` refuses NaN and gives an int8 per score; the limit is the comparison `scores >=
threshold`, one pass that reads the array, allocates its result and writes one byte per score, on one core.
The aim is applied from {least:,} scores on:
below that a call costs more than its pass, which is the next line's subject. The peers were calibrated on
{labels:,} scores per class; MAPIE compares with two thresholds, crepes and nonconformist give prediction
sets for both labels. Temporaries are what NumPy holds at once beyond the result. Processors are processor
time over time, of the median runs; on a busy machine they say little. *Ours in NumPy* is `verdicts` where
there is no C compiler."""


def peers(scores: NDArray[np.float64]) -> dict[str, Action]:
    """Return this step as other packages do it, as far as they are installed."""
    found: dict[str, Action] = {}
    normal, anomalous = (side.astype(np.float64) for side in drawn(LABELS, np.float64))
    if not missing("mapie"):
        mapie = Mapie().calibrate(*probabilities(normal, anomalous))
        rows, _ = probabilities(scores, scores[:0])
        found["MAPIE"] = lambda: mapie.predict(rows)
    if not missing("nonconformist"):
        nonconformist = Nonconformist().calibrate(normal, anomalous)
        found["nonconformist"] = lambda: nonconformist.sets(scores)
    if not missing("crepes"):
        crepes = Crepes().calibrate(normal, anomalous)
        found["crepes"] = lambda: (crepes.possible(scores, 0), crepes.possible(scores, 1))
    return found


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes and both types, and the bytes of temporaries at the largest size."""
    sizes = scale.pick(
        (200, 400, 800, 1600),
        (10**3, 10**4, 10**5, 10**6, 3 * 10**6, 10**7),
        (10**3, 10**4, 10**5, 10**6, 3 * 10**6, 10**7, 10**8),
    )
    certificate = calibrate(*drawn(LABELS, np.float64))
    threshold = np.float64(2.0)
    comparisons: list[Comparison] = []
    measures: list[Measure] = []
    for kind in (np.float64, np.float32):
        last, name = None, np.dtype(kind).name
        for size in sizes:
            low, high = drawn(size // 2, kind)
            scores = np.concatenate([low, high])
            methods: dict[str, tuple[Role, Action]] = {
                "`verdicts`": ("ours", partial(certificate.verdicts, scores)),
                "`scores >= threshold`": ("limit", partial(np.greater_equal, scores, kind(threshold))),
            }
            if size >= 10**5:
                methods[IN_NUMPY] = ("peer", in_numpy(partial(certificate.verdicts, scores)))
            if kind is np.float64 and size <= 10**6:
                others = affordable(peers(scores.astype(np.float64)), last, scale)
                methods |= {other: ("peer", action) for other, action in others.items()}
            last = compare(name, size, methods, scale, aim=AIM if size >= AIM_FROM else None)
            comparisons.append(last)
        ours = comparisons[-1].of("ours")
        scratch = temporaries(partial(certificate.verdicts, scores), scores.size)
        row = f"{name}, {scores.size:,} scores"
        measures.append(Measure(row, "temporaries", scratch / MB, "MB", SCRATCH))
        measures.append(Measure(row, "processors", ours.processor / ours.median, ""))
    return Result(
        "verdicts",
        "Verdicts from scores",
        ABOUT.format(labels=LABELS, least=AIM_FROM),
        scale.name,
        tuple(comparisons),
        growths(comparisons, scale),
        tuple(measures),
        left_out=left_out(),
    )
