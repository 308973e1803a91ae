"""Divisions of a series to calibrate and to test, at random or in blocks, and how often ceilings break."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    as_anomaly_mask,
    as_labelled,
    check_count,
    check_positive,
    check_rate,
    check_same_length,
)
from pac_wrap.errors import InputError
from pac_wrap.method.metrics import ExactViolation, ViolationRate, errors_within
from pac_wrap.method.promise import Guarantee, Promise, as_guarantee
from pac_wrap.method.thresholds import find_thresholds
from pac_wrap.series.dependence import exceedances
from pac_wrap.series.windows import Indices, as_positions
from pac_wrap.tails.bounds import hypergeometric_cdf

_DRAWS: Final = 100


@dataclass(frozen=True, eq=False)
class SeriesSplit:
    """Which points calibrate and which test; made by `random_split`, `block_split` or `Several.divided`.

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


Splitter = Callable[[np.random.Generator], SeriesSplit]


def random_split(labels: ArrayLike, random: np.random.Generator, *, calibration: float = 0.2) -> SeriesSplit:
    """Return a division of the points at random; neighbours in time may end up in different parts.

    Parameters
    ----------
    labels : array-like of int
        0 or 1 for each point, and each at least twice.
    random : numpy.random.Generator
        What draws.
    calibration : float
        The share of each class that calibrates.

    Returns
    -------
    SeriesSplit

    Examples
    --------
    >>> split = random_split([0] * 10 + [1] * 5, np.random.default_rng(0))
    >>> split.calibration, split.test.size
    (array([ 4,  6, 10]), 12)
    """
    check_random(random)
    return _random_splitter(labels, calibration)(random)


def _random_splitter(labels: ArrayLike, calibration: float) -> Splitter:
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

    def draw(random: np.random.Generator) -> SeriesSplit:
        chosen = drawn(classes, share, random)
        return SeriesSplit(np.flatnonzero(chosen), np.flatnonzero(~chosen), "random")

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
) -> SeriesSplit:
    """Return a division of the points in blocks of time, with a gap between the two parts.

    A point belongs to the block it begins in. Of the blocks that hold an anomalous point, and of those that
    hold none, the share `calibration` is drawn at random, at least one of each kind for either part. Points
    of the other blocks test, unless they are too close to a calibration point, which leaves them out. A draw
    that leaves a class out of the test part is drawn again.

    Parameters
    ----------
    positions : array-like of int
        The step at which each point begins, such as the starts of windows.
    labels, random
        As for `random_split`.
    calibration : float
        The share of blocks of each kind that calibrates.
    block : int
        The steps of a block.
    gap : int
        The least number of steps from the last step of a point in one part to the first of one in the other.
    extent : int
        The steps of a point, such as the length of windows.

    Returns
    -------
    SeriesSplit

    Raises
    ------
    InputError
        If there are fewer than two blocks of a kind, or the gap leaves a class out of the test part.

    Examples
    --------
    >>> labels = np.zeros(100, dtype=int)
    >>> labels[[15, 35, 85]] = 1
    >>> split = block_split(np.arange(100), labels, np.random.default_rng(1), block=10, gap=3)
    >>> np.unique(split.calibration // 10), split.test.size
    (array([1, 9]), 74)
    """
    check_random(random)
    return _block_splitter(positions, labels, calibration, block, gap, extent)(random)


def _block_splitter(
    positions: ArrayLike, labels: ArrayLike, calibration: float, block: int, gap: int, extent: int
) -> Splitter:
    """Return a function that draws divisions of these points in blocks, each with a generator."""
    steps, mask = as_positions(positions), as_anomaly_mask(labels)
    check_same_length("positions", steps.size, "labels", mask.size)
    share = check_rate("calibration", calibration)
    block, extent = check_positive("block", block), check_positive("extent", extent)
    gap = check_count("gap", gap)
    if not mask.any():
        raise InputError("labels mark no anomaly, so none can calibrate; pass a longer series")
    number = steps // block
    block_of = np.cumsum(np.diff(number, prepend=number[0]) > 0, dtype=np.intp)
    anomalous = np.bincount(block_of, weights=mask) > 0
    kinds = np.flatnonzero(anomalous), np.flatnonzero(~anomalous)
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
            # points that begin at least `reach` steps before or after every calibrating one
            before = np.maximum.accumulate(np.where(calibrating, steps, steps[0] - reach))
            after = np.minimum.accumulate(np.where(calibrating, steps, steps[-1] + reach)[::-1])[::-1]
            testing = (steps - before >= reach) & (after - steps >= reach)
            if mask[testing].any() and not mask[testing].all():
                return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(testing), "blocks", gap, block)
        raise InputError(
            f"a gap of {gap:,} steps leaves the test part without points of one class, in {_DRAWS} draws of"
            f" blocks of {block:,} steps; choose a smaller gap, or larger blocks"
        )

    return draw


def check_random(random: np.random.Generator) -> None:
    """Refuse anything but a NumPy generator."""
    if not isinstance(random, np.random.Generator):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")


