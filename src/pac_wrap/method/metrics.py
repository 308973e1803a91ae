"""Error rates of verdicts against labels, with exact intervals; abstentions are counted separately."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import nan
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from pac_wrap.base.arguments import as_anomaly_mask, as_array, check_aligned, check_rate, check_same_length
from pac_wrap.base.floats import equal_share, rounded_up
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import LABELS, Clause, Guarantee, Label
from pac_wrap.method.rule import Counted, Verdict
from pac_wrap.tails.bounds import Rate, sf_at_most

Tally = NDArray[np.int64]
_SIGNIFICANT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Metrics:
    """The error and abstention rates of verdicts on held-out labelled points.

    An abstention is not an error, but it stays in the denominator: FPR = P(verdict 1 | normal).

    Attributes
    ----------
    fpr, fnr, err : Rate
        The shares of false alarms among normal points, misses among anomalous points, and both among all.
    ambiguity, abstained_normal, abstained_anomalous : Rate
        The shares of abstentions among all points, and among the points of each class.
    """

    fpr: Rate
    fnr: Rate
    err: Rate
    ambiguity: Rate
    abstained_normal: Rate
    abstained_anomalous: Rate

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of normal and of anomalous points."""
        return self.fpr.n, self.fnr.n

    @property
    def verdicts(self) -> Counted:
        """How many points got each verdict."""
        caught = self.fnr.n - self.fnr.count - self.abstained_anomalous.count
        cleared = self.fpr.n - self.fpr.count - self.abstained_normal.count
        return Counted(self.fpr.count + caught, cleared + self.fnr.count, sum(self.sizes))

    def __str__(self) -> str:
        names = [one.name for one in fields(self)]
        return "\n".join(f"{name.replace('_', ' '):<20} {getattr(self, name)}" for name in names)


@dataclass(frozen=True, slots=True)
class ExactViolation:
    """The probability, over draws of the calibration points, that a rate exceeds its ceiling.

    Attributes
    ----------
    fpr, fnr : float or None
        The probability for each rate; None without a ceiling.
    """

    fpr: float | None
    fnr: float | None


@dataclass(frozen=True, slots=True)
class ViolationRate:
    """The results of simulated calibrations: how many broke a ceiling, and their average rates.

    Attributes
    ----------
    fpr, fnr : Rate or None
        The share of calibrations that exceeded the ceiling of each rate; None without a ceiling.
    mean_fpr, mean_fnr, ambiguity : float or None
        The average error rates, and the average share of abstentions.
    separated : Rate
        The share of calibrations with separated classes, so that one threshold was enough.
    """

    fpr: Rate | None
    fnr: Rate | None
    mean_fpr: float | None
    mean_fnr: float | None
    ambiguity: float
    separated: Rate

    @classmethod
    def counted(
        cls,
        guarantee: Guarantee,
        rates: Iterable[NDArray[np.float64] | None],
        ambiguity: float,
        separated: NDArray[np.bool_],
        confidence: float,
    ) -> Self:
        """Return a summary of calibrations, given the false positive and false negative rates of each."""

        def share(hits: NDArray[np.bool_]) -> Rate:
            return Rate.of(int(np.count_nonzero(hits)), hits.size, confidence)

        (fpr, mean_fpr), (fnr, mean_fnr) = (
            (None, None) if ceiling is None or rate is None else (share(rate > ceiling), float(rate.mean()))
            for rate, ceiling in zip(rates, (guarantee.max_fpr, guarantee.max_fnr), strict=True)
        )
        return cls(fpr, fnr, mean_fpr, mean_fnr, ambiguity, share(separated))


def errors_within(ceiling: float, n: int) -> int:
    """Return the most errors among n points whose share does not exceed a ceiling."""
    errors = round(ceiling * n)
    return errors - (errors / n > ceiling)


def evaluate(
    verdicts: ArrayLike, labels: ArrayLike, *, anomaly_label: object = 1, confidence: float = 0.95
) -> Metrics:
    """Return the error and abstention rates of verdicts, each with its exact interval.

    Parameters
    ----------
    verdicts : array-like of int
        1 (anomaly), 0 (normal) or -1 (abstain) for each point.
    labels : array-like
        The label of each point.
    anomaly_label : object
        The label that marks an anomaly.
    confidence : float
        The confidence of each interval.

    Returns
    -------
    Metrics

    Raises
    ------
    InputError
        If verdicts and labels differ in length, or one of them has a wrong value.

    Examples
    --------
    >>> metrics = evaluate([0, 1, -1, 1], [0, 0, 0, 1])
    >>> metrics.fpr.count, metrics.fpr.n, metrics.abstained_normal.count
    (1, 3, 1)
    >>> print(metrics.fnr)
    0.0000 [0.0000, 0.9750]
    """
    check_rate("confidence", confidence)
    check_aligned("verdicts", verdicts, "labels", labels)
    mask = as_anomaly_mask(labels, anomaly_label)
    given = as_verdicts(verdicts)
    check_same_length("verdicts", given.size, "labels", mask.size)
    return metrics_of(tally(given, mask), confidence)


def tally(verdicts: NDArray[np.int8], anomalous: NDArray[np.bool_] | bool) -> Tally:
    """Return the counts of verdicts 0, 1 and -1 (columns) in each class (rows); counts can be added."""
    # -1 is the last of three columns
    places = np.where(verdicts < 0, 2, verdicts) + 3 * anomalous
    return np.bincount(places, minlength=6).reshape(2, 3)


