"""Traffic and reviewed alarms in, certificate out.

Traffic is a random sample of everything that comes. A point that review did not find anomalous counts as
normal, so which points were reviewed, in which order and until when, may depend on anything: eq. (138).
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments
from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import ScoreType, from_order_key, order_key
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import InputError, LabelWarning
from pac_wrap.method.calibrate import Request, answered, in_memory, warned
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.calibrate import GroupRequest, certified
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import GroupColumn, groups_beside
from pac_wrap.method.promise import Error, Guarantee, Population, Promise, assumed_of_traffic, clause_of
from pac_wrap.method.provenance import Traffic
from pac_wrap.method.rule import Rule
from pac_wrap.method.source import Source, parts_of
from pac_wrap.method.strategies.interface import MINUS, PLUS, Abstain, Asked, OneGroup, ends_of, kept
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.ranks.memory import Rank, Ranked, RankedInMemory, count_below, kth_smallest
from pac_wrap.tails.bounds import cdf_at_most, lower_bound, ranks_tested, upper_bound

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
# so few points are found together
_FEW: Final = 1000
# a coin gives other numbers of audits no more often than that
_NEVER: Final = 1e-9
_NONE: Final = "0" * 16


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


class _Audited(Ranked):
    """Anomalies caught from the largest certified threshold on, and missed below it: eq. (149).

    `missed` are points drawn for audit and not found normal, `found` are points found anomalous.
    """

    def __init__(self, promise: Promise, missed: Ranked, found: Ranked) -> None:
        self._missed, self._found, self._top, self.size = missed, found, -inf, found.size
        self.digest = as_digest(int(missed.digest, 16) + int(found.digest, 16))

        def certified(score: float) -> bool:
            errors, caught = self._counts(score)
            return cdf_at_most(errors, errors + caught, promise.at_calibration, promise.delta)

        for one in (found, missed):
            # what is certified is everything up to some threshold
            k = bisect_left(range(one.size), True, key=lambda k: not certified(kth_smallest(one, k + 1)))
            self._top = max(self._top, kth_smallest(one, k) if k else -inf)
        self.size = sum(self._counts(self._top))

    def _counts(self, score: float) -> tuple[int, int]:
        """Return how many anomalies a threshold misses, and how many it catches."""
        return count_below(self._missed, score), self._found.size - count_below(self._found, score)

    def kth_smallest(self, k: int) -> float:
        return self._top

    def count_below(self, threshold: float) -> int:
        """Return how many anomalies may lie below a threshold: within the budget if it is certified."""
        errors, caught = self._counts(threshold)
        return min(max(errors, self.size - caught), self.size)

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        return high


@dataclass(frozen=True, slots=True)
class TrafficRequest:
    """A request about traffic, once it is known how many points have no score, and so raise no alarm."""

    guarantee: Guarantee
    unscored: int
    # labelled random anomalies for `max_fnr`, and whether they are a sample independent of the traffic
    anomalous: Ranked
    independent: bool

    def __post_init__(self) -> None:
        if self.unscored and self.audited is not None:
            raise InputError(
                f"{amount(self.unscored, 'point')} of traffic without a score may be missed anomalies; for"
                " max_fnr from audits give each a score, such as -inf"
            )

    @property
    def audited(self) -> Promise | None:
        """The promise that audits keep, if there is one."""
        fnr = self.guarantee.fnr
        return fnr if fnr is not None and fnr.by_audits else None

    @property
    def asked(self) -> list[Asked]:
        own = self.guarantee
        alarms = [Asked(one.of, one, one.delta) for one in own.promises if one.of.side == "normal"]
        alarms = alarms or [Asked(Population("traffic", None, Error.ALARM), None, own.delta_fpr)]
        return [*alarms, Asked(Population("anomalous"), own.fnr, own.delta_fnr)]

    def ranks(self, sizes: Sequence[int]) -> Iterator[Rank]:
        every = sizes[1]
        points = every + self.unscored
        for place in () if self.audited is None else (3, 4):
            if sizes[place] <= _FEW:  # the threshold of audits is one of these
                yield from (Rank(place, k + 1) for k in range(sizes[place]))
        for one in self.asked[:-1]:
            if one.promise is None:
                continue
            if one.of.error is Error.WRONG_ALARM:
                tested = ranks_tested(points, one.promise.at_calibration, one.promise.delta)
                yield from (Rank(1, every - j + 1) for j in tested if j <= every)
                continue
            errors = one.promise.budget(points).errors
            place = place_of(one)
            if errors is not None and errors < sizes[place]:
                yield Rank(place, sizes[place] - errors)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Certificate:
        normal, every, wrong, right, missed, drawn = ranked
        points = every.size + self.unscored
        asked, audited = self.asked, self.audited
        own = [ranked[place_of(one)] for one in asked[:-1]]
        own.append(self.anomalous if audited is None else _Audited(audited, missed, right))
        if audited is not None and audited.reviews is not None:
            _check_coin(drawn.size, points, audited.reviews.audits)
        sizes, keys = [points] * (len(own) - 1) + [own[-1].size], dict[int, int]()
        places = [p for p, one in enumerate(asked[:-1]) if one.of.error is not Error.WRONG_ALARM]
        alone = _Ranks([own[p] for p in places], [points] * len(places), {})
        found = kept([asked[p] for p in places], alone)
        for p, edge in zip(places, found, strict=True):
            promise = asked[p].promise
            if edge is not None and promise is not None and promise.by_coins:
                # nobody looked below the lowest reviewed score, and not all points that have it are reviewed
                lowest = (order_key(kth_smallest(seen, 1)) + 1 for seen in (wrong, right) if seen.size)
                keys[p] = max(edge.key, min(lowest, default=PLUS)) - 1
        precise = {*range(len(own) - 1)}.difference(places)
        for p in precise:
            least = max((one.key for one in found if one is not None), default=MINUS)
            sizes[p], keys[p] = self._tested(asked[p].promise, normal, every, points, least)
        ranks = _Ranks(own, sizes, keys, bool(precise))
        made = STRATEGY.decide(asked, ranks)
        beyond = made.beyond(asked, ranks)
        digests = [scores.digest if n else _NONE for scores, n in zip(own, sizes, strict=True)]
        counted = zip(sizes, digests, strict=True)
        # without a threshold even +inf raises no alarm
        raised, hits, misses = (
            0 if made.high == PLUS else one.size - count_below(one, from_order_key(made.high))
            for one in (every, right, wrong)
        )
        audits = None if audited is None else drawn.size
        return Certificate(
            guarantee=self.guarantee,
            overlap=STRATEGY,
            clauses=tuple(map(clause_of, asked, made.found, counted, beyond)),
            rule=Rule(*ends_of(made.low, made.high, score_type)),
            score_type=score_type,
            assumptions=assumed_of_traffic(self.guarantee, self.independent),
            traffic=Traffic(points, self.unscored, right.size, wrong.size, raised, hits, misses, audits),
        )

    def _tested(
        self, promise: Promise | None, normal: Ranked, every: Ranked, points: int, least: int
    ) -> tuple[int, int]:
        """Return the number of alarms and the key behind the lowest certified threshold of at least `least`.

        Of no alarms nothing is certified; then no threshold is low enough for an alarm.
        """
        assert promise is not None
        chosen = 0, MINUS
        for rank in ranks_tested(points, promise.at_calibration, promise.delta):
            # points without a score come last
            key = MINUS if rank > every.size else order_key(kth_smallest(every, every.size - rank + 1))
            if key == PLUS:  # no point lies above inf
                break
            above = from_order_key(key + 1)
            alarms, mistaken = (one.size - count_below(one, above) for one in (every, normal))
            if not alarms or not cdf_at_most(mistaken, alarms, promise.at_calibration, promise.delta):
                break
            if least <= key + 1 < PLUS:  # from inf on, nothing raises an alarm
                chosen = alarms, key
        return chosen


def _check_coin(drawn: int, points: int, rate: float) -> None:
    """Refuse a number of audits that a coin of this rate never gives, once in a thousand million draws."""
    if upper_bound(drawn, points, _NEVER) < rate or lower_bound(drawn, points, _NEVER) > rate:
        raise InputError(
            f"{drawn:,} of {points:,} points were drawn for audit, which a coin of chance {rate:g} does not"
            " give; pass all points that the coin drew, whatever their score and review, or its true chance"
        )


def place_of(one: Asked) -> int:
    """Return the place in `PARTS` of the points that count for a promise about traffic."""
    if one.of.error is not Error.FALSE_ALARM:
        return 1
    return 2 if one.promise is not None and one.promise.by_coins else 0


def as_reviews(reviews: ArrayLike | None, size: int) -> NDArray[np.int8]:
    """Return reviews as 1 (right), 0 (wrong) and -1 (not reviewed)."""
    if reviews is None:
        return np.full(size, -1, dtype=np.int8)
    seen: Any = reviews
    if isinstance(reviews, np.ma.MaskedArray):  # what is masked is missing
        seen = [None if one is np.ma.masked else one for one in reviews]
    given = arguments.as_array(seen, "reviews")
    if given.ndim != 1:
        raise InputError(f"reviews must be one-dimensional, one per point, got shape {given.shape}")
    arguments.check_same_length("scores", size, "reviews", given.size)
    if given.dtype.kind in "biuf":
        found = np.where((given == 0) | (given == 1), given, np.where(np.isnan(given), -1, 2)).astype(np.int8)
    else:
        found = np.fromiter(map(_review, given), np.int8, size)
    if (wrong := np.flatnonzero(found == 2)).size:
        first = int(wrong[0])
        raise InputError(
            "reviews must be 1 (right), 0 (wrong) or missing (not reviewed), got"
            f" {quoted(given[first : first + 1].tolist()[0])} at position {first}"
        )
    return found


def _review(given: Any) -> int:
    """Return 1 (right), 0 (wrong), -1 (missing: None, NaN or NA of pandas), or 2 for anything else."""
    try:
        return -1 if given is None or given != given else int(given) if given in (0, 1) else 2
    except TypeError:  # NA is neither true nor false
        return -1
    except ValueError:  # nor is an array
        return 2


@overload
def calibrate_traffic(
    scores: ArrayLike,
    reviews: ArrayLike | None = None,
    guarantee: Guarantee | None = None,
    *,
    anomalous: ArrayLike | None = None,
    independent: bool = False,
    audits: ArrayLike | None = None,
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
    audits: ArrayLike | None = None,
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
        For each point 1 if review found it anomalous, 0 if normal, and missing (NaN, None) if nobody looked.
    guarantee : Guarantee
        The promises: `max_alarms`, `max_false_alarms`, `max_fpr` with `Reviews(max_anomalies=...)`, and
        `min_precision`; with `anomalous` or `audits` also `max_fnr`.
    anomalous : array-like of float, optional
        The scores of random anomalies, for `max_fnr`. Anomalies found by reviewing alarms do not qualify.
    independent : bool
        Whether these were drawn independently of the traffic: confidences then multiply, else deltas add up.
    audits : array-like of bool, optional
        Which points a coin drew for audit, whatever their scores and whether or not they were reviewed since,
        for `max_fnr` with `Reviews(audits=...)`, the chance of the coin. Then every point needs a score. The
        largest threshold certified from anomalies caught above and missed below is `clear_below`: eq. (149).
    by : array-like, optional
        The group of each point, such as its endpoint or tenant: each group keeps the promise by itself, with
        its own threshold. It takes one promise: `max_alarms`, `max_false_alarms` or `max_fpr`.
    together : bool
        With `by`: whether the promises of all groups hold together; see `calibrate_labelled`.

    Returns
    -------
    Certificate or GroupCertificate
        The rule and its promises, with alarms counted in `certificate.traffic`; with `by`, a table of those.

    Raises
    ------
    InputError
        If reviews are not 1, 0 or missing, a reviewed point has no score, or no such coin drew the audits.

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
    asked = check_asked(guarantee, anomalous is not None, audits is not None)
    if by is not None:
        alone = anomalous is None and not independent and audits is None
        return certify_traffic_groups(by_group(asked, together, alone), scores, reviews, by)
    if together:
        raise InputError("together is for groups; give by too, or remove it")
    given, values, verdicts = as_traffic(scores, reviews)
    labelled = arguments.as_array([] if anomalous is None else anomalous, "anomalous")
    kind = arguments.type_of(given, labelled)
    request = request_of(asked, int(np.isnan(values).sum()), labelled, independent)
    some = given if kind != "float64" or given.dtype == np.float64 else values
    drawn = np.zeros(some.size, dtype=bool)
    if audits is not None:
        drawn = arguments.as_anomaly_mask(audits, name="audits")
        arguments.check_same_length("scores", some.size, "audits", drawn.size)
    states = np.where(np.isnan(some), -1, verdicts % 3 + 3 * drawn)
    parts = [some[np.isin(states, places)] for places in parts_of(STATES, PARTS)]
    return warned(request.certify(*in_memory(parts, ["scores"] * len(parts), request.ranks), score_type=kind))


def as_traffic(scores: ArrayLike, reviews: ArrayLike | None) -> tuple[Any, Scores, NDArray[np.int8]]:
    """Return the given scores, their values, NaN without a score, and the reviews."""
    given = arguments.as_array(scores, "scores")
    values = arguments.as_scores(given, "scores", missing=True)
    verdicts = as_reviews(reviews, values.size)
    if (unscored := np.flatnonzero(np.isnan(values) & (verdicts >= 0))).size:
        raise InputError(
            f"the reviewed point at position {int(unscored[0])} has no score; give it one, or drop the review"
        )
    if not values.size:
        raise InputError("scores are empty; pass the scores of all points that came")
    warn_if_all_reviewed(values.size, int((verdicts >= 0).sum()))
    return given, values, verdicts


def by_group(asked: Guarantee, together: bool, alone: bool) -> GroupRequest:
    """Return the request for groups of traffic, which have reviews alone."""
    if not alone:
        raise InputError(
            "by cannot be combined with anomalous, independent or audits; remove by, or the others"
        )
    return GroupRequest(Request(asked), together)


def certify_traffic_groups(
    request: GroupRequest, scores: ArrayLike, reviews: ArrayLike | None, groups: GroupColumn
) -> GroupCertificate:
    """Return the certificate of groups of traffic; a point without a score has the score -inf."""
    given, values, verdicts = as_traffic(scores, reviews)
    values = np.where(np.isnan(values), -np.inf, values)
    found = groups_beside(scores, values.size, groups)
    return certified(request, values, verdicts == 1, found, arguments.type_of(given))


def certify_traffic(source: Source, unscored: int, guarantee: object, audits: bool = False) -> Certificate:
    """Return the certificate of traffic wherever its scores are; so many more points have none."""
    request = request_of(check_asked(guarantee, False, audits), unscored, [], False)
    made = source.answer(PARTS, partial(answered, request))
    sizes = {str(one.kind): count or 0 for one, count in source.populations().items()}
    waiting = unscored + sum(count for state, count in sizes.items() if state.endswith("unreviewed"))
    warn_if_all_reviewed(sum(sizes.values()) + unscored, sum(sizes.values()) + unscored - waiting)
    return warned(made.with_provenance(**source.origin()))


def request_of(asked: Guarantee, unscored: int, anomalous: ArrayLike, independent: bool) -> TrafficRequest:
    """Return the request about traffic, with the labelled anomalies beside it."""
    scores = arguments.as_scores(anomalous, "anomalous")
    return TrafficRequest(asked, unscored, RankedInMemory(scores, "anomalous", None), independent)


def is_traffic(asked: object, *marks: object, **others: object) -> bool:
    """Return whether a request is about traffic, by its promises or a column; then refuse other arguments."""
    found = (isinstance(asked, Guarantee) and asked.of_traffic) or any(one is not None for one in marks)
    if found and (given := [name for name, one in others.items() if one]):
        raise InputError(f"{given[0]} does not work with promises about traffic; remove it")
    return found


def check_asked(guarantee: object, with_anomalies: bool, with_audits: bool) -> Guarantee:
    """Return the promises asked of traffic; others are refused."""
    if not isinstance(guarantee, Guarantee) or not guarantee.of_traffic:
        if isinstance(guarantee, Guarantee) and guarantee.fpr is not None:
            raise InputError(
                "max_fpr from traffic needs the largest share of anomalies in it; give"
                " Guarantee(max_fpr=..., reviews=Reviews(max_anomalies=0.02))"
            )
        raise InputError(
            "traffic needs a promise about alarms; write Guarantee(max_false_alarms='20 per 50,000'), or give"
            " max_alarms, min_precision, or max_fpr with reviews=Reviews(max_anomalies=0.02)"
        )
    if with_anomalies and with_audits:
        raise InputError("max_fnr comes from anomalous or from audits, not from both; remove one of them")
    by_audits = guarantee.fnr is not None and guarantee.fnr.by_audits
    if by_audits != with_audits:
        raise InputError(
            "audits and their chance go together: audits=, the points that a coin drew whatever their score,"
            " and Guarantee(max_fnr=..., reviews=Reviews(audits=0.05)); give both or neither"
        )
    if (guarantee.fnr is not None and not by_audits) != with_anomalies:
        raise InputError(
            "max_fnr and anomalous go together: the scores of random anomalies, none of them found by"
            " reviewing alarms; give both, or audits, or neither"
        )
    return guarantee


def warn_if_all_reviewed(points: int, reviewed: int) -> None:
    """Warn the caller outside this package if every point was reviewed."""
    if points > 1 and reviewed == points:
        arguments.warn(
            "every point was reviewed; if these are only the alarms, they are no random sample of traffic and"
            " the promise does not hold: pass all points that came, most of them without a review",
            LabelWarning,
        )
