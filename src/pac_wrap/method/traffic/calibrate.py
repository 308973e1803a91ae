"""Traffic and reviewed alarms in, certificate out.

Traffic is a random sample of everything that comes. A point that review did not find anomalous counts as
normal, so which points were reviewed, in which order and until when, may depend on anything: eq. (138).
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_array, as_scores, check_same_length, frames_inside, type_of
from pac_wrap.base.floats import ScoreType, from_order_key, order_key
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, LabelWarning
from pac_wrap.method.calibrate import Request, answered, in_memory, warned
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.calibrate import GroupRequest, certified
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import GroupColumn, groups_beside
from pac_wrap.method.promise import (
    Error,
    Guarantee,
    Population,
    Promise,
    assumed_of_traffic,
    clause_of,
)
from pac_wrap.method.provenance import Traffic
from pac_wrap.method.rule import Rule
from pac_wrap.method.source import Source, parts_of
from pac_wrap.method.strategies.interface import MINUS, PLUS, Abstain, Asked, OneGroup, ends_of, kept
from pac_wrap.ranks.memory import Rank, Ranked, RankedInMemory, count_below, kth_smallest
from pac_wrap.tails.bounds import cdf_at_most, min_samples

# A source of traffic has a population for each state of a review, in any order: `Population("traffic",
# "wrong")`, "right" and "unreviewed". If a coin drew points for audit, these are in "audited wrong", "audited
# right" and "audited unreviewed" instead. A point without a score is in none of them; the request counts it.
STATES: Final = tuple(
    Population("traffic", drawn + state)
    for drawn in ("", "audited ")
    for state in ("wrong", "right", "unreviewed")
)


def _in(*places: int) -> tuple[Population, ...]:
    return tuple(STATES[place] for place in places)


# what a request asks a source for: not found anomalous, all, wrong, found anomalous; of the points drawn for
# audit those not found normal, and all: `source.answer(PARTS, partial(answered, request))`
PARTS: Final = (_in(0, 2, 3, 5), Population("traffic"), _in(0, 3), _in(1, 4), _in(4, 5), _in(3, 4, 5))
# one threshold where the classes separate, at the anomalous end: the fewest alarms
STRATEGY: Final = Abstain(position=1.0)
# precision is tested at ranks this far apart, from the first one whose budget has some errors
_RATIO, _ERRORS = sqrt(2.0), 4
_NONE: Final = "0" * 16


def ranks_tested(points: int, promise: Promise) -> Iterator[int]:
    """Yield the ranks at which precision is tested, from the top; they depend on counts alone: eq. (147)."""
    rank = float(min_samples(promise.at_calibration, promise.delta, _ERRORS) + 1)
    while round(rank) <= points:
        yield round(rank)
        rank *= _RATIO


class _Ranks(OneGroup):
    """The ranks of traffic for each promise; points that do not count have scores of -inf."""

    def __init__(
        self, ranked: Sequence[Any], sizes: Sequence[int], keys: Mapping[int, int], precise: bool = False
    ) -> None:
        super().__init__(ranked)
        self._pads = [n - size for n, size in zip(sizes, self.n, strict=True)]
        self.n, self._keys, self._precise = list(sizes), keys, precise

    def at(self, p: int, k: int) -> int:
        if p in self._keys:  # precision was tested at certain ranks, and at no others
            return self._keys[p]
        inner = k - self._pads[p]
        return order_key(kth_smallest(self._ranked[p], inner)) if 0 < inner <= self._ranked[p].size else MINUS

    def below(self, p: int, key: int) -> int:
        return max(0, self._pads[p] * (key > MINUS) + count_below(self._ranked[p], from_order_key(key)))

    def between(self, p: int, q: int, low: int, high: int, share: float) -> int:
        return low if self._precise else high  # between tested ranks there is no precision


@dataclass(frozen=True, slots=True)
class TrafficRequest:
    """A request about traffic, once it is known how many points have no score.

    Attributes
    ----------
    guarantee : Guarantee
        The promises to certify.
    unscored : int
        The number of points without a score, which raise no alarm.
    anomalous : RankedInMemory
        Labelled random anomalies, for `max_fnr`; none otherwise.
    independent : bool
        Whether these anomalies are a sample independent of the traffic.
    """

    guarantee: Guarantee
    unscored: int
    anomalous: Ranked
    independent: bool

    @property
    def asked(self) -> list[Asked]:
        """The promises about traffic, and that about anomalies."""
        return asked_of_traffic(self.guarantee)

    def ranks(self, sizes: Sequence[int]) -> Iterator[Rank]:
        """Yield the ranks that may be needed, given the numbers of points in each part."""
        every = sizes[1]
        points = every + self.unscored
        for one in self.asked[:-1]:
            assert one.promise is not None
            if one.of.error is Error.WRONG_ALARM:
                yield from (Rank(1, every - j + 1) for j in ranks_tested(points, one.promise) if j <= every)
                continue
            errors = one.promise.budget(points).errors
            place = place_of(one)
            if errors is not None and errors < sizes[place]:
                yield Rank(place, sizes[place] - errors)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Certificate:
        """Return the certificate of traffic, wherever its scores are stored."""
        normal, every, wrong, right, *_ = ranked
        points = every.size + self.unscored
        asked = self.asked
        own = [ranked[place_of(one)] for one in asked[:-1]] + [self.anomalous]
        sizes, keys = [points] * (len(own) - 1) + [own[-1].size], {}
        for p, one in enumerate(asked[:-1]):
            assert one.promise is not None
            if one.promise.by_coins:
                floor = self._floor(wrong, right)
                found = kept([one], _Ranks([own[p]], [points], {}))[0]
                if found is not None and found.errors >= 0:  # nobody looked below the floor
                    keys[p] = min(max(found.key, floor), PLUS) - 1
        precise = [p for p, one in enumerate(asked) if one.of.error is Error.WRONG_ALARM]
        for p in precise:
            rest = [q for q in range(len(own) - 1) if q != p]
            others = kept([asked[q] for q in rest], _Ranks([own[q] for q in rest], [points] * len(rest), {}))
            least = max((one.key for one in others if one is not None), default=MINUS)
            sizes[p], keys[p] = self._tested(asked[p].promise, normal, every, points, least)
        ranks = _Ranks(own, sizes, keys, bool(precise))
        made = STRATEGY.decide(asked, ranks)
        beyond = made.beyond(asked, ranks)
        clauses = []
        for p, one in enumerate(asked):
            digest = own[p].digest if sizes[p] else _NONE
            clauses.append(clause_of(one, made.found[p], (sizes[p], digest), beyond[p]))
        rule = Rule(*ends_of(made.low, made.high, score_type))
        # without a threshold even +inf raises no alarm
        alarms = [
            0 if made.high == PLUS else one.size - count_below(one, from_order_key(made.high))
            for one in (every, right, wrong)
        ]
        return Certificate(
            guarantee=self.guarantee,
            overlap=STRATEGY,
            clauses=tuple(clauses),
            rule=rule,
            score_type=score_type,
            assumptions=assumed_of_traffic(self.guarantee, self.independent),
            traffic=Traffic(points, self.unscored, right.size, wrong.size, *alarms),
        )

    def _floor(self, wrong: Ranked, right: Ranked) -> int:
        """Return the key above the lowest reviewed score, since not all points with that score need be."""
        lowest = [order_key(kth_smallest(one, 1)) + 1 for one in (wrong, right) if one.size]
        return min(lowest, default=PLUS)

    def _tested(
        self, promise: Promise | None, normal: Ranked, every: Ranked, points: int, least: int
    ) -> tuple[int, int]:
        """Return the number of alarms and the key behind the lowest certified threshold of at least `least`.

        Of no alarms nothing is certified; then no threshold is low enough for an alarm.
        """
        assert promise is not None
        chosen = 0, MINUS
        for rank in ranks_tested(points, promise):
            if rank > every.size:
                break
            key = order_key(kth_smallest(every, every.size - rank + 1))
            above = from_order_key(key + 1)
            alarms, mistaken = (one.size - count_below(one, above) for one in (every, normal))
            if not alarms or not cdf_at_most(mistaken, alarms, promise.at_calibration, promise.delta):
                break
            if key + 1 >= least:
                chosen = alarms, key
        return chosen


def place_of(one: Asked) -> int:
    """Return the place in `PARTS` of the points that count for a promise about traffic."""
    if one.of.error is not Error.FALSE_ALARM:
        return 1
    return 2 if one.promise is not None and one.promise.by_coins else 0


def asked_of_traffic(guarantee: Guarantee) -> list[Asked]:
    """Return the promises about traffic, with that of precision last, and then that about anomalies."""
    alarms = [one for one in guarantee.promises if one.of.side == "normal"]
    return [
        *(Asked(one.of, one, one.delta) for one in alarms),
        Asked(Population("anomalous"), guarantee.fnr, guarantee.delta_fnr),
    ]


def as_reviews(reviews: ArrayLike | None, size: int) -> NDArray[np.int8]:
    """Return reviews as 1 (right), 0 (wrong) and -1 (not reviewed)."""
    if reviews is None:
        return np.full(size, -1, dtype=np.int8)
    given = np.asarray(reviews)
    if given.ndim != 1:
        raise InputError(f"reviews must be one-dimensional, one per point, got shape {given.shape}")
    check_same_length("scores", size, "reviews", given.size)
    found = np.full(size, -1, dtype=np.int8)
    if given.dtype.kind in "biuf":
        known = ~np.isnan(given) if given.dtype.kind == "f" else np.ones(size, dtype=bool)
    else:
        known = np.array([one is not None and one == one for one in given.tolist()], dtype=bool)
    for value in (0, 1):
        found[known & (given == value)] = value
    if (wrong := np.flatnonzero(known & (found == -1))).size:
        first = int(wrong[0])
        raise InputError(
            "reviews must be 1 (right), 0 (wrong) or missing (not reviewed), got"
            f" {quoted(given[first].item())} at position {first}"
        )
    return found


@overload
def calibrate_traffic(
    scores: ArrayLike,
    reviews: ArrayLike | None = None,
    guarantee: Guarantee | None = None,
    *,
    anomalous: ArrayLike | None = None,
    independent: bool = False,
    by: None = None,
    together: bool = False,
) -> Certificate: ...


@overload
def calibrate_traffic(
    scores: ArrayLike,
    reviews: ArrayLike | None = None,
    guarantee: Guarantee | None = None,
    *,
    by: GroupColumn,
    together: bool = False,
) -> GroupCertificate: ...


def calibrate_traffic(
    scores: ArrayLike,
    reviews: ArrayLike | None = None,
    guarantee: Guarantee | None = None,
    *,
    anomalous: ArrayLike | None = None,
    independent: bool = False,
    by: GroupColumn | None = None,
    together: bool = False,
) -> Certificate | GroupCertificate:
    """Return the certificate for traffic: the scores of all points that came, and the reviews of some.

    A point that review did not find anomalous counts as normal. So it does not matter which points were
    reviewed, in which order, or why reviewing stopped; the highest scores are worth the most.

    Parameters
    ----------
    scores : array-like of float
        The score of every point in a random sample of all that came, with NaN for points without a score.
    reviews : array-like, optional
        For each point 1 if review found it anomalous, 0 if review found it normal, and missing (NaN or None)
        if nobody looked.
    guarantee : Guarantee
        The promises: `max_alarms`, `max_false_alarms`, `max_fpr` with `Reviews(max_anomalies=...)`, and
        `min_precision`; with `anomalous` also `max_fnr`.
    anomalous : array-like of float, optional
        The scores of random anomalies, for `max_fnr`. Anomalies found by reviewing alarms do not qualify.
    independent : bool
        Whether these anomalies were drawn independently of the traffic. Confidences then multiply; otherwise
        the deltas add up.
    by : array-like, optional
        The group of each point, such as its endpoint or tenant: each group keeps the promise by itself, with
        its own threshold. It takes one promise: `max_alarms`, `max_false_alarms` or `max_fpr`.
    together : bool
        With `by`: whether the promises of all groups hold together; see `calibrate_labelled`.

    Returns
    -------
    Certificate or GroupCertificate
        The rule and its promises, with the numbers of alarms in `certificate.traffic`; with `by`, a table of
        such certificates.

    Raises
    ------
    InputError
        If reviews are not 1, 0 or missing, or a reviewed point has no score.

    Warns
    -----
    LabelWarning
        If every point was reviewed: traffic that holds alarms alone is no random sample.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> anomaly = rng.random(20_000) < 0.01
    >>> scores = rng.normal(3.0 * anomaly)
    >>> reviews = np.where(scores > 2.5, anomaly, np.nan)  # somebody looked at the highest scores
    >>> certificate = calibrate_traffic(scores, reviews, Guarantee(max_false_alarms="20 per 10,000"))
    >>> certificate.traffic.alarms, certificate.traffic.right
    (119, 90)
    """
    asked = check_asked(guarantee, anomalous is not None)
    if by is not None:
        if anomalous is not None or independent:
            raise InputError("by cannot be combined with anomalous or independent; remove by, or the others")
        return certify_traffic_groups(GroupRequest(Request(asked), together), scores, reviews, by)
    if together:
        raise InputError("together is for groups; give by too, or remove it")
    given, values, verdicts = as_traffic(scores, reviews)
    kind = type_of(given, *([] if anomalous is None else [as_array(anomalous, "anomalous")]))
    request = request_of(asked, int(np.isnan(values).sum()), anomalous, independent)
    some = given if kind != "float64" or given.dtype == np.float64 else values
    return warned(certify_reviewed(request, some, verdicts, kind))


def as_traffic(scores: ArrayLike, reviews: ArrayLike | None) -> tuple[Any, Scores, NDArray[np.int8]]:
    """Return the given scores, their values, NaN without a score, and the reviews."""
    given = as_array(scores, "scores")
    values = as_scores(given, "scores", missing=True)
    verdicts = as_reviews(reviews, values.size)
    if (unscored := np.flatnonzero(np.isnan(values) & (verdicts >= 0))).size:
        raise InputError(
            f"the reviewed point at position {int(unscored[0])} has no score; give it one, or drop the review"
        )
    if not values.size:
        raise InputError("scores are empty; pass the scores of all points that came")
    warn_if_all_reviewed(values.size, int((verdicts >= 0).sum()))
    return given, values, verdicts


def certify_traffic_groups(
    request: GroupRequest, scores: ArrayLike, reviews: ArrayLike | None, groups: GroupColumn
) -> GroupCertificate:
    """Return the certificate of groups of traffic; a point without a score has the score -inf."""
    given, values, verdicts = as_traffic(scores, reviews)
    values = np.where(np.isnan(values), -np.inf, values)
    return certified(
        request, values, verdicts == 1, groups_beside(scores, values.size, groups), type_of(given)
    )


def certify_reviewed(
    request: TrafficRequest, scores: NDArray[Any], verdicts: NDArray[np.int8], kind: ScoreType
) -> Certificate:
    """Return the certificate of scores in memory and their reviews."""
    states = np.where(np.isnan(scores), -1, verdicts % 3)
    parts = [scores[np.isin(states, places)] for places in parts_of(STATES, PARTS)]
    return request.certify(*in_memory(parts, ["scores"] * len(parts), request.ranks), score_type=kind)


def certify_traffic(source: Source, unscored: int, guarantee: object) -> Certificate:
    """Return the certificate of traffic wherever its scores are; so many more points have none."""
    request = request_of(check_asked(guarantee, False), unscored, None, False)
    made = source.answer(PARTS, partial(answered, request))
    sizes = {str(one.kind): count or 0 for one, count in source.populations().items()}
    waiting = unscored + sum(count for state, count in sizes.items() if state.endswith("unreviewed"))
    warn_if_all_reviewed(sum(sizes.values()) + unscored, sum(sizes.values()) + unscored - waiting)
    return warned(made.with_provenance(**source.origin()))


def request_of(
    asked: Guarantee, unscored: int, anomalous: ArrayLike | None, independent: bool
) -> TrafficRequest:
    """Return the request about traffic, with the labelled anomalies beside it."""
    scores = as_scores([] if anomalous is None else anomalous, "anomalous")
    return TrafficRequest(asked, unscored, RankedInMemory(scores, "anomalous", None), independent)


def is_traffic(asked: object, *marks: object) -> bool:
    """Return whether a request is about traffic: by its promises, or by a column of reviews or audits."""
    return (isinstance(asked, Guarantee) and asked.of_traffic) or any(one is not None for one in marks)


def check_asked(guarantee: object, with_anomalies: bool) -> Guarantee:
    """Return the promises asked of traffic; others are refused."""
    if not isinstance(guarantee, Guarantee) or all(one.of.side != "normal" for one in guarantee.promises):
        raise InputError(
            "traffic needs a promise about alarms; write Guarantee(max_false_alarms='20 per 50,000'), or give"
            " max_alarms, min_precision, or max_fpr with reviews=Reviews(max_anomalies=0.02)"
        )
    if guarantee.fpr is not None and guarantee.fpr.reviews is None:
        raise InputError(
            "max_fpr from traffic needs the largest share of anomalies in it; give"
            " Guarantee(max_fpr=..., reviews=Reviews(max_anomalies=0.02))"
        )
    if (guarantee.fnr is not None) != with_anomalies:
        raise InputError(
            "max_fnr and anomalous go together: the scores of random anomalies, none of them found by"
            " reviewing alarms; give both or neither"
        )
    return guarantee


def warn_if_all_reviewed(points: int, reviewed: int) -> None:
    """Warn the caller outside this package if every point was reviewed."""
    if points > 1 and reviewed == points:
        warnings.warn(
            "every point was reviewed; if these are only the alarms, they are no random sample of traffic and"
            " the promise does not hold: pass all points that came, most of them without a review",
            LabelWarning,
            stacklevel=frames_inside() + 1,
        )
