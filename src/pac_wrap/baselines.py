"""Thresholds that people use instead, without a stated confidence; lives in `paper/`."""

from pac_wrap.paper.baselines import cpad, cpad_budget, f1_max, percentile

__all__ = ["cpad", "cpad_budget", "f1_max", "percentile"]
