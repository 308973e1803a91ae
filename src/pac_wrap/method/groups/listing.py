"""The groups of a certificate in a listing: the worst first, and what is to be said of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.floats import order_keys
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.columns import Columns, Counts
from pac_wrap.method.groups.values import Group
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule
from pac_wrap.method.thresholds import Regime


class Row(NamedTuple):
    """What a listing says of a group: its numbers of labels, what they certify, and what it costs.

    `errors` are calibration points that the rule misjudges and `undecided` those it leaves open, normal
    first; `pooled` says that the promise is that of the pool, and not its own, and `kept` of which class
    there are labels enough for a promise of its own.
    """

    group: Group
    n: tuple[int, int]
    regime: Regime
    certified: Guarantee | None
    rule: Rule
    errors: tuple[int, int]
    undecided: tuple[int, int]
    pooled: bool
    kept: tuple[bool, bool]


class Certificates(Mapping[Group, Certificate]):
    """The certificate of each group by its value, the worst group first; each is made when it is asked for.

    A group is known by its text: 7 and "7" are the same.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        columns: Columns,
        place: Callable[[object], int | None],
        make: Callable[[int], Certificate],
    ) -> None:
        self._groups, self._columns, self._place, self._make = groups, columns, place, make

    def __getitem__(self, group: Group) -> Certificate:
        place = self._place(group)
        if place is None:
            raise KeyError(group)
        return self._make(place)

    def __iter__(self) -> Iterator[Group]:
        return (self._groups[place] for place in worst_first(self._columns).tolist())

    def __len__(self) -> int:
        return len(self._groups)


def undecided(columns: Columns) -> Counts:
    """Return how many calibration points of each class the rule of each group leaves undecided.

    Where two thresholds are used though one would do, what lies between is not counted.
    """
    overlapping = order_keys(columns.rule[0]) != order_keys(columns.rule[1])
    left: Counts = np.where(overlapping, np.maximum(0, columns.crossing - columns.errors), 0)
    # without a certificate everything is left undecided
    return np.where(np.isnan(columns.deltas[0]), columns.n, left)


def worst_first(columns: Columns) -> NDArray[np.intp]:
    """Return the places of the groups, the worst first: nothing promised, then most points left undecided.

    Of groups alike, the one with more points is the worse.
    """
    n = columns.n.sum(axis=0)
    share = undecided(columns).sum(axis=0) / np.maximum(1, n)
    return np.lexsort((np.arange(n.size), -n, -share, ~columns.empty))


def rows_of(
    certificates: Mapping[Group, Certificate],
    columns: Columns,
    groups: Sequence[Group],
    pooled: NDArray[np.bool_],
) -> Iterator[Row]:
    """Yield what is to be said of each group, the worst first."""
    left, kept = undecided(columns), columns.kept
    for place in worst_first(columns).tolist():
        one = certificates[groups[place]]
        yield Row(
            groups[place],
            (one.normal.n, one.anomalous.n),
            one.regime,
            None if one.empty else one.certified,
            one.rule,
            (int(columns.errors[0, place]), int(columns.errors[1, place])),
            (int(left[0, place]), int(left[1, place])),
            bool(pooled[place]),
            (bool(kept[0, place]), bool(kept[1, place])),
        )
