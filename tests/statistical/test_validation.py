"""What simulated calibrations do, against exact laws and against naive resampling.

Every comparison states its false-alarm rate, 1e-6 unless it says otherwise, and proves its power.
"""

import warnings
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta, binom, chi2, ncx2, norm

from pac_wrap import Guarantee, Regime, UpsideDownWarning, calibrate
from pac_wrap.method.rule import Thresholds, alarm_from, clear_below
from pac_wrap.tails.bounds import error_budget
from pac_wrap.validation import BudgetRule, exact_violation, violation_rate
from pac_wrap_paper.baselines import cpad_budget
from statistical.claims import FALSE_ALARM, POWER, assert_power, assert_rate
from support.examples import examples
from support.slow import slow_but
from support.strategies import Floats, guarantee, scores

TRIALS = 40_000
TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
TWENTIETH = Guarantee()


@dataclass(frozen=True)
class Case:
    """Two populations, the numbers of points drawn from them, a promise and a rule."""

    normal: Floats
    anomalous: Floats
    sizes: tuple[int, int]
    promise: Guarantee
    rule: BudgetRule = error_budget


def gaussian(size: int, mean: float, step: float | None = None) -> Floats:
    """Return the quantiles of a normal law, rounded to multiples of `step`: no luck in the population."""
    values = norm.ppf((np.arange(size) + 0.5) / size) + mean
    return np.asarray(values if step is None else np.round(values / step) * step)


CASES = {
    "without ties": Case(gaussian(5000, 0), gaussian(3000, 2), (1000, 170), TWENTIETH),
    "few points": Case(gaussian(60, 0), gaussian(45, 3), (22, 59), TENTH),
    "ties": Case(gaussian(900, 0, 0.1), gaussian(700, 1, 0.1), (200, 100), TENTH),
    "nothing but ties": Case(
        np.repeat([0.0, 1.0, 2.0], [30, 4, 2]), np.repeat([1.0, 2.0], [2, 16]), (30, 30), TENTH
    ),
    "infinite masses": Case(
        np.append(gaussian(90, 0), [inf] * 12), np.append(gaussian(90, 2), [-inf] * 11), (100, 60), TENTH
    ),
    "conformal": Case(gaussian(5000, 0), gaussian(3000, 2), (865, 170), TWENTIETH, cpad_budget),
    "conformal with ties": Case(
        gaussian(900, 0, 0.05), gaussian(700, 1, 0.05), (200, 100), TENTH, cpad_budget
    ),
}


def shifted(rule: BudgetRule, by: int) -> BudgetRule:
    """Return a rule that is wrong by some errors."""

    def wrong(n: int, rate: float, delta: float) -> int | None:
        k = rule(n, rate, delta)
        assert k is not None
        return k + by if k + by >= 0 else None

    return wrong


@pytest.mark.parametrize("name", CASES)
def test_simulated_violations_are_as_frequent_as_the_exact_tail(name: str) -> None:
    case = CASES[name]
    arguments = (case.normal, case.anomalous, case.sizes, case.promise)
    exact = exact_violation(*arguments, budget=case.rule)
    wrong = [exact_violation(*arguments, budget=shifted(case.rule, by)) for by in (-1, 1)]
    random = np.random.default_rng(5)
    found = violation_rate(*arguments, budget=case.rule, trials=TRIALS, random=random)
    for side in ("fpr", "fnr"):
        expected, counted = getattr(exact, side), getattr(found, side)
        for mistake in wrong:
            assert_power(TRIALS, expected, getattr(mistake, side))
        assert_rate(counted.count, TRIALS, expected)


@pytest.mark.parametrize("shift", [-0.3, 0.3])
def test_simulated_violations_after_a_shift_follow_the_exact_tail(shift: float) -> None:
    normal, anomalous, sizes = gaussian(2000, 0), gaussian(2000, 2), (200, 170)
    future = (gaussian(1500, shift), gaussian(1700, 2 + shift, 0.01))
    exact = exact_violation(normal, anomalous, sizes, TENTH, future=future)
    plain = exact_violation(normal, anomalous, sizes, TENTH)
    random = np.random.default_rng(6)
    found = violation_rate(normal, anomalous, sizes, TENTH, future=future, trials=TRIALS, random=random)
    for side in ("fpr", "fnr"):
        # a simulation that forgot the shift would be seen
        assert_power(TRIALS, getattr(exact, side), getattr(plain, side))
        assert_rate(getattr(found, side).count, TRIALS, getattr(exact, side))


def pairs(normal: Floats, anomalous: Floats) -> list[Thresholds]:
    """Return the thresholds at every normal and every anomalous score."""
    return [
        Thresholds(alarm_from(normal[[i]], 0), clear_below(anomalous[[j]], 0))
        for i, j in product(range(normal.size), range(anomalous.size))
    ]


