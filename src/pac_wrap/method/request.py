"""What is asked of labelled scores: one request, which every entrance takes and hands on."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_array, frames_inside, label_text, type_of
from pac_wrap.base.floats import Floats, ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.clause import clause_of
from pac_wrap.method.promise import OF_DRAWS, Guarantee, as_guarantee, assumed, refuse_room
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.interface import Asked, OneGroup, asked_of, ends_of, known
from pac_wrap.method.strategies.raising import Raise
from pac_wrap.ranks.auc import warn_of_labels
from pac_wrap.ranks.kernels import together
from pac_wrap.ranks.memory import SMALL, Rank, Ranked, RankedInMemory, unchecked

T = TypeVar("T")
# the words that stand for a strategy with its usual options
WORDS: Final[dict[str, Overlap]] = {
    strategy.word: strategy
    for strategy in (
        Abstain(),
        Abstain(always=True),
        Raise(),
        Hold("fnr"),
        Hold("fpr"),
        Hold("fnr", always=False),
        Hold("fpr", always=False),
        Algorithm1(),
    )
}


@dataclass(frozen=True, slots=True)
class Request:
    """What a calibration is asked for, checked apart from any score; every entrance takes one.

    Attributes
    ----------
    guarantee : Guarantee
        The promises to keep.
    overlap : Strategy
        What is done where the classes overlap; nothing can with a single ceiling, which decides alone.
    anomaly_label : object
        The label that marks an anomaly.
    """

    guarantee: Guarantee = field(default_factory=Guarantee)
    overlap: Overlap = field(default_factory=Abstain)
    anomaly_label: object = 1

    def __post_init__(self) -> None:
        as_guarantee(self.guarantee)
        overlap = as_strategy(self.overlap)
        # with a single ceiling nothing can overlap
        kept = overlap.one_sided or len(self.guarantee.promises) == 2
        object.__setattr__(self, "overlap", overlap if kept else Abstain())
        if self.overlap.given:
            refuse_room(
                self.guarantee, "a threshold read off a curve", "certificate.radius says how far it holds"
            )

    @property
    def label_text(self) -> str | None:
        """The label that marks an anomaly as a file has it; None stands for 0 and 1, or false and true."""
        return label_text(self.anomaly_label)

    @property
    def fixed(self) -> "Request":
        """The same for classes that depend on each other: deltas that add up, whatever the counts."""
        return replace(self, guarantee=self.guarantee.fixed)

    def ranks(self, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks that may be asked for, as far as the numbers of labels tell."""
        yield from self.overlap.ranks(asked_of(self.overlap.settled(self.guarantee, sizes)), sizes)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Certificate:
        """Return the certificate that two classes get, wherever their scores live."""
        normal, anomalous = ranked
        wanted = self.overlap.settled(self.guarantee, (normal.size, anomalous.size))
        return certificate_of(wanted, asked_of(wanted), self.overlap, ranked, score_type)

    @classmethod
    def of(
        cls,
        asked: "Guarantee | Request | None" = None,
        overlap: str | Overlap | None = None,
        anomaly_label: object = 1,
    ) -> "Request":
        """Return the request that the arguments of an entrance make; a whole request is taken as it is."""
        if isinstance(asked, Request):
            if overlap is not None or type(anomaly_label) is not int or anomaly_label != 1:
                raise InputError("a Request says all that is asked for; leave overlap and anomaly_label out")
            return asked
        strategy = Abstain() if overlap is None else as_strategy(overlap)
        return cls(as_guarantee(asked), strategy, anomaly_label)


def certificate_of(
    wanted: Guarantee,
    asked: Sequence[Asked],
    overlap: Overlap,
    ranked: Sequence[Ranked],
    score_type: ScoreType,
) -> Certificate:
    """Return what a strategy makes of the scores of some populations, wherever they live."""
    if not any(one.size for one in ranked):
        raise InputError("normal and anomalous are both empty; pass at least one labelled score")
    ranks = OneGroup(ranked)
    made = overlap.decide(asked, ranks)
    beyond = made.beyond(asked, ranks)
    if overlap.given and made.certified:
        # what can be asked of a threshold read off a curve is what the curve bounds there
        wanted = Guarantee(
            *(None if one is None else known(one.ceiling) for one in made.found),
            *(one.delta for one in asked),
        )
        asked = asked_of(wanted)
    return Certificate(
        guarantee=wanted,
        overlap=overlap,
        clauses=tuple(
            clause_of(one, own, (points.size, points.digest), count, certified=made.certified)
            for one, own, points, count in zip(asked, made.found, ranked, beyond, strict=True)
        ),
        rule=Rule(*ends_of(made.low, made.high, score_type)),
        score_type=score_type,
        separable=made.separable,
        assumptions=assumed(OF_DRAWS, **wanted.rooms),
    )


def as_strategy(overlap: str | Overlap) -> Overlap:
    """Return the strategy that a word stands for, or the strategy itself."""
    found = WORDS.get(overlap) if isinstance(overlap, str) else overlap
    if not isinstance(found, Overlap):
        raise InputError(
            f"overlap must be one of {', '.join(map(repr, WORDS))}, or a strategy such as"
            f" Algorithm1(step=0.05); got {quoted(overlap)}"
        )
    return found


def certify_classes(
    request: Request, normal: ArrayLike, anomalous: ArrayLike, *, draws: bool = True
) -> Certificate:
    """Return the certificate of two classes whose scores are in memory."""
    given = as_array(normal, "normal"), as_array(anomalous, "anomalous")
    low, high = unchecked(given[0], "normal"), unchecked(given[1], "anomalous")
    return certify_divided(request, low, high, type_of(*given), draws=draws)


def certify_divided(
    request: Request, low: Floats, high: Floats, score_type: ScoreType, *, draws: bool = True
) -> Certificate:
    """Return the certificate of checked scores in memory.

    `draws`: whether the points are independent draws; only then it tells something where a class breaks off.
    """
    normal, anomalous = in_memory((low, high), ("normal", "anomalous"), request.ranks)
    if low.size and high.size:
        warn_of_labels(normal, anomalous, draws=draws)
    return request.certify(normal, anomalous, score_type=score_type)


def in_memory(
    scores: Sequence[Floats], names: Sequence[str], ranks: Callable[[Any], Iterable[Rank]]
) -> list[RankedInMemory]:
    """Return checked scores that are asked for their ranks."""
    sizes = tuple(one.size for one in scores)
    wanted = dict.fromkeys(range(len(scores)), 1) | {0: sizes[0]}
    if max(sizes) > SMALL:
        # the first ranks that are asked for are bracketed in the pass that is made anyway
        wanted |= {rank.labels[0]: rank.k for rank in islice(ranks(sizes), len(scores))}
    return together(
        [partial(RankedInMemory, one, names[p], wanted[p]) for p, one in enumerate(scores)], min(sizes)
    )


def warned(certificate: T) -> T:
    """Return what was certified; if that is less than was asked for, a warning says so, here alone."""
    if isinstance(certificate, Certificate) and certificate.empty:
        warnings.warn(str(certificate.shortfall), VacuousWarning, stacklevel=frames_inside() + 1)
    return certificate
