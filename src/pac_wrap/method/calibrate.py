"""Labelled scores in, certificate out: the request, the driver of all sources, and the public functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments
from pac_wrap.base.floats import Floats, ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.method import promise
from pac_wrap.method.certificate import Certificate, Kinds, Overlap
from pac_wrap.method.promise import LABELS, Guarantee, Population
from pac_wrap.method.provenance import Day, Event, Traced
from pac_wrap.method.robust.weights import Draws, Weights, as_weights, survivors
from pac_wrap.method.rule import Rule
from pac_wrap.method.source import CLASSES, ChunkSource, Source
from pac_wrap.method.strategies.interface import Abstain, Asked, Hold, OneGroup, asked_of, ends_of
from pac_wrap.method.strategies.raising import Algorithm1, Raise
from pac_wrap.ranks import memory
from pac_wrap.ranks.kernels import kernels, together
from pac_wrap.ranks.memory import Rank, Ranked

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.groups.values import GroupColumn

T = TypeVar("T")
C = TypeVar("C", bound=Traced)
C_co = TypeVar("C_co", bound=Traced, covariant=True)
CHANGES: Final = "the frame has other rows each time it is computed; cache or persist it first"
_HOLDS: Final = Hold("fnr"), Hold("fpr"), Hold("fnr", always=False), Hold("fpr", always=False)
_USUAL: Final = Abstain(), Abstain(always=True), Raise(), *_HOLDS, Algorithm1()
# the words that stand for a strategy with its usual options
WORDS: Final[dict[str, Overlap]] = {strategy.word: strategy for strategy in _USUAL}


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a calibration, checked before any score is read; calibrating functions accept it."""

    guarantee: Guarantee = field(default_factory=Guarantee)
    overlap: Overlap = field(default_factory=Abstain)
    anomaly_label: object = 1

    def __post_init__(self) -> None:
        promise.as_guarantee(self.guarantee, traffic=True)
        overlap = as_strategy(self.overlap)
        # with a single ceiling nothing can overlap
        kept = overlap.one_sided or len(self.guarantee.promises) == 2
        object.__setattr__(self, "overlap", overlap if kept else Abstain())
        if self.overlap.given:
            promise.refuse_tolerance(
                self.guarantee, "a threshold read off a curve", "certificate.radius says how far it holds"
            )

    @property
    def fixed(self) -> "Request":
        """The request for classes that depend on each other: its deltas add up, whatever the counts."""
        return replace(self, guarantee=self.guarantee.fixed)

    def ranks(self, sizes: tuple[int, int]) -> Iterator[Rank]:
        yield from self.overlap.ranks(asked_of(self.overlap.settled(self.guarantee, sizes)), sizes)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Certificate:
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
        """Return the request made of a function's arguments; a ready request is returned as it is."""
        if isinstance(asked, Request):
            if overlap is not None or type(anomaly_label) is not int or anomaly_label != 1:
                raise InputError("a Request has its own overlap and anomaly_label; remove these arguments")
            promise.as_guarantee(asked.guarantee)
            return asked
        strategy = Abstain() if overlap is None else as_strategy(overlap)
        return cls(promise.as_guarantee(asked), strategy, anomaly_label)


