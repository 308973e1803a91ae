"""Figures of studies: pictures as plain data in, matplotlib out."""

from pac_wrap.report.figures.study.curves import plot_curves
from pac_wrap.report.figures.study.heatmap import plot_heatmap
from pac_wrap.report.figures.study.intervals import plot_intervals
from pac_wrap.report.figures.study.picture import draw

__all__ = ["draw", "plot_curves", "plot_heatmap", "plot_intervals"]