def observed(rule: Thresholds, normal: Floats, anomalous: Floats, both: Floats) -> list[float]:
    return [
        float(rule.y_fp(normal).mean()),
        1.0 - float(rule.y_fn(anomalous).mean()),
        rule.rule.ambiguity(both),
        float(rule.separated),
    ]


class EveryRank:
    """Stands for a generator: `beta` runs through every pair of ranks once, and keeps what it was asked."""

    def __init__(self, sizes: tuple[int, int]) -> None:
        first, second = ((np.arange(size) + 0.5) / size for size in sizes)
        self.answers = [np.repeat(first, second.size), np.tile(second, first.size)]
        self.asked: list[tuple[float, float]] = []

    def beta(self, a: float, b: float, size: int) -> Floats:
        self.asked.append((a, b))
        assert size == self.answers[0].size
        return self.answers.pop(0)


@settings(max_examples=examples(80))
@given(scores(1, 9), scores(1, 9), st.integers(1, 5), st.integers(0, 4), guarantee)
def test_each_pair_of_thresholds_is_judged_as_by_thresholds(
    normal: Floats, anomalous: Floats, n: int, k: int, promise: Guarantee
) -> None:
    assume(k < n)
    stub = EveryRank((normal.size, anomalous.size))
    trials = normal.size * anomalous.size
    random = cast(np.random.Generator, stub)
    drawn = violation_rate(
        normal, anomalous, (n, n), promise, trials=trials, random=random, budget=lambda *_: k
    )
    assert stub.asked == [(k + 1, n - k)] * 2
    everything = np.concatenate([normal, anomalous])
    rows = [observed(rule, normal, anomalous, everything) for rule in pairs(normal, anomalous)]
    flagged, missed, ambiguity, separated = np.array(rows).T
    assert drawn.mean_fpr == pytest.approx(flagged.mean(), abs=1e-12)
    assert drawn.mean_fnr == pytest.approx(missed.mean(), abs=1e-12)
    assert drawn.ambiguity == pytest.approx(ambiguity.mean(), abs=1e-12)
    assert drawn.separated.count == separated.sum()
    assert drawn.fpr is not None
    assert drawn.fnr is not None
    # a rate within rounding of its ceiling is looked at elsewhere
    max_fpr, max_fnr = promise.max_fpr or 1.0, promise.max_fnr or 1.0
    assume(np.abs(flagged - max_fpr).min() > 1e-9 < np.abs(missed - max_fnr).min())
    assert (drawn.fpr.count, drawn.fpr.n) == ((flagged > max_fpr).sum(), trials)
    assert (drawn.fnr.count, drawn.fnr.n) == ((missed > max_fnr).sum(), trials)