def certificate_of(
    wanted: Guarantee, asked: Sequence[Asked], overlap: Overlap, ranked: Sequence[Ranked], kind: ScoreType
) -> Certificate:
    """Return the certificate that a strategy makes of several populations, wherever their scores are."""
    if not any(one.size for one in ranked):
        raise InputError("normal and anomalous are both empty; pass at least one labelled score")
    ranks = OneGroup(ranked)
    made = overlap.decide(asked, ranks)
    beyond = made.beyond(asked, ranks)
    if overlap.given and made.certified:
        # for a threshold read off a curve, the bounds of the curve there count as the requested ceilings
        wanted = Guarantee(
            *(None if one is None or one.ceiling != one.ceiling else one.ceiling for one in made.found),
            *(one.delta for one in asked),
        )
        asked = asked_of(wanted)
    return Certificate(
        guarantee=wanted,
        overlap=overlap,
        clauses=tuple(
            promise.clause_of(one, own, (points.size, points.digest), count, certified=made.certified)
            for one, own, points, count in zip(asked, made.found, ranked, beyond, strict=True)
        ),
        rule=Rule(*ends_of(made.low, made.high, kind)),
        score_type=kind,
        separable=made.separable,
        assumptions=promise.assumed(promise.OF_DRAWS, **wanted.tolerates),
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
    request: Request,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    draws: bool = True,
    score_type: ScoreType | None = None,
) -> Certificate:
    """Return the certificate of two classes in memory, whose scores were checked if their type is given."""
    scores = arguments.as_array(normal, "normal"), arguments.as_array(anomalous, "anomalous")
    if score_type is None:
        score_type = arguments.type_of(*scores)
        scores = memory.unchecked(scores[0], "normal"), memory.unchecked(scores[1], "anomalous")
    low, high = in_memory(scores, LABELS, request.ranks)
    if low.size and high.size:
        memory.warn_of_labels(low, high, draws=draws)
    return request.certify(low, high, score_type=score_type)


def in_memory(
    scores: Sequence[Floats], names: Sequence[str], ranks: Callable[[Any], Iterable[Rank]]
) -> list[memory.RankedInMemory]:
    """Return checked scores that answer questions about their ranks."""
    sizes = tuple(one.size for one in scores)
    wanted = dict.fromkeys(range(len(scores)), 1) | {0: sizes[0]}
    if max(sizes) > memory.SMALL:
        # the first ranks that will be needed are bracketed in the pass that is made anyway
        wanted |= {rank.labels[0]: rank.k for rank in islice(ranks(sizes), len(scores))}
    made = [partial(memory.RankedInMemory, one, names[p], wanted[p]) for p, one in enumerate(scores)]
    return together(made, min(sizes))


def warned(certificate: T) -> T:
    """Return a certificate, and warn if a requested ceiling is not certified; no other place warns."""
    if isinstance(certificate, Certificate) and certificate.empty:
        arguments.warn(str(certificate.shortfall), VacuousWarning)
    return certificate


class Wanted(Protocol[C_co]):
    """A request to populations, wherever they are stored: `Request`, `CurveRequest` or `KindRequest`."""

    def ranks(self, sizes: Any) -> Iterable[Rank]:
        """Return the ranks that may be needed."""

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> C_co:
        """Return the certificate of the populations."""


def certify(source: Source, request: Wanted[C]) -> C:
    """Return the certificate for a request, from labelled scores wherever they are stored.

    The certificate is the same for every source, byte for byte. Only the AUC behind the warning of scores
    that are upside down depends on what the source can compute.
    """
    if source.draws is not None:
        check_weighted(request, source.draws.weighted)
    made = source.answer(CLASSES, partial(answered, request))
    warn_of_scores(source, [CLASSES])
    if source.draws is not None and isinstance(made, Certificate):
        made = cast(C, weighted(made, source.draws))
    return warned(made.with_provenance(**source.origin()))


def check_weighted(request: object, given: tuple[bool, bool]) -> None:
    """Refuse weights in combinations without a proof."""
    if not isinstance(request, Request) or request.overlap.given or not request.overlap.fixed_sizes:
        raise InputError("weights need labels that are looked at only once; choose another overlap")
    noise = request.guarantee.label_noise or (None, None)
    if any(one and wrong is not None for one, wrong in zip(given, noise, strict=True)):
        raise InputError(
            "weights change the share of wrong labels, so label_noise has no meaning for a weighted class;"
            " remove one of the two"
        )


def weighted(made: Certificate, draws: Draws, intervals: bool = False) -> Certificate:
    """Return the certificate of the points that survived a draw, with the weighting noted in it."""
    assumptions = promise.assumed(promise.OF_DRAWS, weights=True, **made.guarantee.tolerates)
    return replace(made, assumptions=assumptions, weighting=replace(draws.weighting, intervals=intervals))


