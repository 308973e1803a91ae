"""Certificates of many groups as columns of numbers: what differs from group to group, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import copysign, inf, isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.floats import ScoreType, order_key, shared_together
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.clause import clause_of
from pac_wrap.method.promise import OF_DRAWS, Guarantee, Promise, assumed
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.interface import NO_COUNT as NO_COUNT
from pac_wrap.method.strategies.interface import Found, asked_of, count_of, each, none_of
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.tails.bounds import common_share, keeps_together, min_samples

if TYPE_CHECKING:
    from pac_wrap.method.request import Request

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Sums = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What the certificates of many groups say: a place for each group, and where rows, normal first.

    `n`, `digest`, `crossing` are those of the evidence, `errors` the calibration points that the rule
    misjudges, `rate`, `delta` and `budget` those of the budgets, `thresholds` alarm_from and clear_below,
    `rule` normal_below and anomaly_from, `ceilings` and `deltas` those certified. NaN or -1 stand for None.
    """

    n: Counts
    digest: Sums
    crossing: Counts
    errors: Counts
    rate: Numbers
    delta: Numbers
    budget: Counts
    thresholds: Numbers
    rule: Numbers
    ceilings: Numbers
    deltas: Numbers
    separable: Counts

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.n.shape[1])

    @property
    def vacuous(self) -> NDArray[np.bool_]:
        """Which groups have too few labels of a promised class."""
        few: NDArray[np.bool_] = ((self.budget == NO_COUNT) & ~np.isnan(self.rate)).any(axis=0)
        return few

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which groups are promised less than was asked for."""
        uncertified: NDArray[np.bool_] = np.isnan(self.deltas[0])
        return self.vacuous | uncertified

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Of which class each group has labels enough for its promise, even if the other lacks them."""
        unknown = np.isnan(self.ceilings) | np.isnan(self.deltas[0])
        promised: NDArray[np.bool_] = (self.budget != NO_COUNT) & ~unknown
        return promised

    @property
    def watchable(self) -> NDArray[np.bool_]:
        """Which groups have a promise that can be broken: a ceiling, and a verdict that is given at all."""
        given = np.stack([self.rule[1] < inf, self.rule[0] > -inf])
        promised = (given & ~np.isnan(self.ceilings)).any(axis=0) & ~np.isnan(self.deltas[0])
        return np.asarray(promised)

    def at(self, place: int, request: "Request", score_type: ScoreType) -> Certificate:
        """Return the certificate of a group, as `calibrate` makes it."""
        certified, asked, clauses = not isnan(self.deltas[0, place]), request.guarantee, []
        for label, one in enumerate(asked_of(asked)):
            edge = self.thresholds[label, place].item()
            edge = 0.0 if isnan(edge) else edge
            found = Found(
                self.rate[label, place].item(),
                self.delta[label, place].item(),
                self.budget[label, place].item(),
                # the least threshold above a number next to zero is -0.0, and has a key of its own
                order_key(edge) - (not edge and copysign(1.0, edge) < 0.0),
                self.ceilings[label, place].item(),
                self.deltas[label, place].item(),
            )
            points = self.n[label, place].item(), as_digest(self.digest[label, place].item())
            beyond = none_of(self.crossing[label, place].item())
            clauses.append(clause_of(one, found, points, beyond, certified=certified))
        separable = none_of(self.separable[place].item())
        return Certificate(
            guarantee=asked,
            overlap=request.overlap,
            clauses=tuple(clauses),
            rule=Rule(*self.rule[:, place].tolist()),
            score_type=score_type,
            separable=None if separable is None else bool(separable),
            assumptions=assumed(OF_DRAWS, **asked.rooms),
        )

    def same(self, other: "Columns") -> NDArray[np.bool_]:
        """Return where two tables of as many groups agree; rates, which are SciPy's, to the last digits."""
        agree = np.ones(self.size, dtype=bool)
        for field in fields(self):
            one, two = np.atleast_2d(getattr(self, field.name), getattr(other, field.name))
            if field.name in ("rate", "ceilings"):
                equal = np.isclose(one, two, rtol=1e-9, atol=0.0, equal_nan=True)
            else:
                equal = (one == two) | ((one != one) & (two != two))
            agree &= equal.all(axis=0)
        return agree

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns) or other.size != self.size:
            return NotImplemented if not isinstance(other, Columns) else False
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return all(np.array_equal(one, two, equal_nan=one.dtype.kind == "f") for one, two in pairs)

    def __hash__(self) -> int:
        return hash((self.size, int(self.digest.sum())))


