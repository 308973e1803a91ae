"""Scores of a time series: windows, divisions that keep their distance, and how far points depend."""

from pac_wrap.series.dependence import (
    Dependence,
    autocorrelation,
    dependence,
    effective_sample_size,
    exceedances,
    misleading,
)
from pac_wrap.series.points import Points, calibrate_points, joined, window_points
from pac_wrap.series.resampling import block_violation, independent_violation, random_violation
from pac_wrap.series.several import Several, several_series
from pac_wrap.series.splits import SeriesSplit, block_split, random_split
from pac_wrap.series.windows import Windows, check_times, windows
from pac_wrap.series.worth import Worth, worth

__all__ = [
    "Dependence",
    "Points",
    "SeriesSplit",
    "Several",
    "Windows",
    "Worth",
    "autocorrelation",
    "block_split",
    "block_violation",
    "calibrate_points",
    "check_times",
    "dependence",
    "effective_sample_size",
    "exceedances",
    "independent_violation",
    "joined",
    "misleading",
    "random_split",
    "random_violation",
    "several_series",
    "window_points",
    "windows",
    "worth",
]
