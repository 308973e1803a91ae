"""`calibrate` with ceilings raised as little as can be proved, beside `calibrate` as it is."""

from functools import partial
from time import process_time

import numpy as np

from benchmarks.lines.calibrate import Floats, drawn
from benchmarks.record import Aim, Comparison, Measure, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import Raise, calibrate
from pac_wrap.method.strategies.raising import staircase
from pac_wrap.tails.levels import local_level

A_SECOND = Aim("<=", 1.0)
# the least at which a second is aimed at; beyond, the level of that many rungs takes longer
UP_TO = 10**5
# the classes lie so close that the ceilings have to be raised
CLOSER = 2.0
ABOUT = """\
`overlap="raise"` finds one threshold for both ceilings, raised as little as can be proved: it solves the
local level of the larger class once for each number of labels, ceiling and delta, and bisects a ladder with a
rung for every number of errors. *Level known* is the same call again. `calibrate` is the default, which
abstains between two thresholds on these scores. The size is that of one class."""


def anew(normal: Floats, anomalous: Floats) -> None:
    """Calibrate with no level known from before."""
    local_level.cache_clear()
    staircase.cache_clear()
    calibrate(normal, anomalous, overlap="raise")


def level_seconds(size: int) -> float:
    """Return the processor time that the level of one class takes, with none known before."""
    local_level.cache_clear()
    start = process_time()
    local_level(size, 0.05, 0.05, Raise().highest)
    return process_time() - start


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes."""
    sizes = scale.pick((200, 400, 800, 1600), *[(10**3, 10**4, 10**5, 10**6, 10**7)] * 2)
    comparisons: list[Comparison] = []
    for size in sizes:
        normal, anomalous = drawn(size, np.float64)
        classes = normal, anomalous - CLOSER
        methods: dict[str, tuple[Role, Action]] = {
            '`overlap="raise"`': ("ours", partial(anew, *classes)),
            "`calibrate`": ("limit", partial(calibrate, *classes)),
            '`overlap="raise"`, level known': ("peer", partial(calibrate, *classes, overlap="raise")),
        }
        comparisons.append(compare("float64", size, methods, scale))
    measures = [
        Measure(
            "level of one class",
            f"n = {size:,}",
            level_seconds(size),
            "s of processor",
            A_SECOND if size <= UP_TO else None,
        )
        for size in sizes
    ]
    return Result(
        "raising",
        "Raise as little as can be proved",
        ABOUT,
        scale.name,
        tuple(comparisons),
        measures=tuple(measures),
    )