def answered(request: Wanted[C], ranked: Sequence[Ranked], *, score_type: ScoreType) -> C:
    """Return the certificate of populations, after finding all ranks that may be needed at once."""
    ranked[0].prefetch(request.ranks(tuple(one.size for one in ranked)))
    return request.certify(*ranked, score_type=score_type)


def warn_of_scores(source: Source, pairs: Iterable[tuple[Population, Population]]) -> None:
    """Warn of scores that are upside down, or of points that seem to have been chosen by score."""
    for pair in pairs:
        if (found := source.auc(*pair)) is not None:
            memory.warn_if_upside_down(*found)
    held = source.held()
    if held is not None and held[0].size + held[1].size:
        memory.warn_if_selected(*held)


def calibrate_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ...]]],
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate of data that is read in chunks, the same as `calibrate_labelled` gives for all.

    It reads the chunks two to five times, up to two times more if one side is held, and up to seven times if
    ceilings are raised. It needs a few MB of memory besides the largest chunk.

    Parameters
    ----------
    chunks : callable
        A function that starts a fresh iteration over pairs of scores and labels, the same pairs each time;
        with a `weight_bound`, over triples of scores, labels and weights, in the same order each time.
        The other parameters are those of `calibrate_labelled`.

    Raises
    ------
    InputError
        If a chunk is not a pair of scores and labels, or the chunks change between two passes.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> calibrate_chunks(lambda: parts).regime.value
    'vacuous'
    """
    request = Request.of(guarantee, overlap, anomaly_label)
    return certify(ChunkSource(chunks, request.anomaly_label, drawn_by(weight_bound, seed)), request)


def drawn_by(bound: float | None, seed: int | None) -> Draws | None:
    """Return the draw by weights, None without a bound."""
    if bound is None and seed is not None:
        raise InputError("seed is for weights; give weight_bound and weights too, or remove seed")
    return None if bound is None else Draws(bound, seed)


def certify_weighted(
    request: Request,
    scores: tuple[ArrayLike, ArrayLike],
    weights: tuple[Weights | None, Weights | None],
    bound: float | None,
    seed: int | None,
) -> Certificate:
    """Return the certificate of the points of each class that survive a draw by their weights, if any."""
    given = weights[0] is not None, weights[1] is not None
    draws = Draws(bound, seed, given)
    intervals = any(isinstance(one, tuple) for one in weights)
    check_weighted(request, given)
    if intervals and request.overlap.single:
        raise InputError(
            f'intervals of weights need overlap="abstain", got "{request.overlap.word}"; there is no proof'
            " for other strategies"
        )
    if intervals:  # how many points count depends on their scores
        request = request.fixed
    kept: list[NDArray[Any]] = []
    promises = request.guarantee.fpr, request.guarantee.fnr
    for side, name in enumerate(LABELS):
        values, weight = arguments.as_array(scores[side], name), weights[side]
        draws.see(side, arguments.as_scores(values, name))
        if weight is not None:
            low, high = as_weights(weight, f"{name}_weights", values.size, draws.bound)
            numbers = draws.numbers(side, values.size) * draws.bound
            values = survivors(values, (numbers < low, numbers < high), promises[side], high=side == 0)
        kept.append(values)
    return weighted(certify_classes(request, kept[0], kept[1]), draws, intervals)


def of_classes(weights: Weights, mask: NDArray[np.bool_]) -> tuple[Weights, Weights]:
    """Return the weights of normal and of anomalous points, or pairs of lower and upper weights."""
    if isinstance(weights, tuple):
        low, high = zip(*(of_classes(one, mask) for one in weights), strict=True)
        return low, high
    given = arguments.as_array(weights, "weights")
    if given.size != mask.size:
        raise InputError(f"weights must have one weight for each of {mask.size:,} scores, got {given.size:,}")
    return given[~mask], given[mask]


def calibrate(
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    normal_weights: Weights | None = None,
    anomalous_weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate for the scores of labelled normal and labelled anomalous points.

    Too few labels raise no error: the certificate is then vacuous and says so.

    Parameters
    ----------
    normal, anomalous : array-like of float, or mapping of kinds to such arrays
        The scores of each class, higher for more anomalous points; infinities are legal scores. With scores
        by kind, as in `{"card stolen": scores, "account takeover": scores}`, the ceilings hold for every
        kind, and the largest of them for any mixture of kinds: eq. (61).
    guarantee : Guarantee or Request, optional
        The promises to certify; by default both rates at most 0.05, each with delta 0.05. With kinds, a plain
        number is the ceiling of every kind, and each kind has its own delta.
    overlap : str or Strategy, optional
        How points are decided if the classes overlap: "abstain" (the default), "abstain_always", "raise",
        "hold_fnr", "hold_fpr", "hold_fnr_if_needed", "hold_fpr_if_needed", "algorithm1", or a strategy with
        options. Kinds work with the abstaining strategies, "hold_fnr" and "hold_fpr".
    normal_weights, anomalous_weights : array-like of float, or pair of arrays, optional
        How much more likely each point is in the future than at calibration, up to a factor; the promise is
        then about the future. Each point survives with probability weight / bound, and the survivors
        calibrate: eq. (78). Which points survive depends on their order. A pair of lower and upper weights is
        for weights that are known only up to an interval, with overlap "abstain" only: eq. (79).
    weight_bound : float, optional
        A number that no weight exceeds, in the sample or elsewhere; required with weights.
    seed : int, optional
        The seed of the draw; by default the system draws one, and the certificate records it. If you give a
        seed, do not try several first: the promise is an average over seeds.

    Returns
    -------
    Certificate
        The rule, its promises and their basis, with a clause for each class or kind.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or are all missing.

    Warns
    -----
    UpsideDownWarning
        If anomalies score significantly lower than normal points.
    VacuousWarning
        If a requested ceiling is not certified.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> normal, anomalous = rng.normal(0, 1, 2000), rng.normal(4, 1, 2000)
    >>> certificate = calibrate(normal, anomalous, Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.fpr.budget.errors
    ('separated', 83)
    >>> certificate.verdicts([-1.0, 1.9, 5.0])
    array([0, 0, 1], dtype=int8)
    """
    weights = normal_weights, anomalous_weights
    weighted = any(one is not None for one in weights)
    if not weighted and (weight_bound is not None or seed is not None):
        name = "seed" if weight_bound is None else "weight_bound"
        raise InputError(f"{name} is for weights; give normal_weights, anomalous_weights or both")
    if isinstance(normal, Mapping) or isinstance(anomalous, Mapping):
        if weighted:
            raise InputError("scores by kind take no weights; calibrate the kinds one by one")
        from pac_wrap.method.kinds import KindRequest, asked_of_kinds, certify_mappings

        asked = partial(KindRequest.of, *asked_of_kinds(guarantee, overlap))
        found = certify_mappings(asked, normal, anomalous)
        promise.warn_of_lacking(found.clauses)
        return found
    request = Request.of(guarantee, overlap)
    if weighted:
        return warned(certify_weighted(request, (normal, anomalous), weights, weight_bound, seed))
    return warned(certify_classes(request, normal, anomalous))