def joined(parts: Iterable[Columns]) -> Columns:
    """Return the columns of several tables of groups as one."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    names = [field.name for field in fields(Columns)]
    return Columns(*(np.concatenate([getattr(one, name) for one in listed], axis=-1) for name in names))


def permuted(columns: Columns, order: NDArray[np.intp]) -> Columns:
    """Return the columns with the groups in another order."""
    return Columns(*(getattr(columns, field.name)[..., order] for field in fields(columns)))


def budgets_of(promise: Promise | None, sizes: Counts) -> Counts:
    """Return the error budget of each size, -1 where it is too small or nothing is promised."""
    if promise is None:
        return np.full(sizes.size, NO_COUNT)
    found: Counts = each(lambda n: (count_of(promise.budget(n).errors),), sizes)[0]
    return found


def shares_of(asked: Guarantee, overlap: Overlap, n: Counts, pool: bool) -> tuple[float, float]:
    """Return the deltas of each group with which all groups keep what is asked together: eqs. (111) to (113).

    They depend on the numbers of labels alone, in whatever order the groups come.

    >>> n = np.array([[300, 300, 20], [300, 40, 20]])
    >>> shares_of(Guarantee(), Abstain(), n, pool=False)
    (0.03406, 0.05)
    """
    promises = asked.fpr, asked.fnr
    equal = [shared_together(delta, n.shape[1]) for delta in (asked.delta_fpr, asked.delta_fnr)]
    if not isinstance(overlap, Abstain | Hold):
        return equal[0], equal[1]
    found = [asked.delta_fpr, asked.delta_fnr]
    while True:
        before = found[0], found[1]
        for label, sizes in enumerate(_samples(asked, n, before, pool)):
            promise = promises[label]
            if promise is None:
                found[label] = equal[label]
            elif promise.name in overlap.keeps:
                found[label] = common_share(sizes, promise.at_calibration, promise.delta, before[label])
        # a lower delta leaves more groups to the pool, so that another one may be needed
        if not pool or before == (found[0], found[1]):
            break
    for label, promise in enumerate(promises):
        if promise is not None and promise.name not in overlap.keeps:
            found[label] = _counted_share(asked, n, label, found[1 - label])
    return found[0], found[1]


def are_kept(asked: Guarantee, overlap: Overlap, n: Counts, pool: bool, shares: tuple[float, float]) -> bool:
    """Return whether all groups keep what is asked together if each has these deltas: eqs. (111) to (113)."""
    samples = _samples(asked, n, shares, pool)
    for label, promise in enumerate((asked.fpr, asked.fnr)):
        delta = (asked.delta_fpr, asked.delta_fnr)[label]
        if shares[label] <= shared_together(delta, n.shape[1]):
            continue
        if promise is None or not isinstance(overlap, Abstain | Hold):
            return False
        if promise.name in overlap.keeps:
            if not keeps_together(samples[label], promise.at_calibration, shares[label], promise.delta):
                return False
        elif shares[label] > _counted_share(asked, n, label, shares[1 - label]):
            return False
    return True


def _counted_share(asked: Guarantee, n: Counts, label: int, held: float) -> float:
    """Return the delta of the class that `hold` counts, where the other, held one has its own: eq. (112)."""
    other, promise = (asked.fpr, asked.fnr)[1 - label], (asked.fpr, asked.fnr)[label]
    assert other is not None  # nothing is held with a single ceiling
    assert promise is not None
    counted = (n[1 - label] >= min_samples(other.at_calibration, held)) & (n[label] > 0)
    return shared_together(promise.delta, int(np.count_nonzero(counted)))


def _samples(asked: Guarantee, n: Counts, shares: tuple[float, ...], pool: bool) -> tuple[Counts, Counts]:
    """Return the sizes of the samples of each class that have a promise, the pool being one of them."""
    if not pool:
        return n[0], n[1]
    least = [
        0 if promise is None else min_samples(promise.at_calibration, share)
        for promise, share in zip((asked.fpr, asked.fnr), shares, strict=True)
    ]
    few = (n < np.array(least)[:, None]).any(axis=0)
    together = n[:, few].sum(axis=1)
    if not few.any() or (together < least).any():  # then each group keeps what its own labels promise
        return n[0], n[1]
    normal, anomalous = (np.append(n[label, ~few], together[label]) for label in (0, 1))
    return normal, anomalous
