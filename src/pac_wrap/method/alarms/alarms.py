"""How many alarms are right, how many anomalies there are, and the work that follows: for certificates."""

from dataclasses import dataclass
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_float, check_count
from pac_wrap.base.floats import between, confidence_left, rounded_down, rounded_up, told
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.shares import Counted, count_verdicts, false_alarms_of, kept_by, shares_of
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import Assumption
from pac_wrap.method.thresholds import Evidence, Regime
from pac_wrap.tails.bounds import lower_bound

Prevalence = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a rate or a number, and the confidence with which they hold.

    Parameters
    ----------
    low, high : float
        It is at least the first and at most the second.
    confidence : float
        How surely it does.

    Examples
    --------
    >>> print(Bounds(0.71234, 1.0, 0.85))
    at least 0.712, with confidence 0.85
    """

    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        low = rounded_down(self.low, digits=told(self.low))
        high = rounded_up(self.high, digits=told(self.high))
        words = f"at least {low}" if self.high >= 1.0 else f"{low} to {high}"
        return f"{words}, with confidence {rounded_down(self.confidence)}"


@dataclass(frozen=True, slots=True)
class Workload:
    """What so many points bring on average, with bounds that all hold together with one confidence.

    Parameters
    ----------
    per : int
        How many points.
    prevalence : tuple of float
        The share of anomalies among them, from the least to the greatest.
    alarms, right, false_alarms, missed, undecided : Bounds
        How many points are alarms, anomalies and normal points among the alarms, anomalies declared normal,
        and abstained on. Where no ceiling of the FNR is certified, all anomalies may be missed.
    confidence : float
        1 minus all deltas that were used, added up.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> print(calibrate(range(1000), range(900, 1900)).workload(0.01))
    per 1,000 points at a prevalence of 0.01, on average and with confidence 0.8:
    alarms     9.23 to 59.5
    right      9.23 to 10
    false      at most 49.5
    missed     at most 0.5
    undecided  at most 76.1
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
        share = rounded_up(low) if low == high else f"{rounded_down(low, digits=4)} to {rounded_up(high)}"
        lines = [
            f"per {self.per:,} points at a prevalence of {share}, on average and with confidence"
            f" {rounded_down(self.confidence)}:"
        ]
        for name in ("alarms", "right", "false_alarms", "missed", "undecided"):
            found = getattr(self, name)
            lines.append(f"{name.partition('_')[0]:<10} {between(found.low, found.high)}")
        return "\n".join(lines)