@overload
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    by: "GroupColumn",
    together: bool = False,
    pool: bool = False,
) -> "GroupCertificate": ...
@overload
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    kinds: "GroupColumn | None" = None,
    units: "GroupColumn | None" = None,
    per: "Event | Day | Iterable[Event | Day] | None" = None,
    weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate: ...
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    by: "GroupColumn | None" = None,
    together: bool = False,
    pool: bool = False,
    kinds: "GroupColumn | None" = None,
    units: "GroupColumn | None" = None,
    per: "Event | Day | Iterable[Event | Day] | None" = None,
    weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> "Certificate | GroupCertificate":
    """Return the certificate for an array of scores and an array of labels, 0 (normal) and 1 (anomalous).

    With `by`, each group of points gets its own threshold and promise, as `calibrate` gives for its points.
    If points belong to two groups at once (a tenant and a region), calibrate by each column with half of
    delta, and decide where both verdicts agree.

    Parameters
    ----------
    scores : array-like of float
        One score per point, higher for more anomalous points.
    labels : array-like
        One label per point.
    anomaly_label : object
        The label that marks an anomaly; -1 reads scikit-learn's +1 and -1.
    by : array-like, optional
        The group of each point: texts, whole numbers, dates or categories. Missing values are a group, too.
    together : bool
        With `by`: whether the promises of all groups hold together, with the deltas of the guarantee:
        eqs. (53) to (54) and (111). Otherwise each promise holds by itself: eq. (52). The share of each group
        in delta follows from the label counts of all groups; groups without a promise take none.
    pool : bool
        With `by`: whether groups with too few labels share one rule, found from all of them. Its promise is
        about their mixture, with the shares they have in this table, and about no single group: eq. (55).
    kinds : array-like, optional
        The kind of each point, for ceilings of every kind, as in `calibrate`; empty in a class without kinds.
    units : array-like, optional
        The unit of each point, such as a machine, a patient or a day. Units are independent, their points
        need not be. The promise is then about a random point of a random future unit: eq. (151). Two columns
        are a unit and an event in it, for units with several events.
    per : Event, Day, or both, optional
        With `units`: what counts instead of points. With `Event`, anomalies are events, each a unit, which
        are noticed or missed; with `Day`, days with more false alarms than allowed count.
    weights : array-like of float, or pair of arrays, optional
        How much more likely each point is in the future than at calibration; see `calibrate`. All points of a
        class that does not shift have the bound as their weight.
        The other parameters are those of `calibrate`.

    Returns
    -------
    Certificate or GroupCertificate
        The certificate that `calibrate` gives for the two classes; with `by`, a table of such certificates.

    Raises
    ------
    InputError
        If the columns differ in length, or one has values of the wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = np.tile([0, 1], 1000)
    >>> tenants = np.repeat(["acme", "other"], 1000)
    >>> certificate = calibrate_labelled(rng.normal(4 * labels, 1), labels, by=tenants, together=True)
    >>> certificate.certificates["acme"].regime.value
    'separated'
    >>> certificate.verdicts([0.0, 5.0, 5.0], ["acme", "other", "never seen"])
    array([ 0,  1, -1], dtype=int8)
    """
    weighted = weights is not None or weight_bound is not None or seed is not None
    if by is None and (together or pool):
        raise InputError("together and pool are for groups; give by too, or remove them")
    if by is not None and (weighted or kinds is not None):
        raise InputError("by cannot be combined with kinds or weights; remove by, or the others")
    if kinds is not None:
        if weighted or units is not None:
            raise InputError("scores by kind take no weights and no units; calibrate the kinds one by one")
        from pac_wrap.method.kinds import classes_by_kind

        mark = guarantee.anomaly_label if isinstance(guarantee, Request) else anomaly_label
        given, _, mask = arguments.as_labelled(scores, labels, mark)
        arguments.check_aligned("scores", scores, "kinds", kinds)
        normal, anomalous = classes_by_kind(given, mask, kinds)
        return calibrate(normal, anomalous, guarantee, overlap=overlap)
    request = Request.of(guarantee, overlap, anomaly_label)
    if units is not None:
        from pac_wrap.method.groups.units import certify_units, counted_as

        if by is not None or weighted:
            raise InputError("units cannot be combined with by or weights; remove units, or the others")
        return warned(certify_units(request, scores, labels, units, counted_as(per)))
    if per is not None:
        raise InputError("per is for units; give units too, or remove it")
    if by is not None:
        from pac_wrap.method.groups.calibrate import GroupRequest, certify_labelled_groups

        return certify_labelled_groups(GroupRequest(request, together, pool), scores, labels, by)
    given, values, mask = arguments.as_labelled(scores, labels, request.anomaly_label)
    kind = arguments.type_of(given)
    if weights is not None:
        arguments.check_aligned("scores", scores, "weights", weights)
        classes = given[~mask], given[mask]
        return warned(certify_weighted(request, classes, of_classes(weights, mask), weight_bound, seed))
    if weighted:
        name = "seed" if weight_bound is None else "weight_bound"
        raise InputError(f"{name} is for weights; give weights too, or remove {name}")
    return warned(certify_classes(request, *kernels().divide(values, mask), score_type=kind))
