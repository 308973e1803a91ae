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
    """Which points calibrate and which test; made by `Points.divided`.

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
    steps: Indices,
    anomalous: Mask,
    series: Indices | None,
    share: float,
    block: int | None,
    gap: int,
    extent: int,
) -> Division:
    """Return what draws divisions of points of `extent` steps: by series, in blocks, or point by point."""
    if block is None and gap:
        raise InputError(f"a gap is kept between blocks, got gap = {gap:,} and no block; pass block too")
    if series is not None:
        if block is not None:
            raise InputError("points are divided by series or in blocks; leave out by_series or block")
        unit_of, kinds = series, _struck(series, anomalous)
        if kinds[0].size < 2:
            raise InputError(
                "a division by whole series needs at least 2 series with an anomaly, one for each part, got"
                f" {kinds[0].size} of {sum(kind.size for kind in kinds):,}; divide in blocks of time instead"
            )
    elif block is None:
        unit_of, kinds = np.arange(steps.size), (np.flatnonzero(~anomalous), np.flatnonzero(anomalous))
        for name, points in zip(("normal", "anomalous"), kinds, strict=True):
            if points.size < 2:
                raise InputError(
                    f"labels must mark at least 2 {name} points, one for each part, got {points.size};"
                    " pass a longer series"
                )
    else:
        if not anomalous.any():
            raise InputError("labels mark no anomaly, so none can calibrate; pass a longer series")
        unit_of = np.cumsum(np.diff(steps // block, prepend=steps[0] // block) > 0, dtype=np.intp)
        kinds = _struck(unit_of, anomalous)
        if min(kinds[0].size, kinds[1].size) < 2:
            raise InputError(
                f"a split needs at least 2 blocks with an anomaly and 2 without, got {kinds[0].size:,} and"
                f" {kinds[1].size:,} blocks of {block:,} steps; choose a smaller block"
            )
    # without a gap the two parts share no step all the same; beyond the series there is nothing to reach
    reach = min(max(gap, 1) + extent - 1, int(steps[-1] - steps[0]) + 1)

    def draw(random: np.random.Generator) -> SeriesSplit:
        for _ in range(_DRAWS):
            calibrating = _drawn(kinds, share, random)[unit_of]
            if block is None:
                kind: Literal["random", "series"] = "random" if series is None else "series"
                return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(~calibrating), kind)
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


def _struck(unit_of: Indices, anomalous: Mask) -> tuple[Indices, Indices]:
    """Return the units, such as blocks, that have an anomalous point, and those that have none."""
    struck = np.bincount(unit_of, weights=anomalous) > 0
    return np.flatnonzero(struck), np.flatnonzero(~struck)


def _drawn(kinds: Sequence[Indices], share: float, random: np.random.Generator) -> Mask:
    """Return which of all items are drawn: the rounded share of each kind, but at least one, and not all."""
    chosen = np.zeros(sum(items.size for items in kinds), dtype=bool)
    for items in kinds:
        size = min(max(round(share * items.size), 1), items.size - 1)
        chosen[random.permutation(items)[:size]] = True
    return chosen
