"""How often calibration breaks its promise on a population that is known: exactly, and by simulation.

The rates are those of the two thresholds taken by themselves (`y_fp` and `y_fn`); those of the verdicts are
never larger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.binomial import error_budget, interval
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee, as_guarantee
from pac_wrap.hypergeometric import hypergeometric_cdf
from pac_wrap.inputs import Scores, as_scores, check_count, check_rate
from pac_wrap.metrics import Rate
from pac_wrap.tail import cdf

BudgetRule = Callable[[int, float, float], int | None]
Counts = NDArray[np.intp]
_NAMES: Final = ("normal", "anomalous")
_MOST_TRIALS: Final = 10**8
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
    if trials > _MOST_TRIALS:
        raise InputError(f"trials must be at most {_MOST_TRIALS:,}, got {trials:,}; each is kept in memory")
    check_rate("confidence", confidence)

    def share(hits: NDArray[np.bool_]) -> Rate:
        count = int(np.count_nonzero(hits))
        return Rate(count, trials, *interval(count, trials, confidence))

    def judged(draws: _Draws | None) -> tuple[Rate | None, float | None]:
        if draws is None:
            return None, None
        rates = draws.errors / draws.side.future.size
        return share(rates > draws.side.ceiling), float(rates.mean())

    if not hasattr(random, "beta"):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")
    sides = _sides(normal, anomalous, sizes, guarantee, future, budget)
    flagged, missed = (None if side is None else _Draws.of(side, trials, random) for side in sides)
    ambiguity, separated = 0.0, np.ones(trials, dtype=bool)
    if flagged is not None and missed is not None:
        # both counts are of all points from some score on, so their difference counts those in between
        abstained = np.abs(flagged.errors - flagged.side.from_on(-missed.thresholds)[missed.which])
        abstained += np.abs(missed.errors - missed.side.from_on(-flagged.thresholds)[flagged.which])
        ambiguity = float(abstained.mean()) / (flagged.side.future.size + missed.side.future.size)
        separated = -missed.thresholds[missed.which] > flagged.thresholds[flagged.which]
    (fpr, mean_fpr), (fnr, mean_fnr) = judged(flagged), judged(missed)
    return ViolationRate(fpr, fnr, mean_fpr, mean_fnr, ambiguity, share(separated))


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

    def from_on(self, thresholds: Scores) -> Counts:
        return self.future.size - np.searchsorted(self.future, thresholds, side="left")

    def draw(self, trials: int, random: np.random.Generator) -> tuple[Scores, Counts]:
        """Return the (budget + 1)-th largest of n points drawn with replacement, once per trial: eq. (19).

        They come as scores in falling order, which are quick to look up, and which of them each trial has.
        """
        if self.budget is None:
            return np.full(1, np.inf), np.zeros(trials, dtype=np.intp)
        # one minus the (budget + 1)-th largest of n uniform numbers
        from_top = random.beta(self.budget + 1, self.n - self.budget, trials)
        rank = np.minimum((from_top * self.scores.size).astype(np.intp), self.scores.size - 1)
        first, last = int(rank.min()), int(rank.max())
        if last - first < trials:  # all ranks between them are sooner looked up than the trials sorted
            ranks, which = np.arange(first, last + 1), rank - first
        else:
            ranks, which = np.unique(rank, return_inverse=True)
        return self.scores[self.scores.size - 1 - ranks], which

    def violation(self, replacement: bool) -> float:
        """Return P(threshold < q), q the smallest score that has few enough others above it: eq. (17)."""
        total = self.scores.size
        if not replacement and self.n > total:
            raise InputError(
                f"{self.n:,} points cannot be drawn from {total:,} without replacement; draw fewer of them"
            )
        if self.budget is None:
            return 0.0
        allowed = round(self.ceiling * self.future.size)
        allowed -= allowed / self.future.size > self.ceiling
        least = self.future[self.future.size - 1 - allowed]
        reached = int(total - np.searchsorted(self.scores, least, side="left"))
        if replacement:
            return cdf(self.budget, self.n, reached / total)
        return hypergeometric_cdf(self.budget, self.n, reached, total)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Simulated calibrations of one class: the thresholds, which of them a trial has, and its errors."""

    side: _Side
    thresholds: Scores
    which: Counts
    errors: Counts

    @classmethod
    def of(cls, side: _Side, trials: int, random: np.random.Generator) -> "_Draws":
        thresholds, which = side.draw(trials, random)
        return cls(side, thresholds, which, side.above(thresholds)[which])


def _sides(
    normal: ArrayLike,
    anomalous: ArrayLike,
    sizes: tuple[int, int],
    guarantee: Guarantee | None,
    future: tuple[ArrayLike, ArrayLike] | None,
    budget: BudgetRule,
) -> tuple[_Side | None, _Side | None]:
    asked = as_guarantee(guarantee)
    if not isinstance(sizes, tuple | list) or len(sizes) != 2:
        raise InputError(f"sizes must be the numbers of normal and anomalous points, got {sizes!r}")
    for name, n in zip(_NAMES, sizes, strict=True):
        check_count(f"sizes ({name})", n)

    def sides(pair: tuple[ArrayLike, ArrayLike]) -> tuple[Scores, Scores]:
        high, low = (as_scores(scores, name) for scores, name in zip(pair, _NAMES, strict=True))
        high, low = np.sort(high), -low
        low.sort()  # np.sort would copy it once more
        # the next double after the largest stands for "never", so normals from there on are never flagged
        high[np.searchsorted(high, _LARGEST) :] = np.inf
        return high, low

    if future is not None and (not isinstance(future, tuple | list) or len(future) != 2):
        raise InputError("future must be the scores of normal and of anomalous points, two arrays")

    def allowed(n: int, ceiling: float, delta: float) -> int | None:
        errors = budget(n, ceiling, delta)
        if errors is not None and not 0 <= check_count("budget", errors) < n:
            raise InputError(f"budget must allow fewer errors than there are points, got {errors!r} of {n:,}")
        return errors

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
        else _Side(drawn[i], judged[i], sizes[i], ceiling, allowed(sizes[i], ceiling, delta))
        for i, (ceiling, delta) in enumerate(ceilings)
    )
    return fpr, fnr
