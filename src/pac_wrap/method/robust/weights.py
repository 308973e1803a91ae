"""Weighted calibration points: the survivors of a draw by weight come from the shifted distribution."""

from bisect import bisect_left
from dataclasses import dataclass, field
from secrets import randbits
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_float, as_scores, check_count
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Promise
from pac_wrap.ranks.kernels import as_digest, kernels

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
# the lower and the upper weight of each point; the same array twice if the weights are known
Interval = tuple[Doubles, Doubles]
Weights = ArrayLike | tuple[ArrayLike, ArrayLike]
# so that products with the numbers of the draw neither overflow nor lose digits
_BOUNDS: Final = (1e-290, 1e290)
# so that every reader of JSON keeps the whole seed
_BITS: Final = 53


@dataclass(frozen=True, slots=True)
class Weighting:
    """How calibration points were drawn by their weights, each with probability weight / bound: eq. (78).

    Attributes
    ----------
    bound, seed : float and int
        The number that no weight exceeds, in the sample or elsewhere, and the seed of the draw.
    normal, anomalous : int or None
        The number of points before the draw; None if the class was not weighted.
    intervals : bool
        Whether weights were known up to an interval; errors then count by the upper one, others by the lower.
    digests : tuple of str or None
        Digests of all points of both classes before the draw.
    chosen : bool
        Whether the user gave the seed, which must not have been tried before, or the system drew it.
    """

    bound: float
    seed: int
    normal: int | None
    anomalous: int | None
    intervals: bool = False
    digests: tuple[str, ...] | None = field(default=None, metadata={"optional": True})
    chosen: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", check_bound(self.bound))
        object.__setattr__(self, "seed", check_count("seed", self.seed))
        for name in ("normal", "anomalous"):
            if (size := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_count(name, size))
        if self.normal is None and self.anomalous is None:
            raise InputError("a weighting must weight at least one class; remove it otherwise")
        if self.digests is not None and len(self.digests) != 2:
            raise InputError(f"a weighting has digests of both classes, or none, got {len(self.digests)}")

    @property
    def draws(self) -> "Draws":
        """The draws of this weighting, starting again with the first point."""
        return Draws(self.bound, self.seed, (self.normal is not None, self.anomalous is not None))

    def __str__(self) -> str:
        sizes = {"normal": self.normal, "anomalous": self.anomalous}
        parts = [f"{name} points drawn from {size:,}" for name, size in sizes.items() if size is not None]
        of = "weights between two bounds each" if self.intervals else "weights"
        how = (
            "chosen by the user: it must not have been tried before" if self.chosen else "drawn by the system"
        )
        return f"{' and '.join(parts)} by {of} up to {self.bound:g}, seed {self.seed} {how}"


def check_bound(bound: float | None) -> float:
    """Return the bound of weights after checking it; without a bound nothing can be promised."""
    if bound is None:
        raise InputError(
            "weights need a bound, because without one nothing can be promised; give weight_bound, or clip"
            " the weights and tolerate the rest with shift=TotalVariation(share)"
        )
    number = as_float(bound)
    if not _BOUNDS[0] <= number <= _BOUNDS[1]:
        raise InputError(
            f"weight_bound must be a number above 0, from {_BOUNDS[0]:g} to {_BOUNDS[1]:g}, got"
            f" {quoted(bound)}; scale the weights, which changes nothing else"
        )
    return number


def as_weights(weights: Weights, name: str, size: int, bound: float) -> Interval:
    """Return the lower and the upper weight of each point, checked."""
    given: tuple[Any, ...] = weights if isinstance(weights, tuple) else (weights,)
    if len(given) not in (1, 2):
        raise InputError(
            f"{name} must be weights, or a pair of lower and upper weights, got {len(given)} arrays"
        )
    arrays = [as_scores(as_array(one, name), name) for one in given]
    low, high = arrays[0], arrays[-1]
    for one in arrays:
        if one.size != size:
            raise InputError(f"{name} must have one weight for each of {size:,} scores, got {one.size:,}")
    if (low > high).any():
        raise InputError(f"{name} must have no lower weight above the upper one; swap them")
    if size and not 0.0 <= low.min() <= high.max() <= bound:
        worst = low.min() if low.min() < 0.0 else high.max()
        raise InputError(
            f"{name} must lie between 0 and weight_bound = {bound:g}, got {float(worst)!r}; if few future"
            " points weigh more, clip the weights there and use shift=TotalVariation(share) for the rest"
        )
    return low, high


class Draws:
    """The draws of both classes, which depend only on the seed and each point's place: eq. (78)."""

    def __init__(
        self, bound: float | None, seed: int | None = None, weighted: tuple[bool, bool] = (True, True)
    ) -> None:
        self.bound, self.weighted, self._chosen = check_bound(bound), weighted, seed is not None
        # theorem 23 does not hold for a seed that everybody knows
        self._seed = randbits(_BITS) if seed is None else check_count("seed", seed)
        self.restart()

    def restart(self) -> None:
        """Start again with the first point of each class."""
        self._bits = tuple(np.random.Philox([self._seed, side]) for side in range(2))
        self._read, self._hashes = [0, 0], [0, 0]

    @property
    def weighting(self) -> Weighting:
        """The weighting of all points that were read so far."""
        offered = [n if weighted else None for n, weighted in zip(self._read, self.weighted, strict=True)]
        digests = tuple(map(as_digest, self._hashes))
        return Weighting(self.bound, self._seed, offered[0], offered[1], digests=digests, chosen=self._chosen)

    def see(self, side: int, scores: NDArray[Any]) -> None:
        """Add the next points of a class, survivors or not, to its digest."""
        self._hashes[side] += kernels().mix(scores)

    def numbers(self, side: int, size: int) -> Doubles:
        """Return the uniform numbers of the next points of a class."""
        self._read[side] += size
        # not Generator.random, whose numbers may change with NumPy
        return np.asarray((self._bits[side].random_raw(size) >> np.uint64(11)) * 2.0**-53)

    def kept(self, anomalous: Mask, weights: Doubles) -> Mask:
        """Return a mask of the survivors among the next points of both classes."""
        kept = np.ones(weights.size, dtype=bool)
        for side, places in enumerate((np.flatnonzero(~anomalous), np.flatnonzero(anomalous))):
            if self.weighted[side]:
                kept[places] = self.numbers(side, places.size) * self.bound < weights[places]
        return kept


def survivors(
    values: NDArray[Any], kept: tuple[Mask, Mask], promise: Promise | None, *, high: bool
) -> NDArray[Any]:
    """Return the points, with errors (`high` scores or low ones) drawn by upper weights: eq. (79)."""
    lower, upper = kept
    if promise is None or not (lower ^ upper).any():
        return values[lower]
    order = np.argsort(values, kind="stable")[:: -1 if high else 1]
    ordered = values[order]
    # after each group of equal scores: the errors so far, and all points that count
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), values.size - 1)
    errors = np.append(0, np.cumsum(upper[order])[ends])
    below = np.append(0, np.cumsum(lower[order])[ends])
    counted = errors + below[-1] - below

    def refused(place: int) -> bool:
        budget = promise.budget(int(counted[place])).errors
        return budget is None or bool(errors[place] > budget)

    # fewer errors are easier to accept: the first refused place can be bisected
    first = bisect_left(range(ends.size + 1), True, key=refused)
    if first == 0:
        return values[lower]
    # the first group that is not accepted counts by its upper weights as well
    stop = ends[min(first, ends.size) - 1] + 1
    places = np.append(order[:stop][upper[order[:stop]]], order[stop:][lower[order[stop:]]])
    return values[np.sort(places)]
