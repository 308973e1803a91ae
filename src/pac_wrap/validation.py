"""How often calibration breaks its promise on a population that is known: exactly, and by simulation.

The rates are those of the two thresholds taken by themselves (`y_fp` and `y_fn`); those of the verdicts are
never larger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.binomial import error_budget, interval
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores, as_scores, check_count, check_rate
from pac_wrap.metrics import Rate
from pac_wrap.tail import cdf

BudgetRule = Callable[[int, float, float], int | None]
Counts = NDArray[np.intp]
_NAMES: Final = ("normal", "anomalous")
_LARGEST: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class ExactViolation:
    """The probability, over draws of the calibration points, that a rate exceeds its ceiling.

    None on a side where nothing is promised.
    """

    fpr: float | None
    fnr: float | None


@dataclass(frozen=True, slots=True)
class ViolationRate:
    """What simulated calibrations did: how many broke a ceiling, and the rates they had on average.

    `separated` counts those whose thresholds could be replaced by one. None where nothing is promised.
    """

    fpr: Rate | None
    fnr: Rate | None
    mean_fpr: float | None
    mean_fnr: float | None
    ambiguity: float
    separated: Rate


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
    """Return how probable it is that a calibration breaks a ceiling, if it draws from this population.

    `sizes` are the numbers of normal and anomalous calibration points. Drawn with replacement, the
    probability is a binomial tail, eq. (17), without replacement a hypergeometric one, eq. (18). `future`
    are the populations that the rates are counted on, if they have shifted. `budget` says how many errors a
    method allows among its n points, given ceiling and delta.

    >>> exact = exact_violation(np.arange(52_000.0), np.arange(52_000.0), (2000, 1000))
    >>> round(exact.fpr, 4), round(exact.fnr, 4)
    (0.042, 0.0431)
    """
    sides = _sides(normal, anomalous, sizes, guarantee, future, budget)
    return ExactViolation(*(None if side is None else side.violation(replacement) for side in sides))


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
    """Return what `trials` calibrations do, each drawn with replacement from this population.

    The thresholds of a draw are order statistics, which are drawn directly, eq. (19); so the cost does not
    depend on the numbers of calibration points.

    >>> random = np.random.default_rng(0)
    >>> found = violation_rate(np.arange(9e3), np.arange(8e3, 17e3), (1000, 1000), random=random)
    >>> print(found.fpr)
    0.0403 [0.0344, 0.0468]
    >>> found.separated.value, round(found.mean_fpr, 3)
    (0.0, 0.039)
    """
    if check_count("trials", trials) == 0:
        raise InputError("trials must be at least 1, got 0; the paper takes 4,000")
    check_rate("confidence", confidence)

    def share(hits: NDArray[np.bool_]) -> Rate:
        count = int(np.count_nonzero(hits))
        return Rate(count, trials, *interval(count, trials, confidence))

    fpr, fnr = _sides(normal, anomalous, sizes, guarantee, future, budget)
    flagged_above = None if fpr is None else fpr.draw(trials, random)
    missed_above = None if fnr is None else fnr.draw(trials, random)
    rates = [
        None if side is None or cut is None else side.above(cut) / side.future.size
        for side, cut in ((fpr, flagged_above), (fnr, missed_above))
    ]
    broken = [
        None if side is None or found is None else share(found > side.ceiling)
        for side, found in zip((fpr, fnr), rates, strict=True)
    ]
    means = [None if found is None else float(found.mean()) for found in rates]
    ambiguity, separated = 0.0, np.ones(trials, dtype=bool)
    if fpr is not None and fnr is not None and flagged_above is not None and missed_above is not None:
        # flagged and kept points are both all those from some score on: they differ by as many as they count
        kept_normal = fpr.future.size - fpr.below(-missed_above)
        kept_anomalous = fnr.future.size - fnr.above(missed_above)
        abstained = np.abs(fpr.above(flagged_above) - kept_normal)
        abstained += np.abs(fnr.below(-flagged_above) - kept_anomalous)
        ambiguity = float(abstained.mean()) / (fpr.future.size + fnr.future.size)
        separated = (-missed_above > flagged_above) & (flagged_above < _LARGEST)
    return ViolationRate(broken[0], broken[1], means[0], means[1], ambiguity, share(separated))


@dataclass(frozen=True, slots=True)
class _Side:
    """One class, so oriented that an error is a score *above* the threshold; anomalies are negated."""

    scores: Scores
    future: Scores
    n: int
    ceiling: float
    budget: int | None

    def above(self, thresholds: Scores) -> Counts:
        return self.future.size - np.searchsorted(self.future, thresholds, side="right")

    def below(self, thresholds: Scores) -> Counts:
        return np.searchsorted(self.future, thresholds, side="left")

    def draw(self, trials: int, random: np.random.Generator) -> Scores:
        """Return the (budget + 1)-th largest of n points drawn with replacement, once per trial: eq. (19)."""
        if self.budget is None:
            return np.full(trials, np.inf)
        # one minus the (budget + 1)-th largest of n uniform numbers
        from_top = random.beta(self.budget + 1, self.n - self.budget, trials)
        rank = np.minimum((from_top * self.scores.size).astype(np.intp), self.scores.size - 1)
        return np.asarray(self.scores[self.scores.size - 1 - rank])

    def violation(self, replacement: bool) -> float:
        """Return P(threshold < q), q the smallest score that has few enough others above it: eq. (17)."""
        if self.budget is None:
            return 0.0
        allowed = round(self.ceiling * self.future.size)
        allowed -= allowed / self.future.size > self.ceiling
        least = self.future[self.future.size - 1 - allowed]
        total = self.scores.size
        reached = int(total - np.searchsorted(self.scores, least, side="left"))
        if replacement:
            return cdf(self.budget, self.n, reached / total)
        if self.n > total:
            raise InputError(
                f"{self.n:,} points cannot be drawn from {total:,} without replacement; draw fewer of them"
            )
        return _hypergeometric_cdf(self.budget, self.n, reached, total)


def _sides(
    normal: ArrayLike,
    anomalous: ArrayLike,
    sizes: tuple[int, int],
    guarantee: Guarantee | None,
    future: tuple[ArrayLike, ArrayLike] | None,
    budget: BudgetRule,
) -> tuple[_Side | None, _Side | None]:
    asked = Guarantee() if guarantee is None else guarantee

    # alarm_from stands above the largest double only as "never", so what scores inf ties with it
    def sides(pair: tuple[ArrayLike, ArrayLike]) -> tuple[Scores, Scores]:
        high, low = (np.minimum(as_scores(pair[i], name), _LARGEST) for i, name in enumerate(_NAMES))
        return np.sort(high), np.sort(-low)

    ceilings = ((asked.max_fpr, asked.delta_fpr), (asked.max_fnr, asked.delta_fnr))
    drawn = sides((normal, anomalous))
    judged = drawn if future is None else sides(future)
    for i, (ceiling, _) in enumerate(ceilings):
        if ceiling is not None and min(drawn[i].size, judged[i].size) == 0:
            raise InputError(
                f"the {_NAMES[i]} population is empty; pass its scores, or promise nothing there"
            )
    fpr, fnr = (
        None
        if ceiling is None
        else _Side(drawn[i], judged[i], sizes[i], ceiling, budget(sizes[i], ceiling, delta))
        for i, (ceiling, delta) in enumerate(ceilings)
    )
    return fpr, fnr


def _hypergeometric_cdf(k: int, n: int, marked: int, total: int) -> float:
    """Return the chance of at most k marked points among n drawn without replacement: eq. (18)."""
    ways = sum(
        comb(marked, i) * comb(total - marked, n - i) for i in range(max(0, n + marked - total), k + 1)
    )
    return ways / comb(total, n)