def drawn(kinds: Sequence[Indices], share: float, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return which of all items are drawn: the rounded share of each kind, but at least one, and not all."""
    chosen = np.zeros(sum(items.size for items in kinds), dtype=bool)
    for items in kinds:
        size = min(max(round(share * items.size), 1), items.size - 1)
        chosen[random.permutation(items)[:size]] = True
    return chosen


def block_violation(
    scores: ArrayLike,
    labels: ArrayLike,
    positions: ArrayLike,
    guarantee: Guarantee,
    random: np.random.Generator,
    *,
    trials: int,
    calibration: float = 0.2,
    block: int,
    gap: int,
    extent: int = 1,
    confidence: float = 0.95,
) -> ViolationRate:
    """Return what `trials` calibrations do, each on blocks of time drawn as by `block_split`.

    The intervals are about divisions of this one series. A rate counted on a test part varies around the true
    one, so it may exceed the ceiling more often than delta even where points are independent.

    Parameters
    ----------
    scores, labels, positions : array-like
        The score of each point, its label, 0 or 1, and the step at which it begins.
    guarantee : Guarantee
        What every calibration asks for.
    random, calibration, block, gap, extent
        As for `block_split`.
    trials, confidence : int and float
        How many divisions are drawn, and the confidence of the intervals.

    Returns
    -------
    ViolationRate

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(100) % 4 == 3, 20)
    >>> scores = random.normal(3.0 * labels)
    >>> tenth = Guarantee(0.1, 0.1, 0.1, 0.1)
    >>> found = block_violation(scores, labels, np.arange(2000), tenth, random, trials=50, block=20, gap=5)
    >>> found.fpr.n, found.mean_fpr < 0.1
    (50, True)
    """
    draw = _block_splitter(positions, labels, calibration, block, gap, extent)
    return _violation(scores, labels, guarantee, random, draw, trials, confidence)


def random_violation(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee,
    random: np.random.Generator,
    *,
    trials: int,
    calibration: float = 0.2,
    confidence: float = 0.95,
) -> ViolationRate:
    """Return what `trials` calibrations do, each on points drawn as by `random_split`.

    Dependence in time stays unseen: unless scores are tied, the number of test points beyond a threshold
    depends only on the numbers of points, because the ranks of calibration points are random in any series.

    Parameters
    ----------
    scores, labels, guarantee, random, trials, confidence
        As for `block_violation`.
    calibration : float
        The share of each class that calibrates.

    Returns
    -------
    ViolationRate

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 500)
    >>> found = random_violation(np.arange(1000), labels, Guarantee(), random, trials=20)
    >>> found.separated.value
    1.0
    """
    draw = _random_splitter(labels, calibration)
    return _violation(scores, labels, guarantee, random, draw, trials, confidence)


def independent_violation(
    sizes: tuple[int, int], test_sizes: tuple[int, int], guarantee: Guarantee
) -> ExactViolation:
    """Return how often a rate on a test part exceeds its ceiling if all points are independent: eq. (20).

    It may be above delta, because a test part varies too. Compare `block_violation` with it; random divisions
    give just this, whatever the series.

    Parameters
    ----------
    sizes, test_sizes : tuple of int
        The numbers of normal and of anomalous points that calibrate, and of those that test.
    guarantee : Guarantee
        What the calibration asks for.

    Returns
    -------
    ExactViolation

    Examples
    --------
    >>> found = independent_violation((1000, 100), (4000, 400), Guarantee(0.1, 0.1, 0.1, 0.1))
    >>> round(found.fpr, 3), round(found.fnr, 3)
    (0.114, 0.07)
    """
    guarantee = as_guarantee(guarantee)
    for name, pair in (("sizes", sizes), ("test_sizes", test_sizes)):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"{name} must be the numbers of normal and anomalous points, got {pair!r}")
        for count in pair:
            check_count(name, count)

    def probability(n: int, test: int, promise: Promise | None) -> float | None:
        if promise is None:
            return None
        check_positive("test_sizes", test)
        budget = promise.budget(n).errors
        if budget is None:
            return 0.0
        return hypergeometric_cdf(budget, n, errors_within(promise.ceiling, test) + budget + 1, n + test)

    return ExactViolation(
        probability(sizes[0], test_sizes[0], guarantee.fpr),
        probability(sizes[1], test_sizes[1], guarantee.fnr),
    )


def _violation(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee,
    random: np.random.Generator,
    draw: Splitter,
    trials: int,
    confidence: float,
) -> ViolationRate:
    _, scores, mask = as_labelled(scores, labels)
    guarantee = as_guarantee(guarantee)
    check_random(random)
    trials = check_positive("trials", trials)
    check_rate("confidence", confidence)
    promises = guarantee.fpr, guarantee.fnr
    # numbers of points come back, so their budgets are kept
    budgets = [None if promise is None else cache(promise.budget) for promise in promises]
    rates, ambiguity, separated = np.full((2, trials), np.nan), 0.0, np.zeros(trials, dtype=bool)
    for trial in range(trials):
        split = draw(random)
        drawn, marked = scores[split.calibration], mask[split.calibration]
        classes = drawn[~marked], drawn[marked]
        found = (
            None if budget is None else budget(values.size)
            for budget, values in zip(budgets, classes, strict=True)
        )
        thresholds = find_thresholds(*classes, *found)
        tested, anomalous = scores[split.test], mask[split.test]
        for side, promise in enumerate(promises):
            if promise is not None:
                errors = exceedances(tested[anomalous == side], thresholds, anomalous=bool(side))
                rates[side, trial] = errors.mean()
        ambiguity += thresholds.rule.ambiguity(tested) / trials
        separated[trial] = thresholds.separated
    return ViolationRate.counted(guarantee, rates, ambiguity, separated, confidence)
