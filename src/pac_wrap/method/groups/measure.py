"""How the rules of groups do on labelled points that were not used to calibrate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isnan, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.method.groups.columns import Columns, Counts
from pac_wrap.method.groups.values import Codes, Group, Lookup, shown
from pac_wrap.method.metrics import Metrics, all_exceeded, metrics_of
from pac_wrap.method.robust.shift_and_noise import LabelNoise

# groups that are written out before the rest is only counted
_LISTED: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeasured:
    """The verdicts counted in each group, and which ceilings are significantly exceeded."""

    groups: Sequence[Group]
    counts: Counts
    exceeded: tuple[tuple[Group, str], ...]

    @property
    def together(self) -> Metrics:
        """The rates over all groups, those never seen included."""
        return metrics_of(self.counts.sum(axis=0))

    @property
    def unseen(self) -> int:
        """How many points belong to groups that were never seen."""
        return int(self.counts[-1].sum())

    def of(self, group: Group) -> Metrics:
        """Return the rates of one group."""
        place = Lookup(self.groups).place(group)
        if place is None:
            raise InputError(f"there is no group {shown(group)}; `groups` lists all of them")
        return self.of_place(place)

    def of_place(self, place: int) -> Metrics:
        """Return the rates of the group at a place."""
        return metrics_of(self.counts[place])

    def worst_first(self) -> Iterator[tuple[Group, Metrics]]:
        """Yield the rates of each group that has points: the exceeded first, then by the larger rate."""
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
            lines.insert(-1, f"and {more:,} more groups")
        over = ", ".join(f"{rate} of {shown(group)}" for group, rate in self.exceeded[:_LISTED])
        if len(self.exceeded) > _LISTED:
            over += f" and {len(self.exceeded) - _LISTED:,} more"
        return "\n".join([*lines, f"significantly above its ceiling: {over or 'none'}"])


def tallied(verdicts: NDArray[np.int8], marks: NDArray[np.bool_], places: Codes, groups: int) -> Counts:
    """Return how often each verdict, 0, 1 and -1, falls on either class of each group; -1 comes last."""
    place = np.where(places < 0, groups, places)
    codes = 6 * place + 3 * marks + np.where(verdicts < 0, 2, verdicts)
    return np.bincount(codes, minlength=6 * (groups + 1)).reshape(-1, 2, 3)


def measured(
    columns: Columns,
    groups: Sequence[Group],
    pooled: NDArray[np.bool_],
    counts: Counts,
    noise: tuple[LabelNoise | None, ...] | None,
) -> GroupMeasured:
    """Return what counted verdicts say of the promises that groups have by themselves, not of the pool's."""
    sizes = counts[:-1].sum(axis=2)
    ceilings = np.where(columns.kept & ~pooled, columns.ceilings, nan)
    for label, wrong in enumerate(noise or ()):
        if wrong is not None:
            different, places = np.unique(ceilings[label], return_inverse=True)
            counted = [one if isnan(one) else wrong.counted(one) for one in different.tolist()]
            ceilings[label] = np.array(counted)[places]
    errors = np.concatenate([counts[:-1, 0, 1], counts[:-1, 1, 0]])
    over = all_exceeded(errors, sizes.T.ravel(), ceilings.ravel())
    sides = (divmod(place, len(groups)) for place in over)
    return GroupMeasured(groups, counts, tuple((groups[at], ("FPR", "FNR")[label]) for label, at in sides))
