"""The words that stand for strategies."""

from typing import Final

from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.raising import Raise

# the words that stand for a strategy with its usual options
WORDS: Final[dict[str, Overlap]] = {
    strategy.word: strategy
    for strategy in (Abstain(), Abstain(always=True), Raise(), Hold("fnr"), Hold("fpr"), Algorithm1())
}


def as_strategy(overlap: str | Overlap) -> Overlap:
    """Return the strategy that a word stands for, or the strategy itself."""
    found = WORDS.get(overlap) if isinstance(overlap, str) else overlap
    if not isinstance(found, Overlap):
        raise InputError(
            f"overlap must be one of {', '.join(map(repr, WORDS))}, or a strategy such as"
            f" Algorithm1(step=0.05); got {quoted(overlap)}"
        )
    return found