def metrics_of(counts: Tally, confidence: float = 0.95) -> Metrics:
    """Return the rates that follow from the counts of a tally."""
    (cleared, alarms, left_normal), (misses, caught, left_anomalous) = counts.tolist()
    normal, anomalous = cleared + alarms + left_normal, misses + caught + left_anomalous

    rates = (
        (alarms, normal),
        (misses, anomalous),
        (alarms + misses, normal + anomalous),
        (left_normal + left_anomalous, normal + anomalous),
        (left_normal, normal),
        (left_anomalous, anomalous),
    )
    return Metrics(*(Rate.of(count, n, confidence) for count, n in rates))


def all_exceeded(errors: ArrayLike, n: ArrayLike, ceilings: ArrayLike) -> list[int]:
    """Return the places of rates significantly above their ceilings, by Holm's steps at 5 %: eq. (24)."""
    counts, sizes, rates = np.asarray(errors), np.asarray(n), np.asarray(ceilings, dtype=np.float64)
    tested = (sizes > 0) & ~np.isnan(rates)
    left = int(np.count_nonzero(tested))
    above = np.flatnonzero(tested & (counts > rates * sizes))
    counts, sizes, rates = counts[above], sizes[above], rates[above]
    chances = betainc(counts, sizes - counts + 1, rates)
    found: list[int] = []
    # chances too small for a double are ordered by how far the rate is above its ceiling
    for one in np.lexsort((-counts / (sizes * rates), chances)).tolist():
        level = equal_share(1.0 - _SIGNIFICANT, left - len(found))
        if not sf_at_most(int(counts[one]), int(sizes[one]), float(rates[one]), level):
            break
        found.append(int(above[one]))
    return found


def as_verdicts(verdicts: ArrayLike) -> NDArray[np.int8]:
    """Return verdicts as int8; values other than 1, 0 and -1 raise an error."""
    array = as_array(verdicts, "verdicts")
    if array.dtype.names:
        raise InputError("verdicts must be a list of 1, 0 and -1 (abstained), got rows of several fields")
    known = np.isin(array, [int(verdict) for verdict in Verdict])
    if array.ndim != 1 or not known.all():
        found = repr(array[~known].tolist()[0]) if array.ndim == 1 else f"shape {array.shape}"
        raise InputError(f"verdicts must be a list of 1, 0 and -1 (abstained), got {found}")
    return array.astype(np.int8)


@dataclass(frozen=True, slots=True)
class Measured:
    """The error rate of one kind or class on held-out points, with its ceiling.

    Attributes
    ----------
    name : str
        The name of the kind or class.
    ceiling : float or None
        The promised ceiling; None without a promise.
    rate, abstained : Rate
        The share of errors, and the share of points that were left undecided.
    exceeded : bool
        Whether the rate is significantly above its ceiling; rates measured together form one family of tests.
    """

    name: str
    ceiling: float | None
    rate: Rate
    abstained: Rate
    exceeded: bool

    @classmethod
    def together(
        cls, counted: Iterable[tuple[str, float | None, Sequence[int]]], confidence: float = 0.95
    ) -> "tuple[Measured, ...]":
        """Return the rates of several kinds or classes, with one test of all ceilings at 5 %: eq. (24)."""
        rows = list(counted)
        tops = [nan if ceiling is None else ceiling for _, ceiling, _ in rows]
        errors, sizes = ([counts[place] for *_, counts in rows] for place in (0, 2))
        over = all_exceeded(errors, sizes, tops)
        return tuple(
            cls(name, ceiling, Rate.of(wrong, n, confidence), Rate.of(left, n, confidence), place in over)
            for place, (name, ceiling, (wrong, left, n)) in enumerate(rows)
        )

    @property
    def finding(self) -> str:
        """The comparison of the rate with its ceiling, in a few words."""
        if self.ceiling is None:
            return "nothing promised"
        if self.exceeded or not self.rate.n:
            return "exceeded" if self.exceeded else "no points"
        return "within" if self.rate.value <= self.ceiling else "above, not significantly"

    def __str__(self) -> str:
        ceiling = "none" if self.ceiling is None else rounded_up(self.ceiling)
        return f"{self.name}: {self.rate}, ceiling {ceiling}, {self.finding}"


def measured_traffic(clauses: "Iterable[Clause]", found: Metrics) -> tuple[Measured, ...]:
    """Return the shares that promises about traffic bound, measured on labelled points of traffic."""
    wrong, points, undecided = found.fpr.count, sum(found.sizes), found.ambiguity.count
    normal = wrong, found.abstained_normal.count, found.fpr.n
    counts = {
        "max_alarms": ("alarms", (found.verdicts.alarms, undecided, points)),
        "max_false_alarms": ("false alarms", (wrong, undecided, points)),
        "max_fpr": ("FPR", normal),
        "min_precision": ("wrong alarms", (wrong, 0, found.verdicts.alarms)),
        "max_fnr": ("FNR", (found.fnr.count, found.abstained_anomalous.count, found.fnr.n)),
    }
    ceilings = {one.of.option: one.ceiling for one in clauses if one.kept}
    return Measured.together((name, ceilings.get(of), own) for of, (name, own) in counts.items())


def measured_kinds(
    clauses: Iterable[Clause], counts: Mapping[Label, Mapping[str | None, Tally]], confidence: float = 0.95
) -> tuple[Measured, ...]:
    """Return the measured rates from tallies by class and kind; None stands for a class without kinds."""
    ceilings = {(one.of.label, one.of.kind): one.ceiling if one.kept else None for one in clauses}
    rows = []
    for wrong, label in zip((1, 0), LABELS, strict=True):
        own = counts[label]
        whole = sum(own.values(), np.zeros(3, dtype=np.int64))
        for kind, found in (dict(own) | {None: whole}).items():
            name = f"{label} {'points' if kind is None else quoted(kind)}"
            tallied = int(found[wrong]), int(found[2]), int(found.sum())
            rows.append((name, ceilings.get((label, kind)), tallied))
    return Measured.together(rows, confidence)
