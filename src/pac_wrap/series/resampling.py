"""How often thresholds break their ceilings on the rest of the same series, over many divisions of it."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import (
    as_anomaly_mask,
    as_scores,
    check_aligned,
    check_count,
    check_positive,
    check_rate,
    check_same_length,
)
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import as_guarantee
from pac_wrap.method.metrics import ExactViolation, Rate, ViolationRate
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.thresholds import find_thresholds
from pac_wrap.series.dependence import exceedances
from pac_wrap.series.splits import Splitter, block_splitter, check_random, random_splitter
from pac_wrap.tails.bounds import Budget, hypergeometric_cdf, interval

BudgetOf = Callable[[int], Budget | None]


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

    Each takes its thresholds from the calibration part and counts errors on the test part of the division.
    The intervals are about divisions of this one series. A rate counted on a test part varies around the true
    one, so it may exceed the ceiling more often than delta even where points are independent.

    Parameters
    ----------
    scores, labels, positions : array-like
        The score of each point, its label, 0 or 1, and the step at which it begins.
    guarantee : Guarantee
        What every calibration asks for.
    random : numpy.random.Generator
        What draws the divisions.
    trials : int
        How many of them.
    calibration, block, gap, extent
        As for `block_split`.
    confidence : float
        That of the intervals.

    Returns
    -------
    ViolationRate
        How often each ceiling was exceeded, and what the rates were on average.

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
    draw = block_splitter(positions, labels, calibration=calibration, block=block, gap=gap, extent=extent)
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
        How often each ceiling was exceeded, and what the rates were on average.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 500)
    >>> found = random_violation(np.arange(1000), labels, Guarantee(), random, trials=20)
    >>> found.separated.value
    1.0
    """
    draw = random_splitter(labels, calibration=calibration)
    return _violation(scores, labels, guarantee, random, draw, trials, confidence)


def independent_violation(
    sizes: tuple[int, int], test_sizes: tuple[int, int], guarantee: Guarantee
) -> ExactViolation:
    """Return how often a rate on a test part exceeds its ceiling if all points are independent: eq. (20).

    It may be above delta, because a test part varies too. Compare `block_violation` with it.
    A random division gives just this, whatever the series: so it cannot show dependence.

    Parameters
    ----------
    sizes, test_sizes : tuple of int
        The numbers of normal and of anomalous points that calibrate, and of those that test.
    guarantee : Guarantee
        What the calibration asks for.

    Returns
    -------
    ExactViolation
        The probability for each ceiling; None where there is none.

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
        budget, ceiling = promise.budget(n).errors, promise.ceiling
        check_positive("test_sizes", test)
        if budget is None:
            return 0.0
        allowed = round(ceiling * test)
        allowed -= allowed / test > ceiling
        return hypergeometric_cdf(budget, n, allowed + budget + 1, n + test)

    asked = guarantee.fpr, guarantee.fnr
    fpr, fnr = (probability(n, test, side) for n, test, side in zip(sizes, test_sizes, asked, strict=True))
    return ExactViolation(fpr, fnr)


def _violation(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee,
    random: np.random.Generator,
    draw: Splitter,
    trials: int,
    confidence: float,
) -> ViolationRate:
    check_aligned("scores", scores, "labels", labels)
    scores, mask = as_scores(scores), as_anomaly_mask(labels)
    check_same_length("scores", scores.size, "labels", mask.size)
    guarantee = as_guarantee(guarantee)
    check_random(random)
    trials = check_positive("trials", trials)
    check_rate("confidence", confidence)
    fpr, fnr = _budgets(guarantee)
    rates, ambiguity, separated = np.full((2, trials), np.nan), 0.0, 0
    ceilings = (guarantee.max_fpr, guarantee.max_fnr)
    for trial in range(trials):
        split = draw(random)
        drawn, drawn_anomalous = scores[split.calibration], mask[split.calibration]
        normal, anomalies = drawn[~drawn_anomalous], drawn[drawn_anomalous]
        thresholds = find_thresholds(normal, anomalies, fpr(normal.size), fnr(anomalies.size))
        tested, anomalous = scores[split.test], mask[split.test]
        for side, ceiling in enumerate(ceilings):
            if ceiling is not None:
                errors = exceedances(tested[anomalous == side], thresholds, anomalous=bool(side))
                rates[side, trial] = errors.mean()
        ambiguity += thresholds.rule.ambiguity(tested) / trials
        separated += thresholds.separated

    def share(count: int) -> Rate:
        return Rate(count, trials, *interval(count, trials, confidence))

    broken_fpr, broken_fnr = (
        None if ceiling is None else share(int(np.count_nonzero(rates[side] > ceiling)))
        for side, ceiling in enumerate(ceilings)
    )
    mean_fpr, mean_fnr = (
        None if ceiling is None else float(rates[side].mean()) for side, ceiling in enumerate(ceilings)
    )
    return ViolationRate(broken_fpr, broken_fnr, mean_fpr, mean_fnr, ambiguity, share(separated))


def _budgets(guarantee: Guarantee) -> tuple[BudgetOf, BudgetOf]:
    """Return the budgets of n normal and of n anomalous points; numbers come back, so they are kept."""

    @cache
    def fpr(n: int) -> Budget | None:
        return None if guarantee.fpr is None else guarantee.fpr.budget(n)

    @cache
    def fnr(n: int) -> Budget | None:
        return None if guarantee.fnr is None else guarantee.fnr.budget(n)

    return fpr, fnr
