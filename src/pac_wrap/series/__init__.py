"""Scores of a time series: windows, divisions that keep their distance, and how far points depend."""

from pac_wrap.series.dependence import (
    Dependence,
    EffectiveSize,
    autocorrelation,
    dependence,
    effective_size,
    exceedances,
)
from pac_wrap.series.points import Points, Several, calibrate_points, joined, several_series, window_points
from pac_wrap.series.splits import (
    SeriesSplit,
    block_split,
    block_violation,
    independent_violation,
    random_split,
    random_violation,
)
from pac_wrap.series.windows import check_times

__all__ = [
    "Dependence",
    "EffectiveSize",
    "Points",
    "SeriesSplit",
    "Several",
    "autocorrelation",
    "block_split",
    "block_violation",
    "calibrate_points",
    "check_times",
    "dependence",
    "effective_size",
    "exceedances",
    "independent_violation",
    "joined",
    "random_split",
    "random_violation",
    "several_series",
    "window_points",
]
