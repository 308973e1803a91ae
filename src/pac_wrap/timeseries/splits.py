"""Two parts of the points of a series, one to calibrate with and one to test on: at random, or in blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_anomaly_mask, check_count, check_rate
from pac_wrap.timeseries.checks import Steps, as_positions, check_random, check_same_length, check_steps

_DRAWS: Final = 100


@dataclass(frozen=True, eq=False)
class Parts:
    """Which points calibrate and which test, as ascending indices; points in neither part were left out.

    `gap` steps at least lie between points of different parts; `block` is None for a random division.
    """

    calibration: Steps
    test: Steps
    kind: Literal["random", "blocks"]
    gap: int = 0
    block: int | None = None


Splitter = Callable[[np.random.Generator], Parts]


def random_split(labels: ArrayLike, random: np.random.Generator, *, calibration: float = 0.2) -> Parts:
    """Return a division of the points at random that takes the share `calibration` of each class.

    Neighbours in time may end up in different parts, as in the paper.

    >>> parts = random_split([0] * 10 + [1] * 5, np.random.default_rng(0))
    >>> parts.calibration, parts.test.size
    (array([ 4,  6, 10]), 12)
    """
    check_random(random)
    return random_splitter(labels, calibration=calibration)(random)


def random_splitter(labels: ArrayLike, *, calibration: float = 0.2) -> Splitter:
    """Return a function that draws random divisions of these points, each with a generator."""
    mask = as_anomaly_mask(labels)
    share = check_rate("calibration", calibration)
    classes = [np.flatnonzero(mask == kind) for kind in (False, True)]
    for name, points in zip(("normal", "anomalous"), classes, strict=True):
        if points.size < 2:
            raise InputError(
                f"labels must mark at least 2 {name} points, one for each part, got {points.size};"
                " pass a longer series"
            )

    def draw(random: np.random.Generator) -> Parts:
        chosen = np.zeros(mask.size, dtype=bool)
        for points in classes:
            chosen[_draw_share(points, share, random)] = True
        return Parts(np.flatnonzero(chosen), np.flatnonzero(~chosen), "random")

    return draw


def block_split(
    positions: ArrayLike,
    labels: ArrayLike,
    random: np.random.Generator,
    *,
    calibration: float = 0.2,
    block: int,
    gap: int,
    extent: int = 1,
) -> Parts:
    """Return a division of the points in blocks of time, with a gap between the two parts.

    `positions` are the step numbers at which points begin, `extent` the number of steps of each, as are
    the starts and the length of windows. Time is cut into blocks of `block` steps, a point belonging where it
    begins. Of the blocks that hold an anomalous point, and of those that hold none, the share `calibration`
    is drawn at random, at least one of each kind for either part. Points of the other blocks test, but for
    those closer than `gap` steps to a calibration point, counted from the last step of the one to the first
    of the other. A draw that leaves a class out of the test part is drawn again.

    >>> labels = np.zeros(100, dtype=int)
    >>> labels[[15, 35, 85]] = 1
    >>> parts = block_split(np.arange(100), labels, np.random.default_rng(1), block=10, gap=3)
    >>> np.unique(parts.calibration // 10), parts.test.size
    (array([1, 9]), 74)
    """
    check_random(random)
    draw = block_splitter(positions, labels, calibration=calibration, block=block, gap=gap, extent=extent)
    return draw(random)


def block_splitter(
    positions: ArrayLike,
    labels: ArrayLike,
    *,
    calibration: float = 0.2,
    block: int,
    gap: int,
    extent: int = 1,
) -> Splitter:
    """Return a function that draws divisions of these points in blocks, each with a generator."""
    steps, mask = as_positions(positions), as_anomaly_mask(labels)
    check_same_length("positions", steps.size, "labels", mask.size)
    share = check_rate("calibration", calibration)
    block, gap, extent = check_steps("block", block), check_count("gap", gap), check_steps("extent", extent)
    kinds, block_of = _blocks(steps, mask, block)
    # without a gap the two parts share no step all the same; beyond the series there is nothing to reach
    reach = min(max(gap, 1) + extent - 1, int(steps[-1] - steps[0]) + 1)

    def draw(random: np.random.Generator) -> Parts:
        for _ in range(_DRAWS):
            chosen = np.zeros(block_of[-1] + 1, dtype=bool)
            for blocks in kinds:
                chosen[_draw_share(blocks, share, random)] = True
            calibrating = chosen[block_of]
            testing = _far_from(calibrating, steps, reach)
            if mask[testing].any() and not mask[testing].all():
                return Parts(np.flatnonzero(calibrating), np.flatnonzero(testing), "blocks", gap, block)
        raise InputError(
            f"a gap of {gap:,} steps leaves the test part without points of one class, in {_DRAWS} draws of"
            f" blocks of {block:,} steps; choose a smaller gap, or larger blocks"
        )

    return draw


def _blocks(steps: Steps, mask: NDArray[np.bool_], block: int) -> tuple[tuple[Steps, Steps], Steps]:
    """Return the blocks with and those without an anomalous point, and the block of each point."""
    if not mask.any():
        raise InputError("labels mark no anomaly, so that none can calibrate; pass a longer series")
    number = steps // block
    block_of = np.cumsum(np.diff(number, prepend=number[0]) > 0, dtype=np.intp)
    anomalous = np.bincount(block_of, weights=mask) > 0
    kinds = np.flatnonzero(anomalous), np.flatnonzero(~anomalous)
    if min(kinds[0].size, kinds[1].size) < 2:
        raise InputError(
            f"a split needs at least 2 blocks with an anomaly and 2 without, got {kinds[0].size:,} and"
            f" {kinds[1].size:,} blocks of {block:,} steps; choose a smaller block"
        )
    return kinds, block_of


def _draw_share(items: Steps, share: float, random: np.random.Generator) -> Steps:
    """Return the rounded share of the items, drawn at random; at least one is drawn and one is left."""
    size = min(max(round(share * items.size), 1), items.size - 1)
    return random.permutation(items)[:size]


def _far_from(chosen: NDArray[np.bool_], steps: Steps, reach: int) -> NDArray[np.bool_]:
    """Return which points begin at least `reach` steps before or after every chosen one."""
    before = np.maximum.accumulate(np.where(chosen, steps, steps[0] - reach))
    after = np.minimum.accumulate(np.where(chosen, steps, steps[-1] + reach)[::-1])[::-1]
    return (steps - before >= reach) & (after - steps >= reach)
