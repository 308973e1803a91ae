"""Exact facts about the order of scores: ranks, counts, digest, AUC. Never a quantile function."""

from pac_wrap.order.area import auc, is_upside_down, rough_auc, spaced_positions
from pac_wrap.order.digests import digest
from pac_wrap.order.held import Held, unchecked
from pac_wrap.order.keys import to_keys
from pac_wrap.order.ranked import Ranked, count_below, kth_largest, kth_smallest
from pac_wrap.order.search import Bounds, Counts, Found, Rank, RankSearch, within
from pac_wrap.order.survey import Survey, survey

__all__ = [
    "Bounds",
    "Counts",
    "Found",
    "Held",
    "Rank",
    "RankSearch",
    "Ranked",
    "Survey",
    "auc",
    "count_below",
    "digest",
    "is_upside_down",
    "kth_largest",
    "kth_smallest",
    "rough_auc",
    "spaced_positions",
    "survey",
    "to_keys",
    "unchecked",
    "within",
]
