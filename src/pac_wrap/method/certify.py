"""The one driver: a source of labelled scores and a request in, what is certified out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar, cast

from numpy.typing import ArrayLike

from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.promise import OF_DRAWS, Guarantee, Population, assumed
from pac_wrap.method.request import Request, warned
from pac_wrap.method.robust.weights import Draws
from pac_wrap.method.source import CLASSES, ChunkSource, Source
from pac_wrap.ranks.auc import warn_if_selected, warn_if_upside_down
from pac_wrap.ranks.memory import Rank, Ranked

C = TypeVar("C", bound="Certified")
C_co = TypeVar("C_co", bound="Certified", covariant=True)
CHANGES: Final = "the frame has other rows each time it is computed; cache or persist it first"


class Certified(Protocol):
    """What is certified from labelled scores."""

    def with_provenance(self, **facts: Any) -> Self:
        """Return the same with more known of where it comes from."""


class Originated(Protocol):
    """A source that may know where its scores came from."""

    def origin(self) -> dict[str, Any]:
        """Return it, as a provenance has it."""


class Wanted(Protocol[C_co]):
    """What can be asked of populations, wherever they live: `Request`, `CurveRequest` and `KindRequest`."""

    def ranks(self, sizes: Any) -> Iterable[Rank]:
        """Return the ranks that may be asked for."""

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> C_co:
        """Return what the populations get."""


def certify(source: Source, request: Wanted[C]) -> C:
    """Return what a request gets from labelled scores, wherever they live.

    It is the same, byte for byte, whatever the source; only the AUC that warns of scores upside down is that
    which the source can tell.
    """
    if source.draws is not None:
        check_weighted(request, source.draws.weighted)
    made = source.answer(CLASSES, partial(answered, request))
    warn_of_scores(source, [CLASSES])
    if source.draws is not None and isinstance(made, Certificate):
        made = cast(C, weighted(made, source.draws))
    return warned(signed(source, made))


def check_weighted(request: object, given: tuple[bool, bool]) -> None:
    """Refuse what nothing is proved for together with weights."""
    if not isinstance(request, Request) or request.overlap.given or not request.overlap.fixed_sizes:
        raise InputError("weights go with labels that are looked at once; calibrate with another overlap")
    noise = request.guarantee.label_noise or (None, None)
    if any(one and wrong is not None for one, wrong in zip(given, noise, strict=True)):
        raise InputError(
            "weights change the share of wrong labels, so label_noise has no meaning for a class that has"
            " them; leave one of the two out"
        )


def weighted(made: Certificate, draws: Draws, intervals: bool = False) -> Certificate:
    """Return a certificate of survivors that says what they survived."""
    assumptions = assumed(OF_DRAWS, weights=True, **made.guarantee.rooms)
    return replace(made, assumptions=assumptions, weighting=replace(draws.weighting, intervals=intervals))


def answered(request: Wanted[C], ranked: Sequence[Ranked], *, score_type: ScoreType) -> C:
    """Return what populations get; the ranks that may be asked for are found at once."""
    ranked[0].prefetch(request.ranks(tuple(one.size for one in ranked)))
    return request.certify(*ranked, score_type=score_type)


def signed(source: Originated, made: C) -> C:
    """Return what was made with where its scores came from."""
    facts = source.origin()
    return made.with_provenance(**facts) if facts else made


def warn_of_scores(source: Source, pairs: Iterable[tuple[Population, Population]]) -> None:
    """Warn of scores that are upside down, or whose points look as if they were chosen by score."""
    for pair in pairs:
        if (found := source.auc(*pair)) is not None:
            warn_if_upside_down(*found)
    held = source.held()
    if held is not None and held[0].size + held[1].size:
        warn_if_selected(*held)


def calibrate_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ...]]],
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for all chunks put together, byte for byte.

    Two to five passes are made, up to two more if one side is held, and seven if ceilings are raised. Memory
    is a few MB and the largest chunk.

    Parameters
    ----------
    chunks : callable
        Starts a fresh iteration over pairs of scores and labels, the same pairs each time; with a
        `weight_bound` over triples of scores, labels and weights, in the same order each time.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05.
    overlap : str or Strategy, optional
        What is done where the classes overlap; see `calibrate`.
    anomaly_label : object
        The label that marks an anomaly.
    weight_bound : float, optional
        What no weight exceeds, not only in the chunks; see `calibrate_labelled`.
    seed : int, optional
        The seed of the draw by weights; by default the system draws one.

    Returns
    -------
    Certificate
        That of all scores together.

    Raises
    ------
    InputError
        If a chunk is no pair of scores and labels, or the chunks change between two passes.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> calibrate_chunks(lambda: parts).regime.value
    'vacuous'
    """
    request = Request.of(guarantee, overlap, anomaly_label)
    draws = drawn_by(weight_bound, seed)
    return certify(ChunkSource(chunks, request.anomaly_label, draws), request)


def drawn_by(bound: float | None, seed: int | None) -> Draws | None:
    """Return the draw by weights that have a bound, if there is one."""
    if bound is None and seed is not None:
        raise InputError("seed is for weights; give weight_bound and weights too, or leave it out")
    return None if bound is None else Draws(bound, seed)
