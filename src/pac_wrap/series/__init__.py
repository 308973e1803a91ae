"""Time series: windows as calibration points, divisions with gaps, and the effective sample size."""

from pac_wrap.series.dependence import Dependence, EffectiveSize, dependence, effective_size
from pac_wrap.series.points import (
    Points,
    SeriesSplit,
    calibrate_points,
    joined,
    several_series,
    window_points,
)

__all__ = [
    "Dependence",
    "EffectiveSize",
    "Points",
    "SeriesSplit",
    "calibrate_points",
    "dependence",
    "effective_size",
    "joined",
    "several_series",
    "window_points",
]
