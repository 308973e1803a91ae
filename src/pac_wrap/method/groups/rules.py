"""Verdicts on the scores of many groups, each following its own rule."""

from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import flushes, order_keys
from pac_wrap.method.groups.columns import Numbers
from pac_wrap.method.groups.values import Codes
from pac_wrap.method.rule import Verdict

# rows at a time: their thresholds and masks stay in the cache
_CHUNK: Final = 1 << 16


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
