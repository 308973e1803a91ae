"""Both ceilings as they were asked for, with abstention between two thresholds only where it is needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pac_wrap.base.arguments import check_choice
from pac_wrap.method.strategies.interface import (
    Asked,
    Claim,
    Decision,
    Ranks,
    Strategy,
    between,
    check_position,
    kept,
    ranks_of,
)
from pac_wrap.ranks.memory import Rank


@dataclass(frozen=True, slots=True)
class Abstain(Strategy):
    """Both ceilings are kept as they were asked for; points are abstained only if that is needed.

    Where one threshold can keep both ceilings, one decides: any between the two of eq. (13) keeps them, with
    the whole deltas. Where the classes overlap, what lies between the two thresholds is left undecided.

    Parameters
    ----------
    always : bool
        Whether two thresholds are used even where one would do, as in the paper.
    position : float
        Which of the m calibration scores from alarm_from to clear_below becomes the single threshold: the
        ceil(position m)-th smallest, so 1 is clear_below, and 0.5 a middle one.

    Raises
    ------
    InputError
        If an option is out of its range.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> calibrate(range(100), range(200, 300), overlap=Abstain()).rule
    Rule(normal_below=200.0, anomaly_from=200.0)
    >>> calibrate(range(100), range(200, 300), overlap=Abstain(always=True)).rule
    Rule(normal_below=98.00000000000001, anomaly_from=201.0)
    """

    tag: ClassVar[str] = "abstain"
    single: ClassVar[bool] = False
    multiplies: ClassVar[bool] = True
    always: bool = False
    position: float = 0.5

    def __post_init__(self) -> None:
        check_choice("always", self.always, (True, False))
        object.__setattr__(self, "position", check_position(self.position))

    @property
    def word(self) -> str:
        """abstain or abstain_always."""
        return "abstain_always" if self.always else "abstain"

    def at_score(self, claim: Claim) -> bool:
        """Whether a single threshold is itself a calibration score: it is one of those between the two."""
        return True

    @property
    def keeps(self) -> tuple[str, ...]:
        """Both rates are kept."""
        return ("FPR", "FNR")

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield the rank of each threshold."""
        yield from ranks_of(asked, n)

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return both thresholds, and the rule between them or with one of them."""
        return between(asked, kept(asked, ranks), ranks, None if self.always else self.position)

    def summary(self, claim: Claim) -> str:
        """Return how many thresholds decide, and why."""
        if len(claim.asked.promises) == 1:
            return "only one side is promised, so its threshold decides alone"
        if claim.found.rule.single:
            return "one threshold keeps both ceilings, so nothing is abstained"
        return "two thresholds, and abstention between them"

    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield the same as a sentence."""
        if len(claim.asked.promises) == 1:
            yield "Only one side is promised, so its threshold decides alone and nothing is left undecided."
        elif claim.found.rule.single:
            yield "One threshold keeps both ceilings with their whole deltas, so nothing is left undecided."
        else:
            yield "Two thresholds: what lies between them is left undecided."
