"""Divisions of the points of a series to calibrate and to test: at random, in blocks of time, by series."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.series.dependence import Indices

_DRAWS: Final = 100
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SeriesSplit:
    """Which points calibrate and which test; made by `Points.divided` or `Several.divided`.

    Attributes
    ----------
    calibration, test : ndarray of int
        Ascending indices of the points of each part; points in neither were left out.
    kind : {"random", "blocks", "series"}
        How the points were divided.
    gap : int
        How many steps lie at least between points of different parts.
    block : int or None
        The steps of a block of time; None for a random division.
    """

    calibration: Indices
    test: Indices
    kind: Literal["random", "blocks", "series"]
    gap: int = 0
    block: int | None = None


Division = Callable[[np.random.Generator], SeriesSplit]


def division(
    steps: Indices, anomalous: Mask, share: float, *, block: int | None, gap: int, extent: int
) -> Division:
    """Return what draws divisions of points of `extent` steps: in blocks of time, or of single points."""
    if block is None:
        block_of, kinds = np.arange(steps.size), (np.flatnonzero(~anomalous), np.flatnonzero(anomalous))
        for name, points in zip(("normal", "anomalous"), kinds, strict=True):
            if points.size < 2:
                raise InputError(
                    f"labels must mark at least 2 {name} points, one for each part, got {points.size};"
                    " pass a longer series"
                )
        if gap:
            raise InputError(f"a gap is kept between blocks, got gap = {gap:,} and no block; pass block too")
    else:
        if not anomalous.any():
            raise InputError("labels mark no anomaly, so none can calibrate; pass a longer series")
        block_of = np.cumsum(np.diff(steps // block, prepend=steps[0] // block) > 0, dtype=np.intp)
        struck = np.bincount(block_of, weights=anomalous) > 0
        kinds = np.flatnonzero(struck), np.flatnonzero(~struck)
        if min(kinds[0].size, kinds[1].size) < 2:
            raise InputError(
                f"a split needs at least 2 blocks with an anomaly and 2 without, got {kinds[0].size:,} and"
                f" {kinds[1].size:,} blocks of {block:,} steps; choose a smaller block"
            )
    # without a gap the two parts share no step all the same; beyond the series there is nothing to reach
    reach = min(max(gap, 1) + extent - 1, int(steps[-1] - steps[0]) + 1)

    def draw(random: np.random.Generator) -> SeriesSplit:
        for _ in range(_DRAWS):
            calibrating = drawn(kinds, share, random)[block_of]
            if block is None:
                return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(~calibrating), "random")
            # points that begin at least `reach` steps before or after every calibrating one
            before = np.maximum.accumulate(np.where(calibrating, steps, steps[0] - reach))
            after = np.minimum.accumulate(np.where(calibrating, steps, steps[-1] + reach)[::-1])[::-1]
            testing = (steps - before >= reach) & (after - steps >= reach)
            if anomalous[testing].any() and not anomalous[testing].all():
                return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(testing), "blocks", gap, block)
        raise InputError(
            f"a gap of {gap:,} steps leaves the test part without points of one class, in {_DRAWS} draws of"
            f" blocks of {block:,} steps; choose a smaller gap, or larger blocks"
        )

    return draw


def drawn(kinds: Sequence[Indices], share: float, random: np.random.Generator) -> Mask:
    """Return which of all items are drawn: the rounded share of each kind, but at least one, and not all."""
    chosen = np.zeros(sum(items.size for items in kinds), dtype=bool)
    for items in kinds:
        size = min(max(round(share * items.size), 1), items.size - 1)
        chosen[random.permutation(items)[:size]] = True
    return chosen


def check_random(random: object) -> None:
    """Refuse anything but a NumPy generator."""
    if not isinstance(random, np.random.Generator):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")
