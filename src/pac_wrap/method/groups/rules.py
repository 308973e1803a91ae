"""Verdicts and prediction sets for the scores of many groups, each following its own rule."""

from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType
from pac_wrap.base.floats import flushes, from_order_keys, order_keys
from pac_wrap.method.groups.columns import Columns, Numbers
from pac_wrap.method.groups.values import Codes
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import LARGEST
from pac_wrap.ranks.precision import rounding_edge

# rows at a time: their thresholds and masks stay in the cache
_CHUNK: Final = 1 << 16


def exclusions_of(columns: Columns, asked: Guarantee, kind: ScoreType) -> Numbers:
    """Return from which score on each group rules out that a point is normal, and below which anomalous.

    As `Certificate.exclusions`; NaN where nothing is ruled out.
    """
    tau = columns.rule[1]
    single = order_keys(columns.rule[0]) == order_keys(tau)
    alarm = np.where(single, tau, np.where(columns.thresholds[0] == inf, inf, columns.thresholds[0]))
    clear = np.where(single, np.where(tau == inf, np.nan, tau), columns.thresholds[1])
    if kind != "float64":
        two = ~single
        alarm[two & (alarm < inf)] = rounding_edges(alarm[two & (alarm < inf)], kind)
        clear[two] = rounding_edges(clear[two], kind)
    clear = np.where(single, clear, np.minimum(clear, LARGEST))
    found = np.stack([np.full(tau.size, np.nan) if asked.fpr is None else alarm, clear])
    if asked.fnr is None:
        found[1] = np.nan
    return np.where(np.isnan(columns.deltas[0]), np.array([[inf], [-inf]]), found)


def sets_of(exclusions: Numbers, scores: Scores, places: Codes) -> NDArray[np.bool_]:
    """Return which labels each score leaves possible, by the exclusions at its place: eq. (11).

    >>> sets_of(np.array([[0.7], [0.3]]), np.array([0.1, 0.5, 0.9]), np.array([0, 0, 0])).tolist()
    [[True, False], [True, True], [False, True]]
    """
    alarm, clear = exclusions
    never, open_ = np.isnan(alarm) | (alarm == inf), np.isnan(clear)
    ends = [order_keys(np.nan_to_num(end, posinf=inf, neginf=-inf)) for end in (alarm, clear)]
    missing = np.isnan(scores)
    values = order_keys(np.where(missing, 0.0, scores))
    normal = missing | never[places] | (values < ends[0][places])
    return np.stack([normal, missing | open_[places] | (values >= ends[1][places])], axis=1)


def decided(rules: Numbers, scores: Scores, places: Codes) -> NDArray[np.int8]:
    """Return the verdict on each score by the rule at its place: normal below one row, anomaly from the next.

    On NaN every rule abstains.

    >>> rules = np.array([[0.3, -inf, inf], [0.7, inf, inf]])
    >>> decided(rules, np.array([0.1, 0.5, 0.7, 0.1, inf]), np.array([0, 0, 0, 1, 2]))
    array([ 0, -1,  1, -1,  0], dtype=int8)
    """
    low, high = rules
    # where the processor flushes, other numbers near zero are taken for it: keys tell
    keyed = flushes()
    ends = (order_keys(low), order_keys(high)) if keyed else (low, high)
    # inf is never reached; one threshold there declares everything normal
    never, everything = high == inf, low == inf
    unusual = bool(everything.any())
    verdicts = np.empty(scores.size, dtype=np.int8)
    for start in range(0, scores.size, _CHUNK):
        part, place = scores[start : start + _CHUNK], places[start : start + _CHUNK]
        missing = np.isnan(part)
        values = order_keys(np.where(missing, 0.0, part)) if keyed else part
        with np.errstate(invalid="ignore"):
            alarm = values >= ends[1][place]
            alarm &= ~never[place]
            clear = values < ends[0][place]
        if unusual:
            clear |= everything[place]
        found = verdicts[start : start + _CHUNK]
        found[:] = Verdict.ABSTAIN
        found[alarm] = Verdict.ANOMALY
        found[clear] = Verdict.NORMAL
        found[missing] = Verdict.ABSTAIN
    return verdicts


def rounding_edges(numbers: Numbers, kind: ScoreType) -> Numbers:
    """Return the least double that, rounded to a type, reaches each number: eq. (26)."""
    different, places = np.unique(order_keys(numbers), return_inverse=True)
    edges = [rounding_edge(number, kind) for number in from_order_keys(different).tolist()]
    return np.array(edges, dtype=np.float64)[places.reshape(-1)]
