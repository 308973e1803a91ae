"""Precision, prevalence and workload: what a certificate bounds about future alarms."""

from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from math import inf, nextafter
from typing import TYPE_CHECKING, NamedTuple, cast

from numpy.typing import ArrayLike

from pac_wrap.base import floats
from pac_wrap.base.arguments import as_float, check_count, check_positive, check_rate
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Assumption, Clause, Error, Population, Promise, are_independent
from pac_wrap.method.rule import Counted, Regime
from pac_wrap.tails.batches import batch_tail
from pac_wrap.tails.bounds import lower_bound, upper_bound

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate

Prevalence = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lower and the upper bound of a rate or a number, and the confidence with which both hold."""

    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        low = floats.rounded_down(self.low, digits=floats.told(self.low))
        high = floats.rounded_up(self.high, digits=floats.told(self.high))
        words = f"at least {low}" if self.high >= 1.0 else f"{low} to {high}"
        return f"{words}, with confidence {floats.rounded_down(self.confidence)}"


@dataclass(frozen=True, slots=True)
class Workload:
    """The expected workload of a number of points, with bounds that hold together with one confidence.

    Attributes
    ----------
    per : int
        The number of points.
    prevalence : tuple of float
        The least and the greatest share of anomalies among them.
    alarms, right, false_alarms, missed, undecided : Bounds
        The expected numbers of alarms, of anomalies and of normal points among the alarms, of anomalies
        declared normal, and of undecided points.
    confidence : float
        1 minus the sum of all deltas that were used.
    """

    per: int
    prevalence: tuple[float, float]
    alarms: Bounds
    right: Bounds
    false_alarms: Bounds
    missed: Bounds
    undecided: Bounds
    confidence: float

    def __str__(self) -> str:
        low, high = self.prevalence
        least, most = floats.rounded_down(low, digits=4), floats.rounded_up(high)
        share = most if low == high else f"{least} to {most}"
        lines = [
            f"per {self.per:,} points at a prevalence of {share}, on average and with confidence"
            f" {floats.rounded_down(self.confidence)}:"
        ]
        for name in ("alarms", "right", "false_alarms", "missed", "undecided"):
            found = getattr(self, name)
            lines.append(f"{name.partition('_')[0]:<10} {floats.between(found.low, found.high)}")
        return "\n".join(lines)


_FATES = {Error.FALSE_ALARM: "raise a false alarm", Error.ALARM: "raise an alarm", Error.MISS: "are missed"}


@dataclass(frozen=True, slots=True)
class AmongNext:
    """The largest number of errors among the next points of a population, or why there is none.

    Attributes
    ----------
    of : Population
        The points and the error. A false alarm of traffic is one among all points that come.
    points : int
        The number of these points that come next.
    most : int or None
        The number of errors that is not exceeded; None if no such number holds.
    confidence : float
        The confidence of that number, over the calibration points and the next points together.
    why : str
        Why no number holds; empty if one does.
    """

    of: Population
    points: int
    most: int | None = None
    confidence: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        whom = "points of traffic" if self.of.label == "traffic" else str(self.of)
        if self.most is None:
            return f"no number of errors among the next {self.points:,} {whom} is promised: {self.why}"
        said = f"at most {self.most:,} of the next {self.points:,} {whom} {_FATES[self.of.error]}"
        return f"{said}, with confidence {floats.rounded_down(self.confidence)}"


def _uncounted(one: "Certificate", clause: Clause, asked: Promise) -> str:
    """Return why errors of a clause among the next points have no bound; an empty text if they have one."""
    known = {Assumption.INDEPENDENT, Assumption.ONE_SOURCE, Assumption.TRAFFIC}
    reasons = {
        f"too little is known to certify {asked.claim}": not clause.kept,
        "how many points raise an alarm depends on their scores": clause.of.label == "alarms",
        f"the next points may be other ones, as the ceiling tolerates {asked.tolerance}": asked.tolerance,
        "coins and mistaken reviewers leave out calibration points, but none of the next": asked.by_audits
        or (asked.reviews is not None and asked.reviews.rate * (1.0 - asked.reviews.mistaken) < 1.0),
        "weights chose the calibration points": one.weighting is not None,
        f"{one.overlap.word} looks at scores to find how many errors to allow": asked.rate
        not in one.overlap.keeps,
        "the calibration points depend on each other, or come from several groups": not known
        & set(one.assumptions),
    }
    return next((reason for reason, there in reasons.items() if there), "")


class Shares(NamedTuple):
    """Bounds of the share of each verdict in each class, and their deltas: eqs. (46), (47) and (49)."""

    false_alarms: float
    caught: float
    missed: float
    undecided: tuple[float, float]
    deltas: tuple[float, ...]
    # the confidence of `false_alarms` and `caught` together, larger than that of all bounds: eq. (121)
    sure: float
    # deltas that only the undecided normal points need
    extra: tuple[float, ...] = ()


def kept_by(one: "Certificate") -> tuple[Promise | None, Promise | None]:
    """Return the certified promises about the FPR and the FNR; a certificate without them is refused."""
    if one.traffic is not None:
        raise InputError(
            "this certificate bounds alarms among all traffic, not the error rates of each class, from which"
            " precision and workload follow; ask calibrate_traffic for max_alarms and min_precision"
        )
    if one.units is not None:
        raise InputError(
            "precision and workload count points, and this certificate bounds the rates of units; use a"
            " certificate made without units"
        )
    if one.by_kind:
        raise InputError(
            "precision and workload depend on the mix of kinds, which a certificate by kind does not know;"
            " calibrate without kinds"
        )
    found = one.fpr.certified, one.fnr.certified
    if found == (None, None):
        raise InputError("no threshold is certified, so no alarm is raised; certificate.diagnosis says why")
    if not one.overlap.proved:
        raise InputError("the confidence of this certificate is not guaranteed; calibrate with a correction")
    return found


def false_alarms_of(one: "Certificate") -> Promise:
    """Return the certified promise about the FPR; a certificate without it is refused."""
    promise, _ = kept_by(one)
    if promise is None or one.rule.anomaly_from == inf:
        raise InputError(
            "no ceiling of the FPR is certified, or no alarm is ever raised, so false alarms have no bound;"
            " ask for a ceiling of the FPR, or label more normal points"
        )
    return promise


def shares_of(one: "Certificate", delta: float | None) -> Shares:
    """Return the bounds of a certificate; delta is the chance that a counted share breaks its bound."""
    fpr, (_, fnr) = false_alarms_of(one), kept_by(one)
    alone = Decimal(repr(one.confidences.get("FPR", 1.0)))
    if fnr is None:  # then anomalies may be caught or missed, or undecided if the rule abstains
        undecided = 0.0 if one.rule.single else 1.0
        return Shares(fpr.ceiling, 0.0, 1.0, (undecided, undecided), (fpr.delta,), floats.float_below(alone))
    deltas = fpr.delta, fnr.delta
    found = Shares(fpr.ceiling, 1.0 - fnr.ceiling, fnr.ceiling, (0.0, 0.0), deltas, one.confidence)
    if one.overlap.single:
        return found
    # one threshold or two, depending on the overlap: the deltas of both cases add up, eq. (47)
    counted = check_rate("delta", fnr.delta if delta is None else delta)
    others = fpr.delta if delta is None else counted
    found = found._replace(deltas=(*deltas, counted), extra=(others,))
    # whether a share may be counted if the classes overlap
    known = one.weighting is None or not one.weighting.intervals
    pooled = Assumption.POOLED in one.assumptions
    # with too few anomalies nothing is ever declared normal
    lacking = one.fnr.errors is None
    if known and one.overlap.fixed_sizes and not pooled:
        # the confidence of the FPR ceiling together with the share of caught anomalies: eq. (121)
        own: tuple[float, ...] = (counted,)
        if not lacking:
            own = (fnr.delta,) if counted <= fnr.delta else (fnr.delta, counted)
        sure = floats.confidence_left(fpr.delta, *own)
        if are_independent(one.assumptions):
            sure = floats.kept_together(alone, floats.confidence_left(*own))
        found = found._replace(sure=floats.float_below(sure))
    if one.rule.single:
        return found
    if one.regime is Regime.SEPARATED:  # two thresholds nevertheless: alarms begin at clear_below
        return found._replace(undecided=(fpr.ceiling, fnr.ceiling))
    if not known:
        raise InputError(
            "weights are known up to intervals, and the classes overlap, so shares counted among the points"
            " that survived have no bound; try precision_from_unlabelled"
        )
    if not one.overlap.fixed_sizes:
        raise InputError(
            "the labels were looked at as they came, and the classes overlap, so shares counted among them"
            " have no bound; count new points without labels"
        )
    if pooled:  # counts are not binomial: eq. (116)
        raise InputError(
            "the points of a pool come from several groups, and the classes overlap, so shares counted among"
            " them are not binomial and have no bound; count new points without labels"
        )
    n, beyond = one.fnr.n, one.fnr.beyond or 0
    caught = lower_bound(n - beyond, n, counted)
    if fnr.tolerance is not None:  # the share that is not caught may grow, eq. (70)
        caught = max(0.0, nextafter(1.0 - fnr.afterwards(upper_bound(beyond, n, counted)), -1.0))
    return found._replace(
        caught=caught,
        missed=0.0 if lacking else min(fnr.ceiling, 1.0 - caught),
        undecided=(fpr.afterwards(upper_bound(one.fpr.beyond or 0, one.fpr.n, others)), 1.0 - caught),
        deltas=(fpr.delta, counted) if lacking else found.deltas,
    )


class AlarmBounds:
    """Precision, prevalence and workload of a certificate; a part of `Certificate`."""

    __slots__ = ()

    def precision(self, prevalence: Prevalence, *, delta: float | None = None) -> Bounds:
        """Return a lower bound of the precision, the share of anomalies among alarms: eqs. (48) and (121).

        Parameters
        ----------
        prevalence : float or pair of floats
            The share of anomalies among future points, or a range of it; it is not checked.
        delta : float, optional
            The chance that the counted share of caught anomalies, which matters if the classes overlap, is
            less than its bound; by default the delta of the FNR.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> print(calibrate(range(1000), range(900, 1900)).precision(0.1))
        at least 0.672, with confidence 0.908819
        """
        low, _ = as_interval(prevalence)
        one = cast("Certificate", self)
        shares = shares_of(one, delta)
        if kept_by(one)[1] is None:
            raise InputError(
                "nothing is certified about missed anomalies, so the number of caught ones has no bound;"
                " ask for a ceiling of the FNR, or count new points without labels"
            )
        right, wrong = low * shares.caught, (1.0 - low) * shares.false_alarms
        return Bounds(right / (right + wrong), 1.0, shares.sure)

    def precision_from_unlabelled(self, scores: ArrayLike, *, delta: float = 0.05) -> Bounds:
        """Return a lower bound of the precision of future alarms from new points without labels: eq. (50).

        Only the normal points must be like those of the calibration. It is 0 if all alarms may be false.

        Parameters
        ----------
        scores : array-like of float
            The scores of all new points, undecided ones included, drawn independently of the calibration and
            not selected. NaN counts as undecided.
        delta : float
            The chance that the share of alarms is less than its bound.

        Examples
        --------
        >>> from pac_wrap import Guarantee, calibrate
        >>> certificate = calibrate(range(1000), [], Guarantee(max_fpr=0.01, max_fnr=None))
        >>> print(certificate.precision_from_unlabelled([*range(900), *range(2000, 2100)]))
        at least 0.89, with confidence 0.9
        """
        return self.precision_from_counts(self._counted(scores), delta)

    def precision_from_counts(self, counted: Counted, delta: float) -> Bounds:
        """Return a lower bound of the precision from counted verdicts."""
        promise = false_alarms_of(cast("Certificate", self))
        share, rate = lower_bound(counted.alarms, counted.points, delta), promise.ceiling
        low = 0.0
        if share > rate:
            low = 1.0 - rate / (1.0 - rate) / (share / (1.0 - share) if share < 1.0 else inf)
        return Bounds(low, 1.0, _left(promise.delta, delta))

    def prevalence_of(self, scores: ArrayLike, *, delta: float = 0.05) -> Bounds:
        """Return bounds of the share of anomalies among new points without labels: eq. (51).

        The lower bound is 0 without a certified ceiling of the FPR, the upper bound 1 without one of the FNR.
        The parameters are those of `precision_from_unlabelled`; delta also covers points declared normal.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> print(calibrate(range(1000), range(1100, 2100)).prevalence_of([*range(900), *range(2000, 2100)]))
        0.0366 to 0.124, with confidence 0.8
        """
        return self.prevalence_from_counts(self._counted(scores), delta)

    def prevalence_from_counts(self, counted: Counted, delta: float) -> Bounds:
        """Return bounds of the prevalence from counted verdicts."""
        one = cast("Certificate", self)
        fpr, fnr = kept_by(one)
        low, high, deltas = 0.0, 1.0, list[float]()
        if fpr is not None and one.rule.anomaly_from < inf:
            alarms = lower_bound(counted.alarms, counted.points, delta)
            low = max(0.0, (alarms - fpr.ceiling) / (1.0 - fpr.ceiling))
            deltas += [fpr.delta, delta]
        if fnr is not None and one.rule.normal_below > -inf:
            clears = lower_bound(counted.clears, counted.points, delta)
            high = min(1.0, (1.0 - clears) / (1.0 - fnr.ceiling))
            deltas += [fnr.delta, delta]
        return Bounds(low, max(low, high), _left(*deltas))

    def workload(self, prevalence: Prevalence, per: int = 1000, *, delta: float | None = None) -> Workload:
        """Return the expected numbers of alarms, true and false, misses and undecided points: eq. (49).

        It needs a ceiling of the FPR only; without a ceiling of the FNR, all anomalies may be missed.

        The other parameters are those of `precision`, but delta is by default that of each class's rate.

        Parameters
        ----------
        per : int
            The number of points.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(1000), range(1100, 2100)).workload((0.01, 0.02)).right.high
        20.0
        """
        low, high = as_interval(prevalence)
        count = check_count("per", per)
        shares = shares_of(cast("Certificate", self), delta)
        confidence = _left(*shares.deltas, *shares.extra)

        # in decimals, so that 1,000 times 0.05 times 0.05 is exactly 2.5
        least, most, false_alarms, caught, missed, normal, anomalous = (
            Decimal(repr(float(share)))
            for share in (low, high, shares.false_alarms, shares.caught, shares.missed, *shares.undecided)
        )

        def bounds(few: Decimal, many: Decimal) -> Bounds:
            return Bounds(float(count * few), float(count * min(many, Decimal(1))), confidence)

        return Workload(
            count,
            (low, high),
            alarms=bounds(least * caught, (1 - most) * false_alarms + most),
            right=bounds(least * caught, most),
            false_alarms=bounds(Decimal(0), (1 - least) * false_alarms),
            missed=bounds(Decimal(0), most * missed),
            undecided=bounds(Decimal(0), max((1 - p) * normal + p * anomalous for p in (least, most))),
            confidence=confidence,
        )

    def among_next(self, points: int, *, delta: float = 0.05) -> tuple[AmongNext, ...]:
        """Return the most errors among the next points of each population with a promise: eq. (143).

        The rate that a certificate promises is one of the long run; this is a number of tomorrow. It is exact
        over the calibration points and the next points together, for each promise by itself.

        Parameters
        ----------
        points : int
            How many points of the population come next: normal ones for the FPR, anomalies for the FNR, and
            all that come for promises about traffic. It must not depend on their scores.
        delta : float
            The chance that more of them are errors.

        Raises
        ------
        InputError
            If no promise bounds such a number. The calibration points must be draws, without weights, shift,
            label noise, coins or mistaken reviewers, and their scores must not choose the error budget.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> print(calibrate(range(1000), range(900, 1900)).among_next(500)[0])
        at most 29 of the next 500 normal points raise a false alarm, with confidence 0.962084
        """
        m, level = check_positive("points", points), check_rate("delta", delta)
        one, found = cast("Certificate", self), list[AmongNext]()
        for clause in one.clauses:
            asked, of = clause.asked, clause.of
            if asked is None:
                continue
            if asked.of_traffic and of.label == "normal":  # nobody knows which of the next points are normal
                of = Population("traffic")
            if why := _uncounted(one, clause, asked):
                found.append(AmongNext(of, m, why=why))
                continue
            n, k = clause.n, clause.errors or 0
            most = bisect_left(range(m), True, key=lambda v: batch_tail(v + 1, n, k, m) <= level)
            sure = floats.float_below(floats.confidence_left(batch_tail(most + 1, n, k, m)))
            found.append(AmongNext(of, m, most, sure))
        if all(one.most is None for one in found):
            raise InputError(str(found[0]))
        return tuple(found)

    def _counted(self, scores: ArrayLike) -> Counted:
        verdicts, missing = cast("Certificate", self).rule.decided(scores)
        return Counted.of(verdicts, missing.size)


def as_interval(prevalence: Prevalence) -> tuple[float, float]:
    """Return the least and the greatest prevalence."""
    ends = prevalence if isinstance(prevalence, tuple | list) else (prevalence, prevalence)
    if len(ends) == 2 and 0.0 < (low := as_float(ends[0])) <= (high := as_float(ends[1])) < 1.0:
        return low, high
    raise InputError(
        "prevalence must be a share between 0 and 1, or two shares, the smaller first;"
        f" got {quoted(prevalence)}"
    )


def _left(*deltas: float) -> float:
    return float(floats.confidence_left(*deltas))