class Worth:
    """What the alarms of a certificate are worth; a part of `Certificate`."""

    __slots__ = ()

    if TYPE_CHECKING:  # as in `Certified`
        certified: Guarantee | None
        rule: Rule
        regime: Regime
        normal: Evidence
        anomalous: Evidence
        weighting: Weighting | None
        assumptions: tuple[Assumption, ...]

        @property
        def overlap(self) -> Any:
            """What was done where the classes overlap: a `Strategy`."""

        @property
        def confidence(self) -> float:
            """How surely all ceilings hold together."""

        @property
        def confidences(self) -> dict[str, float]:
            """How surely each ceiling holds."""

    def precision(self, prevalence: Prevalence, *, delta: float | None = None) -> Bounds:
        """Return a lower bound of the precision, the share of anomalies among future alarms: eq. (48).

        Parameters
        ----------
        prevalence : float or pair of floats
            The share of anomalies among future points, or two between which it lies; not checked.
        delta : float, optional
            The chance that the share of anomalies that are caught, counted where the classes overlap, is
            less than its bound; by default that of the FNR.

        Returns
        -------
        Bounds
            The least precision, with the confidence of eq. (121).

        Raises
        ------
        InputError
            If the prevalence is no share, or nothing is certified that bounds the precision.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> print(calibrate(range(1000), range(900, 1900)).precision(0.1))
        at least 0.672, with confidence 0.908819
        """
        low, _ = as_interval(prevalence)
        shares = shares_of(self, delta)
        if kept_by(self).max_fnr is None:
            raise InputError(
                "nothing is certified about missed anomalies, so nothing bounds how many are caught;"
                " ask for a ceiling of the FNR, or count new points without labels"
            )
        right, wrong = low * shares.caught, (1.0 - low) * shares.false_alarms
        return Bounds(right / (right + wrong), 1.0, shares.sure)

    def precision_from_unlabelled(self, scores: ArrayLike, *, delta: float = 0.05) -> Bounds:
        """Return a lower bound of the precision from new points without labels: eq. (50).

        It is about all alarms that will come, not about those that are counted: of few, more may be false. No
        anomaly needs a label, and no prevalence is stated; only the normal points must be like those of
        the calibration. The bound is loose where alarms are hardly more frequent than false alarms may be.

        Parameters
        ----------
        scores : array-like of float
            The scores of new points, drawn independently of the calibration and chosen by nobody; those that
            will be undecided too. NaN counts as undecided.
        delta : float
            The chance that the share of alarms is less than its bound.

        Returns
        -------
        Bounds
            The least precision of future alarms; 0 if they may all be false.

        Raises
        ------
        InputError
            If scores are no numbers, or no ceiling of the FPR is certified.

        Examples
        --------
        >>> from pac_wrap import Guarantee, calibrate
        >>> certificate = calibrate(range(1000), [], Guarantee(max_fpr=0.01, max_fnr=None))
        >>> print(certificate.precision_from_unlabelled([*range(900), *range(2000, 2100)]))
        at least 0.89, with confidence 0.9
        """
        return self.precision_from_counts(count_verdicts(self.rule, scores), delta)

    def precision_from_counts(self, counted: Counted, delta: float) -> Bounds:
        """Return the same from counts of verdicts."""
        rate = false_alarms_of(self)
        share = lower_bound(counted.alarms, counted.points, delta)
        confidence = _left(kept_by(self).delta_fpr, delta)
        return Bounds(0.0 if share <= rate else 1.0 - _odds(rate) / _odds(share), 1.0, confidence)

    def prevalence_of(self, scores: ArrayLike, *, delta: float = 0.05) -> Bounds:
        """Return bounds of the share of anomalies among new points without labels: eq. (51).

        Parameters
        ----------
        scores : array-like of float
            The scores of new points; see `precision_from_unlabelled`.
        delta : float
            The chance that the share of alarms, or of points declared normal, is less than its bound.

        Returns
        -------
        Bounds
            From 0 where no ceiling of the FPR is certified, to 1 where none of the FNR is.

        Raises
        ------
        InputError
            If scores are no numbers, or nothing is certified.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> print(calibrate(range(1000), range(1100, 2100)).prevalence_of([*range(900), *range(2000, 2100)]))
        0.0366 to 0.124, with confidence 0.8
        """
        return self.prevalence_from_counts(count_verdicts(self.rule, scores), delta)

    def prevalence_from_counts(self, counted: Counted, delta: float) -> Bounds:
        """Return the same from counts of verdicts."""
        kept = kept_by(self)
        low, high, deltas = 0.0, 1.0, []
        if kept.max_fpr is not None and self.rule.anomaly_from < inf:
            alarms = lower_bound(counted.alarms, counted.points, delta)
            low = max(0.0, (alarms - kept.max_fpr) / (1.0 - kept.max_fpr))
            deltas += [kept.delta_fpr, delta]
        if kept.max_fnr is not None and self.rule.normal_below > -inf:
            clears = lower_bound(counted.clears, counted.points, delta)
            high = min(1.0, (1.0 - clears) / (1.0 - kept.max_fnr))
            deltas += [kept.delta_fnr, delta]
        return Bounds(low, max(low, high), _left(*deltas))

    def workload(self, prevalence: Prevalence, per: int = 1000, *, delta: float | None = None) -> Workload:
        """Return how many alarms, right and false ones, misses and undecided points to expect: eq. (49).

        Only a ceiling of the FPR is needed; without one of the FNR, nothing is said of how many anomalies are
        caught or missed but how many there are.

        Parameters
        ----------
        prevalence : float or pair of floats
            The share of anomalies among future points, or two between which it lies; not checked.
        per : int
            For how many points.
        delta : float, optional
            The chance that a share counted where the classes overlap exceeds its bound; by default that of
            the FNR for anomalies and that of the FPR for normal points.

        Returns
        -------
        Workload
            Bounds of the expected numbers, all of which hold together.

        Raises
        ------
        InputError
            If a number makes no sense, or nothing is certified that bounds the work.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(1000), range(1100, 2100)).workload((0.01, 0.02)).right.high
        20.0
        """
        low, high = as_interval(prevalence)
        count = check_count("per", per)
        shares = shares_of(self, delta)
        confidence = _left(*shares.deltas, *shares.extra)

        # in decimals, so that 1,000 times .05 times .05 is 2.5 and no more
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


def as_interval(prevalence: Prevalence) -> tuple[float, float]:
    """Return the least and the greatest prevalence."""
    ends = prevalence if isinstance(prevalence, tuple | list) else (prevalence, prevalence)
    if len(ends) == 2 and 0.0 < (low := as_float(ends[0])) <= (high := as_float(ends[1])) < 1.0:
        return low, high
    raise InputError(
        "prevalence must be a share between 0 and 1, or two of them, the smaller first;"
        f" got {quoted(prevalence)}"
    )


def _odds(share: float) -> float:
    return share / (1.0 - share) if share < 1.0 else inf


def _left(*deltas: float) -> float:
    return float(confidence_left(*deltas))
