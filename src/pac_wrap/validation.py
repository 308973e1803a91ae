"""How often calibration breaks a ceiling on a known population, exactly and by simulation.

The error rates are those of each threshold alone (`y_fp` and `y_fn`). The rates of the verdicts are never
larger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_scores, check_count, check_positive, check_rate
from pac_wrap.errors import InputError
from pac_wrap.method.metrics import ExactViolation, ViolationRate, errors_within
from pac_wrap.method.promise import Guarantee, Promise, as_guarantee
from pac_wrap.tails.bounds import cdf, error_budget, hypergeometric_cdf

__all__ = ["ExactViolation", "ViolationRate", "exact_violation", "independent_violation", "violation_rate"]

BudgetRule = Callable[[int, float, float], int | None]
Integers = NDArray[np.intp]
_NAMES: Final = ("normal", "anomalous")
_MOST_TRIALS: Final = 10**8
_LARGEST: Final = float(np.finfo(np.float64).max)


def exact_violation(
    normal: ArrayLike,
    anomalous: ArrayLike,
    sizes: tuple[int, int],
    guarantee: Guarantee | None = None,
    *,
    future: tuple[ArrayLike, ArrayLike] | None = None,
    budget: BudgetRule = error_budget,
    replacement: bool = True,
) -> ExactViolation:
    """Return the probability that a calibration drawn from this population breaks a ceiling.

    The probability is a binomial tail when points are drawn with replacement, eq. (17), and a hypergeometric
    tail when they are drawn without, eq. (18).

    Parameters
    ----------
    normal, anomalous : array-like
        The scores of the whole population.
    sizes : tuple of int
        The numbers of normal and of anomalous calibration points.
    guarantee : Guarantee, optional
        The ceilings and deltas; by default both rates at most 0.05, each with a delta of 0.05.
    future : tuple of array-like, optional
        The normal and the anomalous population on which errors are counted, if these have shifted.
    budget : callable
        The method's error budget as a function of n, ceiling and delta.
    replacement : bool
        Whether calibration points are drawn with replacement.

    Raises
    ------
    InputError
        If a promised class is empty, or more points are drawn without replacement than there are.

    Examples
    --------
    >>> exact = exact_violation(np.arange(52_000.0), np.arange(52_000.0), (2000, 1000))
    >>> round(exact.fpr, 4), round(exact.fnr, 4)
    (0.042, 0.0431)
    """
    classes = _both_classes(normal, anomalous, sizes, as_guarantee(guarantee), future, budget)
    return ExactViolation(*(None if one is None else one.violation(replacement) for one in classes))


def violation_rate(
    normal: ArrayLike,
    anomalous: ArrayLike,
    sizes: tuple[int, int],
    guarantee: Guarantee | None = None,
    *,
    trials: int = 4000,
    random: np.random.Generator,
    future: tuple[ArrayLike, ArrayLike] | None = None,
    budget: BudgetRule = error_budget,
    confidence: float = 0.95,
) -> ViolationRate:
    """Return how often simulated calibrations break a ceiling, each drawn with replacement.

    The thresholds of a draw are order statistics and are drawn directly, eq. (19), so the cost does not
    depend on the numbers of calibration points.

    Parameters
    ----------
    normal, anomalous, sizes, guarantee, future, budget
        As for `exact_violation`.
    trials : int
        How many calibrations are simulated.
    random : numpy.random.Generator
        The generator that draws them.
    confidence : float
        The confidence of the intervals around the simulated rates.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> found = violation_rate(np.arange(9e3), np.arange(8e3, 17e3), (1000, 1000), random=random)
    >>> print(found.fpr)
    0.0403 [0.0344, 0.0468]
    >>> found.separated.value, round(found.mean_fpr, 3)
    (0.0, 0.039)
    """
    if check_count("trials", trials) == 0:
        raise InputError("trials must be at least 1, got 0; the paper takes 4,000")
    if trials > _MOST_TRIALS:
        raise InputError(f"trials must be at most {_MOST_TRIALS:,}, got {trials:,}; each is kept in memory")
    check_rate("confidence", confidence)

    if not hasattr(random, "beta"):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")
    asked = as_guarantee(guarantee)
    classes = _both_classes(normal, anomalous, sizes, asked, future, budget)
    flagged, missed = (None if one is None else one.draw(trials, random) for one in classes)
    ambiguity, separated = 0.0, np.ones(trials, dtype=bool)
    if flagged is not None and missed is not None:
        # both counts are of all points from some score on, so their difference counts those in between
        abstained = np.abs(flagged.errors - flagged.scored.from_on(-missed.thresholds)[missed.which])
        abstained += np.abs(missed.errors - missed.scored.from_on(-flagged.thresholds)[flagged.which])
        ambiguity = float(abstained.mean()) / (flagged.scored.future.size + missed.scored.future.size)
        separated = -missed.thresholds[missed.which] > flagged.thresholds[flagged.which]
    rates = [None if one is None else one.errors / one.scored.future.size for one in (flagged, missed)]
    return ViolationRate.counted(asked, rates, ambiguity, separated, confidence)


def independent_violation(
    sizes: tuple[int, int], test_sizes: tuple[int, int], guarantee: Guarantee
) -> ExactViolation:
    """Return how often a test part's error rate exceeds its ceiling if all points are independent: eq. (20).

    It may exceed delta, because the test part varies too. Compare `series.Points.violation` with it. Random
    divisions of any series reach exactly this probability.

    Parameters
    ----------
    sizes, test_sizes : tuple of int
        The numbers of normal and of anomalous points, for calibration and for the test.
    guarantee : Guarantee
        The ceilings and deltas of the calibration.

    Examples
    --------
    >>> found = independent_violation((1000, 100), (4000, 400), Guarantee(0.1, 0.1, 0.1, 0.1))
    >>> round(found.fpr, 3), round(found.fnr, 3)
    (0.114, 0.07)
    """
    guarantee = as_guarantee(guarantee)
    for name, pair in (("sizes", sizes), ("test_sizes", test_sizes)):
        _check_pair(name, pair)
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


@dataclass(frozen=True, slots=True)
class _Draws:
    """Simulated calibrations of one class: all thresholds, and the threshold and errors of each trial."""

    scored: "_ClassScores"
    thresholds: Scores
    which: Integers
    errors: Integers


@dataclass(frozen=True, slots=True)
class _ClassScores:
    """The scores of one class, anomalies negated, so that an error is a score *above* the threshold."""

    scores: Scores
    future: Scores
    n: int
    ceiling: float
    budget: int | None

    def from_on(self, thresholds: Scores) -> Integers:
        return self.future.size - np.searchsorted(self.future, thresholds, side="left")

    def draw(self, trials: int, random: np.random.Generator) -> _Draws:
        """Return the (budget + 1)-th largest of n points drawn with replacement, once per trial: eq. (19)."""
        if self.budget is None:
            thresholds, which = np.full(1, np.inf), np.zeros(trials, dtype=np.intp)
        else:
            # one minus the (budget + 1)-th largest of n uniform numbers
            from_top = random.beta(self.budget + 1, self.n - self.budget, trials)
            rank = np.minimum((from_top * self.scores.size).astype(np.intp), self.scores.size - 1)
            first, last = int(rank.min()), int(rank.max())
            if last - first < trials:  # looking up all ranks in between is faster than sorting the trials
                ranks, which = np.arange(first, last + 1), rank - first
            else:
                ranks, which = np.unique(rank, return_inverse=True)
            # in falling order, they are quick to look up
            thresholds = self.scores[self.scores.size - 1 - ranks]
        above = self.future.size - np.searchsorted(self.future, thresholds, side="right")
        return _Draws(self, thresholds, which, above[which])

    def violation(self, replacement: bool) -> float:
        """Return P(threshold < q), q the smallest score that has few enough others above it: eq. (17)."""
        total = self.scores.size
        if not replacement and self.n > total:
            raise InputError(
                f"{self.n:,} points cannot be drawn from {total:,} without replacement; draw fewer of them"
            )
        if self.budget is None:
            return 0.0
        least = self.future[self.future.size - 1 - errors_within(self.ceiling, self.future.size)]
        erring = int(total - np.searchsorted(self.scores, least, side="left"))
        if replacement:
            return cdf(self.budget, self.n, erring / total)
        return hypergeometric_cdf(self.budget, self.n, erring, total)


def _both_classes(
    normal: ArrayLike,
    anomalous: ArrayLike,
    sizes: tuple[int, int],
    guarantee: Guarantee,
    future: tuple[ArrayLike, ArrayLike] | None,
    budget: BudgetRule,
) -> tuple[_ClassScores | None, _ClassScores | None]:
    """Return the two classes, None for a class without a ceiling, or refuse impossible arguments."""
    _check_pair("sizes", sizes)
    for name, n in zip(_NAMES, sizes, strict=True):
        check_count(f"sizes ({name})", n)

    def oriented(pair: tuple[ArrayLike, ArrayLike]) -> tuple[Scores, Scores]:
        high, low = (as_scores(scores, name) for scores, name in zip(pair, _NAMES, strict=True))
        high, low = np.sort(high), -low
        low.sort()  # np.sort would copy it once more
        # the next double after the largest stands for "never", so normals from there on are never flagged
        high[np.searchsorted(high, _LARGEST) :] = np.inf
        return high, low

    if future is not None and (not isinstance(future, tuple | list) or len(future) != 2):
        raise InputError("future must be a pair of arrays: the scores of normal and of anomalous points")

    drawn = oriented((normal, anomalous))
    judged = drawn if future is None else oriented(future)

    def scored(place: int, promise: Promise | None) -> _ClassScores | None:
        if promise is None:
            return None
        if min(drawn[place].size, judged[place].size) == 0:
            raise InputError(
                f"the {promise.of.label} population is empty; pass its scores, or {promise.of.option}=None"
            )
        n = sizes[place]
        errors = budget(n, promise.at_calibration, promise.delta)
        if errors is not None and not 0 <= check_count("budget", errors) < n:
            raise InputError(f"budget must allow fewer errors than there are points, got {errors!r} of {n:,}")
        return _ClassScores(drawn[place], judged[place], n, promise.ceiling, errors)

    return scored(0, guarantee.fpr), scored(1, guarantee.fnr)


def _check_pair(name: str, pair: object) -> None:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{name} must be the numbers of normal and of anomalous points, got {pair!r}")