@pytest.mark.parametrize("total", [1, 2, 7, 60, 1000])
@pytest.mark.parametrize("n", [1, 2, 10, 59, 2000])
def test_a_rank_drawn_directly_has_the_law_of_naive_resampling(total: int, n: int) -> None:
    # the j-th smallest of n draws is among the first i of N exactly if at least j draws are
    at = np.arange(total + 1) / total
    for j in {1, 2, (n + 1) // 2, n - 1, n} & set(range(1, n + 1)):
        direct, naive = beta.cdf(at, j, n - j + 1), binom.sf(j - 1, n, at)
        np.testing.assert_allclose(direct, naive, rtol=0, atol=1e-12)


def rank_law(total: int, n: int, k: int) -> Floats:
    """Return P(the (k+1)-th largest of n draws with replacement is the i-th largest of N), i = 1 to N."""
    return np.asarray(np.diff(binom.sf(k, n, np.arange(total + 1) / total)))


def direct_ranks(total: int, n: int, k: int, seed: int) -> NDArray[np.int64]:
    """Return how often `violation_rate` put its threshold on each rank, read off its violations alone.

    With one seed all calls draw the same thresholds; more than i - 1/2 points above one means rank > i.
    """
    beyond = [TRIALS]
    for i in range(total - 1):
        promise = Guarantee((i + 0.5) / total, None)
        random = np.random.default_rng(seed)
        found = violation_rate(
            np.arange(total), [], (n, 0), promise, trials=TRIALS, random=random, budget=lambda *_: k
        )
        assert found.fpr is not None
        beyond.append(found.fpr.count)
    return -np.diff([*beyond, 0])


def naive_ranks(total: int, n: int, k: int, seed: int) -> NDArray[np.int64]:
    """Return how often the (k+1)-th largest of n indices drawn with replacement is each index."""
    drawn = np.random.default_rng(seed).integers(total, size=(TRIALS, n))
    threshold = np.partition(drawn, n - 1 - k, axis=1)[:, n - 1 - k]
    return np.bincount(total - 1 - threshold, minlength=total)


@pytest.mark.parametrize(("total", "n", "k"), [(12, 5, 0), (20, 30, 3), (15, 60, 12), (30, 10, 9)])
def test_thresholds_drawn_directly_are_those_of_naive_resampling(total: int, n: int, k: int) -> None:
    law = rank_law(total, n, k)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    direct, naive = direct_ranks(total, n, k, seed=7), naive_ranks(total, n, k, seed=8)
    # each rank by itself, exactly; all of them together raise a false alarm with probability 1e-6 at most
    for hits in (direct, naive):
        assert hits.sum() == TRIALS
        for count, chance in zip(hits, law, strict=True):
            assert_rate(int(count), TRIALS, float(chance), false_alarm=FALSE_ALARM / total)
    # two samples against each other: chi-square over ranks that are frequent enough for its limit
    often = law * TRIALS >= 100
    cells = int(often.sum())
    expected = (direct + naive)[often] / 2
    statistic = sum(float(((hits[often] - expected) ** 2 / expected).sum()) for hits in (direct, naive))
    critical = float(chi2.isf(FALSE_ALARM, cells))
    assert statistic <= critical
    # a budget wrong by one error shifts the law; what it would add to chi-square
    other = rank_law(total, n, k - 1 if k else k + 1)
    added = float(TRIALS * ((law - other)[often] ** 2 / (law + other)[often]).sum())
    assert ncx2.sf(critical, cells, added) >= POWER


def expectations(case: Case) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each observed value, over all pairs of thresholds."""
    ks = [cast(int, error_budget(n, 0.1, 0.1)) for n in case.sizes]
    normal, anomalous = np.sort(case.normal)[::-1], np.sort(case.anomalous)
    both = np.concatenate([normal, anomalous])
    weights = np.outer(
        rank_law(normal.size, case.sizes[0], ks[0]), rank_law(anomalous.size, case.sizes[1], ks[1])
    ).ravel()
    values = np.array([observed(rule, normal, anomalous, both) for rule in pairs(normal, anomalous)])
    mean = weights @ values
    spread = np.sqrt(weights @ (values - mean) ** 2)
    return {name: (mean[i], spread[i]) for i, name in enumerate(("fpr", "fnr", "ambiguity", "separated"))}


def assert_mean(found: float, trials: int, mean: float, spread: float, wrong: float) -> None:
    """Fail if a mean is further off than 1e-6 explains, or if `wrong` would not be caught with .999.

    A two-sided z-test, the spread being known; thousands of trials make the normal law good enough.
    """
    error = spread / np.sqrt(trials)
    critical = float(norm.isf(FALSE_ALARM / 2))
    assert abs(wrong - mean) >= (critical + norm.ppf(POWER)) * error
    assert abs(found - mean) <= critical * error + 1e-12


MEANS = {
    "near the border": Case(gaussian(60, 0), gaussian(50, 3), (60, 40), TENTH),
    "ties": Case(gaussian(60, 0, 0.4), gaussian(50, 2.8, 0.4), (60, 40), TENTH),
    "overlapping": Case(gaussian(60, 0), gaussian(50, 1), (60, 40), TENTH),
    "infinities": Case(
        np.append(gaussian(50, 0), [inf] * 2), np.append(gaussian(45, 2), [-inf] * 2), (60, 40), TENTH
    ),
}


@pytest.mark.parametrize("name", slow_but(2, MEANS))
def test_mean_rates_ambiguity_and_separation_agree_with_calibrate(name: str) -> None:
    case = MEANS[name]
    expected = expectations(case)
    assert name != "near the border" or 0.05 < expected["separated"][0] < 0.95
    random = np.random.default_rng(9)
    found = violation_rate(
        case.normal, case.anomalous, case.sizes, case.promise, trials=TRIALS, random=random
    )
    assert found.mean_fpr is not None
    assert found.mean_fnr is not None
    direct = [found.mean_fpr, found.mean_fnr, found.ambiguity, found.separated.value]

    naive, few = [], 2_000
    both = np.concatenate([case.normal, case.anomalous])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        for _ in range(few):
            certificate = calibrate(
                random.choice(case.normal, case.sizes[0]),
                random.choice(case.anomalous, case.sizes[1]),
                case.promise,
                overlap="abstain_always",
            )
            rule = certificate.thresholds
            row = observed(rule, case.normal, case.anomalous, both)
            assert row[2] == certificate.rule.ambiguity(both)
            assert rule.separated == (certificate.regime is Regime.SEPARATED)
            naive.append(row)
    for i, (what, (mean, spread)) in enumerate(expected.items()):
        if what == "separated":
            assert_rate(found.separated.count, TRIALS, min(mean, 1.0))
            assert_rate(int(np.sum(naive, axis=0)[i]), few, min(mean, 1.0))
            continue
        # a budget wrong by one error moves a mean rate by about 1 / (n + 1); ambiguity varies more
        wrong, wrong_naive = (0.01, 0.04) if what == "ambiguity" else (1 / 61, 1 / 61)
        assert_mean(direct[i], TRIALS, mean, spread, mean + wrong)
        assert_mean(float(np.mean(naive, axis=0)[i]), few, mean, spread, mean + wrong_naive)
