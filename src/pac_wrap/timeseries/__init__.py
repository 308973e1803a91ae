"""Scores of a time series: windows, divisions that keep their distance, and how far points depend."""

from pac_wrap.timeseries.dependence import (
    Dependence,
    autocorrelation,
    dependence,
    effective_sample_size,
    exceedances,
    misleading,
)
from pac_wrap.timeseries.points import Points, calibrate_points, joined, window_points
from pac_wrap.timeseries.resampling import block_violation, independent_violation, random_violation
from pac_wrap.timeseries.splits import Parts, block_split, random_split
from pac_wrap.timeseries.times import check_times
from pac_wrap.timeseries.windows import Windows, windows
from pac_wrap.timeseries.worth import Worth, worth

__all__ = [
    "Dependence",
    "Parts",
    "Points",
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
    "window_points",
    "windows",
    "worth",
]
