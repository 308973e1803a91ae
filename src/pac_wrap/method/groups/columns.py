"""Certificates of many groups as columns of numbers: what differs from group to group, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import ScoreType
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.promise import Budget, Guarantee, Promise
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import OF_DRAWS, assumed
from pac_wrap.method.thresholds import Evidence, Thresholds, find_regime
from pac_wrap.ranks.kernels import as_digest

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Sums = NDArray[np.uint64]
# what stands for None in a column of counts; in one of numbers NaN does
NO_COUNT: Final = -1


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

    def at(self, place: int, request: Request, score_type: ScoreType) -> Certificate:
        """Return the certificate of a group, as `calibrate` makes it."""
        sides = []
        for label in (0, 1):
            n, crossing = int(self.n[label, place]), int(self.crossing[label, place])
            rate, delta = float(self.rate[label, place]), float(self.delta[label, place])
            budget = None if isnan(rate) else Budget.of(n, rate, delta)
            digest = as_digest(int(self.digest[label, place]))
            sides.append(Evidence(n, digest, budget, None if crossing == NO_COUNT else crossing))
        thresholds = Thresholds(*(_known(number) for number in self.thresholds[:, place]))
        ceilings = [_known(number) for number in self.ceilings[:, place]]
        deltas = [float(number) for number in self.deltas[:, place]]
        separable, asked = int(self.separable[place]), request.guarantee
        room: dict[str, Any] = {"shift": asked.shift, "label_noise": asked.label_noise}
        return Certificate(
            guarantee=asked,
            overlap=request.overlap,
            certified=None if isnan(deltas[0]) else Guarantee(*ceilings, *deltas, **room),
            rule=Rule(*(float(number) for number in self.rule[:, place])),
            thresholds=thresholds,
            regime=find_regime(thresholds, sides[0].budget, sides[1].budget),
            normal=sides[0],
            anomalous=sides[1],
            score_type=score_type,
            separable=None if separable == NO_COUNT else bool(separable),
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


def columns_of(certificates: Iterable[tuple[Certificate, tuple[int, int]]]) -> Columns:
    """Return certificates, each with the points of each class that its rule misjudges, as columns."""
    rows = []
    for one, errors in certificates:
        sides = (one.normal, one.anomalous)
        made = one.certified
        rows.append(
            (
                [side.n for side in sides],
                [int(side.digest or "0", 16) for side in sides],
                [_count(side.crossing) for side in sides],
                errors,
                [None if side.budget is None else side.budget.rate for side in sides],
                [None if side.budget is None else side.budget.delta for side in sides],
                [_count(None if side.budget is None else side.budget.errors) for side in sides],
                [one.thresholds.alarm_from, one.thresholds.clear_below],
                [one.rule.normal_below, one.rule.anomaly_from],
                [None, None] if made is None else [made.max_fpr, made.max_fnr],
                [None, None] if made is None else [made.delta_fpr, made.delta_fnr],
                [_count(one.separable)],
            )
        )
    kinds = (
        np.int64,
        np.uint64,
        np.int64,
        np.int64,
        *[np.float64] * 2,
        np.int64,
        *[np.float64] * 4,
        np.int64,
    )
    made_of: list[Any] = [
        np.array(part, dtype=kind).T for part, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    names = [field.name for field in fields(Columns)]
    return Columns(**dict(zip(names, (*made_of[:-1], made_of[-1][0]), strict=True)))


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
    different, places = np.unique(sizes, return_inverse=True)
    found = [promise.budget(n).errors for n in different.tolist()]
    return np.array([_count(one) for one in found], dtype=np.int64)[places.reshape(-1)]


def _known(number: float) -> float | None:
    return None if isnan(number) else float(number)


def _count(number: int | None) -> int:
    return NO_COUNT if number is None else int(number)
