"""Error rates of groups on held-out points, and bounds of the differences between groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isnan, nan
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.floats import confidence_left, rounded_down, rounded_up, shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.groups.values import Codes, Group, Lookup, shown
from pac_wrap.method.metrics import Metrics, all_exceeded, metrics_of
from pac_wrap.method.strategies.interface import Abstain, Hold
from pac_wrap.tails.bounds import beta_quantile, min_samples

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.groups.columns import Counts, Numbers

# groups that are written out before the rest is only counted
_LISTED: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeasured:
    """The counts of verdicts in each group, and the ceilings that are significantly exceeded."""

    groups: Sequence[Group]
    counts: "Counts"
    exceeded: tuple[tuple[Group, str], ...]

    @property
    def together(self) -> Metrics:
        """The rates over all groups, unseen groups included."""
        return metrics_of(self.counts.sum(axis=0))

    @property
    def unseen(self) -> int:
        """How many points belong to unseen groups."""
        return int(self.counts[-1].sum())

    def of(self, group: Group) -> Metrics:
        """Return the rates of one group."""
        place = Lookup(self.groups).place(group)
        if place is None:
            raise InputError(f"there is no group {shown(group)}; `groups` lists all of them")
        return metrics_of(self.counts[place])

    def worst_first(self) -> Iterator[tuple[Group, Metrics]]:
        """Yield the rates of each group with points: exceeded ceilings first, then by the larger rate."""
        sizes = np.maximum(1, self.counts[:-1].sum(axis=2))
        errors = np.stack([self.counts[:-1, 0, 1], self.counts[:-1, 1, 0]], axis=1)
        rate = (errors / sizes).max(axis=1)
        over = {group for group, _ in self.exceeded}
        fine = np.array([group not in over for group in self.groups])
        for place in np.lexsort((np.arange(fine.size), -rate, fine)).tolist():
            if self.counts[place].any():
                yield self.groups[place], metrics_of(self.counts[place])

    def __str__(self) -> str:
        rows = self.worst_first()
        listed = [(shown(group), metrics) for group, metrics in islice(rows, _LISTED)]
        listed.append(("all together", self.together))
        width = max(len(name) for name, _ in listed)
        lines = [f"{name:<{width}}  FPR {found.fpr}  FNR {found.fnr}" for name, found in listed]
        more = sum(1 for _ in rows)
        if more:
            lines.insert(-1, f"and {more:,} more")
        over = ", ".join(f"{rate} of {shown(group)}" for group, rate in self.exceeded[:_LISTED])
        if len(self.exceeded) > _LISTED:
            over += f" and {len(self.exceeded) - _LISTED:,} more"
        return "\n".join([*lines, f"significantly above its ceiling: {over or 'none'}"])


def tallied(verdicts: NDArray[np.int8], marks: NDArray[np.bool_], places: Codes, groups: int) -> "Counts":
    """Return the counts of verdicts 0, 1 and -1 in each class of each group; unseen groups come last."""
    place = np.where(places < 0, groups, places)
    codes = 6 * place + 3 * marks + np.where(verdicts < 0, 2, verdicts)
    return np.bincount(codes, minlength=6 * (groups + 1)).reshape(-1, 2, 3)


def measured(certificate: "GroupCertificate", counts: "Counts") -> GroupMeasured:
    """Return the measured rates of groups, tested against their own promises, not those of the pool."""
    columns, groups = certificate.columns, certificate.groups
    ceilings = np.where(columns.kept & ~certificate.pooled, columns.ceilings, nan)
    for label, wrong in enumerate(certificate.asked.label_noise or ()):
        if wrong is not None:
            different, places = np.unique(ceilings[label], return_inverse=True)
            counted = [one if isnan(one) else wrong.counted(one) for one in different.tolist()]
            ceilings[label] = np.array(counted)[places]
    errors = np.concatenate([counts[:-1, 0, 1], counts[:-1, 1, 0]])
    over = all_exceeded(errors, counts[:-1].sum(axis=2).T.ravel(), ceilings.ravel())
    sides = (divmod(place, len(groups)) for place in over)
    return GroupMeasured(groups, counts, tuple((groups[at], ("FPR", "FNR")[label]) for label, at in sides))


# quantiles are good to about 1e-10; bounds are moved outwards by more
_OUTWARDS = 1e-9


@dataclass(frozen=True, slots=True)
class Gap:
    """The bound of the difference between one error rate of any two groups, each with its own rule: eq. (58).

    Attributes
    ----------
    rate : str
        The error rate, FPR or FNR.
    bound : float or None
        The largest possible difference of any two groups; None if fewer than two groups have a budget.
    delta : float
        The chance that any two groups differ by more.
    farthest : tuple
        The two groups that may differ that much, the one with the larger rate first.
    groups : tuple
        The compared groups, which have enough labels, the highest bound first.
    low, high : tuple of float
        The bounds of the rate of each group.
    left_out : int
        How many groups have too few labels for their own rule, including groups that follow a pool.
    """

    rate: str
    bound: float | None
    delta: float
    farthest: tuple[Group, ...]
    groups: tuple[Group, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    left_out: int

    def __str__(self) -> str:
        left = f" Not compared, for lack of labels of their own: {self.left_out:,}." if self.left_out else ""
        if self.bound is None:
            return f"{self.rate}: there are no two groups with enough labels to compare.{left}"
        first, second = map(shown, self.farthest)
        confidence = rounded_down(confidence_left(self.delta), 100, 4)
        return (
            f"{self.rate}: no two of {len(self.groups):,} groups, each under its own rule, differ by more"
            f" than {rounded_up(self.bound, 100, 3)} percentage points (confidence {confidence} %, in"
            f" addition to the promises); {first} and {second} may differ by that much.{left}"
        )


@dataclass(frozen=True, slots=True)
class Gaps:
    """Bounds of the differences between groups, one for each rate; None for a rate without a ceiling."""

    fpr: Gap | None
    fnr: Gap | None

    def __str__(self) -> str:
        return "\n".join(str(gap) for gap in (self.fpr, self.fnr) if gap is not None)


def gaps_of(certificate: "GroupCertificate", delta: float) -> Gaps:
    """Return bounds of the differences between groups, without those that follow a pool: eq. (115)."""
    delta = check_rate("delta", delta)
    columns, overlap, asked = certificate.columns, certificate.request.overlap, certificate.request.guarantee
    promises = asked.fpr, asked.fnr
    least = [0 if one is None else min_samples(one.at_calibration, one.delta) for one in promises]
    enough = columns.n >= np.array(least)[:, None]
    # a single threshold needs labels of both classes; one of two, or one that decides alone, its own
    if not isinstance(overlap, Abstain):
        enough = np.broadcast_to(enough.all(axis=0), enough.shape)
    sides: list[Gap | None] = [None, None]
    for label, rate in enumerate(("FPR", "FNR")):
        if promises[label] is None:
            continue
        compared = np.flatnonzero(enough[label] & ~certificate.pooled)
        n, errors = columns.n[label, compared], columns.errors[label, compared]
        share = shared_together(delta, compared.size)
        if isinstance(overlap, Abstain | Hold) and rate in overlap.keeps:
            low, high = bounds(n, errors, columns.budget[label, compared], share)
        else:
            counts = 1 if isinstance(overlap, Hold) and overlap.always else np.maximum(1, n)
            low, high = counted_bounds(n, errors, share / (2.0 * counts))
        order = np.argsort(-high, kind="stable")
        low, high = low[order], high[order]
        names = [certificate.groups[place] for place in compared[order].tolist()]
        # the upper bound of one group and the lower one of another
        least, most = np.argsort(low, kind="stable")[:2].tolist(), range(min(2, low.size))
        pairs = [(float(high[one] - low[two]), one, two) for one in most for two in least if one != two]
        bound, *farthest = max(pairs, default=(None,))
        apart, ends = tuple(names[place] for place in farthest), (tuple(low.tolist()), tuple(high.tolist()))
        sides[label] = Gap(rate, bound, delta, apart, tuple(names), *ends, columns.size - compared.size)
    return Gaps(*sides)


def bounds(n: "Counts", errors: "Counts", budget: "Counts", delta: float) -> "tuple[Numbers, Numbers]":
    """Return the bounds of groups whose budget set their threshold; any fails with delta: eq. (57)."""
    low, _ = counted_bounds(n, errors, delta / (2.0 * np.maximum(1, budget)))
    _, high = counted_bounds(n, budget, delta / 2.0)
    return low, high


def counted_bounds(n: "Counts", errors: "Counts", level: "Numbers | float") -> "tuple[Numbers, Numbers]":
    """Return the lower and the upper bound of each rate, each failing with a level: eq. (59), eq. (114)."""
    some, others = np.maximum(errors, 1), np.maximum(n - errors, 1.0)
    low = np.where(errors > 0, beta_quantile(some, n - errors + 1.0, level, above=False), 0.0)
    high = np.where(errors < n, beta_quantile(errors + 1.0, others, level, above=True), 1.0)
    return low * (1.0 - _OUTWARDS), np.minimum(1.0, high * (1.0 + _OUTWARDS))
