"""Error rates of verdicts against labels, each with its exact interval; abstentions are counted apart."""

from dataclasses import dataclass, fields
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.binomial import interval, lower_bound
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import as_anomaly_mask, as_array, check_rate
from pac_wrap.thresholds import Verdict


@dataclass(frozen=True, slots=True)
class Rate:
    """A counted share with its exact (Clopper-Pearson) interval; `value` is NaN where n is 0."""

    count: int
    n: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.n if self.n else nan

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]" if self.n else "no points"


@dataclass(frozen=True, slots=True)
class Metrics:
    """How verdicts did on labelled points that were not used to calibrate.

    An abstention is not an error, but it stays in the denominator: FPR = P(verdict 1 | normal).
    """

    fpr: Rate
    fnr: Rate
    err: Rate
    ambiguity: Rate
    abstained_normal: Rate
    abstained_anomalous: Rate

    def __str__(self) -> str:
        return "\n".join(
            f"{field.name.replace('_', ' '):<20} {getattr(self, field.name)}" for field in fields(self)
        )


def evaluate(
    verdicts: ArrayLike,
    labels: ArrayLike,
    *,
    anomaly_label: object = 1,
    confidence: float = 0.95,
) -> Metrics:
    """Return the error and abstention rates of verdicts, each with its exact interval.

    >>> metrics = evaluate([0, 1, -1, 1], [0, 0, 0, 1])
    >>> metrics.fpr.count, metrics.fpr.n, metrics.abstained_normal.count
    (1, 3, 1)
    >>> print(metrics.fnr)
    0.0000 [0.0000, 0.9750]
    """
    check_rate("confidence", confidence)
    mask = as_anomaly_mask(labels, anomaly_label)
    given = _as_verdicts(verdicts)
    if given.size != mask.size:
        raise InputError(
            f"verdicts and labels must have the same length, got {given.size:,} and {mask.size:,}"
        )

    def rate(hits: NDArray[np.bool_], among: int) -> Rate:
        count = int(np.count_nonzero(hits))
        return Rate(count, among, *interval(count, among, confidence))

    anomalous = int(np.count_nonzero(mask))
    normal = mask.size - anomalous
    abstained = given == Verdict.ABSTAIN
    false_alarms = (given == Verdict.ANOMALY) & ~mask
    misses = (given == Verdict.NORMAL) & mask
    return Metrics(
        fpr=rate(false_alarms, normal),
        fnr=rate(misses, anomalous),
        err=rate(false_alarms | misses, mask.size),
        ambiguity=rate(abstained, mask.size),
        abstained_normal=rate(abstained & ~mask, normal),
        abstained_anomalous=rate(abstained & mask, anomalous),
    )


def exceeded(metrics: Metrics, promised: Guarantee, delta: float = 0.05) -> tuple[str, ...]:
    """Return the rates, FPR or FNR, that are significantly above their ceilings.

    Significant means that the exact lower bound at confidence 1 - delta lies above the ceiling.

    >>> exceeded(evaluate([1] * 10, [0] * 10), Guarantee(max_fpr=0.05))
    ('FPR',)
    """
    sides = (("FPR", metrics.fpr, promised.max_fpr), ("FNR", metrics.fnr, promised.max_fnr))
    return tuple(
        name
        for name, rate, ceiling in sides
        if ceiling is not None and lower_bound(rate.count, rate.n, delta) > ceiling
    )


def _as_verdicts(verdicts: ArrayLike) -> NDArray[np.int8]:
    array = as_array(verdicts, "verdicts")
    known = np.isin(array, [int(verdict) for verdict in Verdict])
    if array.ndim != 1 or not known.all():
        found = repr(array[~known].tolist()[0]) if array.ndim == 1 else f"shape {array.shape}"
        raise InputError(f"verdicts must be a list of 1, 0 and -1 (abstained), got {found}")
    return array.astype(np.int8)
