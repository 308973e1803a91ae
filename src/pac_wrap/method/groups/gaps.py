"""How far the error rates of groups can be apart, each group with its own rule."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.rounding import confidence_left, rounded_down, rounded_up, shared_together
from pac_wrap.method.groups.columns import NO_COUNT, Columns, Counts, Numbers
from pac_wrap.method.groups.values import Group, shown
from pac_wrap.method.tails.bounds import beta_quantile

# quantiles are good to about 1e-10; bounds are moved outwards by more
_OUTWARDS = 1e-9


@dataclass(frozen=True, slots=True)
class Gap:
    """The bound of the difference between one error rate of any two groups: eq. (58).

    Parameters
    ----------
    rate : str
        FPR or FNR.
    bound : float or None
        No two groups are farther apart; None where fewer than two groups have a budget.
    delta : float
        The chance that some two groups are.
    farthest : tuple
        The two groups that may be that far apart, that with the larger rate first.
    groups : tuple
        The groups that are compared, the highest bound first.
    low, high : tuple of float
        The bounds of the rate of each.
    left_out : int
        How many groups have too few labels for a rule on that side.

    Examples
    --------
    >>> print(Gap("FPR", 0.031, 0.05, ("a", "b"), ("a", "b"), (0.02, 0.0), (0.031, 0.025), 0))
    FPR: certified fair within 0.031 for 2 groups (confidence 0.95); 'a' and 'b' may be that far apart
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
        left = f"; {self.left_out:,} left out" if self.left_out else ""
        if self.bound is None:
            return f"{self.rate}: there are no two groups with enough labels to compare{left}"
        confidence = rounded_down(confidence_left(self.delta))
        first, second = map(shown, self.farthest)
        return (
            f"{self.rate}: certified fair within {rounded_up(self.bound)} for {len(self.groups):,} groups"
            f" (confidence {confidence}); {first} and {second} may be that far apart{left}"
        )


@dataclass(frozen=True, slots=True)
class Gaps:
    """How far any two groups can be apart in their false positive and in their false negative rates.

    Parameters
    ----------
    fpr, fnr : Gap or None
        None where nothing is promised.

    Examples
    --------
    >>> from pac_wrap import calibrate_groups
    >>> scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    >>> gaps = calibrate_groups(scores, labels, ["a"] * 200 + ["b"] * 200).gaps()
    >>> round(gaps.fpr.bound, 4)
    0.062
    """

    fpr: Gap | None
    fnr: Gap | None

    def __str__(self) -> str:
        return "\n".join(str(gap) for gap in (self.fpr, self.fnr) if gap is not None)


def gaps_of(columns: Columns, groups: Sequence[Group], delta: float, *, fixed: bool) -> Gaps:
    """Return the gaps; `fixed` says that the error budgets are fixed by the numbers of labels."""
    delta = check_rate("delta", delta)
    sides: list[Gap | None] = []
    for label, rate in enumerate(("FPR", "FNR")):
        asked = ~np.isnan(columns.rate[label]) | ~np.isnan(columns.ceilings[label])
        compared = np.flatnonzero(columns.budget[label] != NO_COUNT)
        if not asked.any():
            sides.append(None)
            continue
        n, errors = columns.n[label, compared], columns.errors[label, compared]
        budget = columns.budget[label, compared] if fixed else None
        low, high = bounds(n, errors, budget, shared_together(delta, compared.size))
        order = np.argsort(-high, kind="stable")
        low, high, names = low[order], high[order], [groups[place] for place in compared[order].tolist()]
        bound, farthest = _widest(low, high)
        sides.append(
            Gap(
                rate,
                bound,
                delta,
                tuple(names[place] for place in farthest),
                tuple(names),
                tuple(low.tolist()),
                tuple(high.tolist()),
                int(columns.size - compared.size),
            )
        )
    return Gaps(*sides)


def bounds(n: Counts, errors: Counts, budget: Counts | None, delta: float) -> tuple[Numbers, Numbers]:
    """Return between which rates each group lies but for a chance of delta: eq. (57), eq. (59).

    >>> low, high = bounds(np.array([100]), np.array([1]), np.array([1]), 0.05)
    >>> low.round(6).tolist(), high.round(4).tolist()
    ([0.000253], [0.0545])
    """
    counted = n if budget is None else budget
    level = delta / (2.0 * np.maximum(1, counted))
    low = np.where(
        errors > 0, beta_quantile(np.maximum(errors, 1), n - errors + 1.0, level, above=False), 0.0
    )
    most, upper = (errors, level) if budget is None else (budget, np.full(n.size, delta / 2.0))
    high = np.where(most < n, beta_quantile(most + 1.0, np.maximum(n - most, 1.0), upper, above=True), 1.0)
    return low * (1.0 - _OUTWARDS), np.minimum(1.0, high * (1.0 + _OUTWARDS))


def _widest(low: Numbers, high: Numbers) -> tuple[float | None, tuple[int, ...]]:
    """Return the largest difference between the upper bound of one group and the lower one of another."""
    if low.size < 2:
        return None, ()
    least = np.argsort(low, kind="stable")[:2].tolist()
    most: NDArray[np.intp] = np.argsort(-high, kind="stable")[:2]
    pairs = [(float(high[one] - low[two]), one, two) for one in most.tolist() for two in least if one != two]
    bound, one, two = max(pairs)
    return bound, (one, two)
