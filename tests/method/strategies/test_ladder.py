import time
from itertools import cycle
from math import inf

import numpy as np
import pytest
from scipy.special import betainccinv, betaincinv
from scipy.stats import binom

from pac_wrap.tails import levels as module
from pac_wrap.tails.levels import Ladder, failure, fixed_failure, fixed_level, local_level
from support.ladder import failures, fixed_failures, rungs, worst_failure
from support.slow import slow_but
from support.strategies import exact_budget

RATES = [(asked, delta) for asked in (0.01, 0.05, 0.3) for delta in (0.01, 0.05, 0.3)]


@pytest.mark.parametrize(("n", "level"), [(170, 0.0328), (865, 0.0409), (2000, 0.0439)])
def test_the_reference_levels(n: int, level: float) -> None:
    assert round(local_level(n, 0.05, 0.05, 0.5), 4) == level


@pytest.mark.parametrize("n", slow_but(5, [1, 2, 5, 13, 59, 93, 170]))
def test_the_level_is_certified_and_its_failure_is_the_supremum_of_the_sum_over_all_counts(n: int) -> None:
    for (asked, delta), top in zip(RATES, cycle([0.5, 0.9]), strict=False):
        case = n, asked, delta, top
        level = local_level(*case)
        ours, theirs = failure(n, asked, level, top), worst_failure(n, asked, level, top, between=40)
        # the ceilings, which the code looks at, are in the grid; so are forty places between any two
        assert ours == pytest.approx(theirs, rel=1e-6), case
        assert theirs <= delta * (1.0 + 1e-9), case
        assert 0.0 < level <= delta, case
        assert float(f"{level:.8g}") == level, case


@pytest.mark.parametrize("n", [59, 93, 170, 865, 2000])
def test_the_level_is_not_needlessly_cautious(n: int) -> None:
    level = local_level(n, 0.05, 0.05, 0.5)
    assert failure(n, 0.05, level, 0.5) <= 0.05
    assert failure(n, 0.05, level * (1.0 + 1e-6), 0.5) > 0.05


def test_every_level_is_certified_even_where_the_first_rung_jumps() -> None:
    for n in (*range(1, 62, 4), *range(58, 62), *range(90, 96), *range(62, 250, 17)):
        assert failure(n, 0.05, local_level(n, 0.05, 0.05, 0.5), 0.5) <= 0.05


def test_a_level_that_fails_on_later_rungs_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    # sought on a single rung, the level is found far too high
    found = local_level(170, 0.05, 0.05, 0.5)
    monkeypatch.setattr(module, "_ENDS", 1)
    monkeypatch.setattr(module, "_NEGLIGIBLE", 1.0)
    local_level.cache_clear()
    monkeypatch.setattr(module, "failure", lambda *at: 2.0 * failure(*at) if len(at) == 4 else failure(*at))
    lowered = local_level(170, 0.05, 0.05, 0.5)
    local_level.cache_clear()
    assert lowered < found
    assert 2.0 * failure(170, 0.05, lowered, 0.5) <= 0.05


@pytest.mark.parametrize("n", [59, 170, 865])
def test_the_rungs_are_the_bounds_of_every_number_of_errors(n: int) -> None:
    level = local_level(n, 0.05, 0.05, 0.5)
    ladder = Ladder(n, 0.05, level, 0.5)
    first, ceilings = rungs(n, 0.05, level, 0.5)
    kept = exact_budget(n, 0.05, level)
    assert (ladder.first, ladder.last) == (first, first + ceilings.size - 1)
    assert (ladder.kept, first) == (kept, kept or 0)
    ours = [ladder.ceiling(errors) for errors in range(ladder.first, ladder.last + 1)]
    np.testing.assert_allclose(ours, ceilings, rtol=1e-9)
    assert ours == sorted(ours)
    # each rung certifies its ceiling, and not one more error
    for errors, ceiling in zip(range(ladder.first, ladder.last + 1), ours, strict=True):
        assert binom.cdf(errors, n, ceiling) <= level * (1.0 + 1e-9)
        assert binom.cdf(errors + 1, n, ceiling) > level


def test_too_few_points_have_no_first_rung_and_none_at_all_no_ladder() -> None:
    some = Ladder(865, 0.05, local_level(865, 0.05, 0.05, 0.5), 0.5)
    assert (some.first, some.ceiling(31), round(some.ceiling(32), 4)) == (31, 0.05, 0.0501)
    few = Ladder(20, 0.05, local_level(20, 0.05, 0.05, 0.5), 0.5)
    assert few.kept is None
    assert few.first == 0
    assert 0.05 < few.ceiling(0) < 0.2
    for n in (0, 1, 2):
        none = Ladder(n, 0.05, local_level(n, 0.05, 0.05, 0.5), 0.5)
        assert none.last < none.first
        assert failure(n, 0.05, none.level, 0.5) == 0.0


def test_a_lower_top_only_truncates() -> None:
    levels = [local_level(865, 0.05, 0.05, top) for top in (0.05, 0.06, 0.1, 0.2, 0.5, 0.9)]
    assert levels == sorted(levels, reverse=True)
    # a single rung, or two of which the first was asked for, keep all of delta or nearly
    assert levels[0] == pytest.approx(0.05, abs=1e-8)


def test_the_simplified_sum_is_the_sum_over_all_counts_at_any_place() -> None:
    n, level = 170, 0.03
    first, ceilings = rungs(n, 0.05, level, 0.5)
    places = np.sort(np.random.default_rng(0).uniform(ceilings[0] * 0.8, ceilings[-1], 300))
    expected = failures(n, first, ceilings, places)
    found = []
    for place in places:
        j = int(np.searchsorted(ceilings, place))  # e_{j-1} < c <= e_j
        i = np.arange(first + j, first + ceilings.size)
        log_terms = binom.logpmf(i, n, place) + (n - i) * (np.log1p(-ceilings[j:]) - np.log1p(-place))
        below = binom.cdf(first + j - 1, n, place) if j else binom.cdf(first, n, ceilings[0])
        found.append(below + np.exp(log_terms if j else log_terms[1:]).sum())
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_blocks_and_terms_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = failure(865, 0.05, 0.04, 0.5)
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert failure(865, 0.05, 0.04, 0.5) == pytest.approx(whole, rel=1e-12)
    # terms that were left out are never taken for nothing
    monkeypatch.setattr(module, "_TERMS", 1)
    monkeypatch.setattr(module, "log", lambda _: 0.0)
    assert failure(865, 0.05, 0.04, 0.5) == inf


def test_interpolated_ceilings_are_those_of_scipy() -> None:
    n, level = 3_000_000, 0.0483
    start, stop = 140_000, 1_500_000
    found = module._ceilings(start, stop, n, level)
    assert found.size == stop - start
    errors = np.random.default_rng(1).integers(start, stop, 400)
    exact = betainccinv(errors + 1.0, n - errors, level)
    np.testing.assert_allclose(found[errors - start], exact, rtol=1e-12)
    assert (np.diff(found) > 0).all()


def test_ceilings_near_one_are_those_of_scipy() -> None:
    n, level = 30_000, 0.04
    errors = np.arange(n)
    exact = betaincinv(n - errors, errors + 1.0, level)  # 1 - U
    np.testing.assert_allclose(1.0 - module._ceilings(0, n, n, level), exact, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("top", slow_but(1, [0.9999999, 0.999, 0.9999]))
def test_the_level_is_certified_on_rungs_near_one_where_the_failure_is_largest(top: float) -> None:
    n = 20_000
    level = local_level(n, 0.05, 0.05, top)
    last = Ladder(n, 0.05, level, top).last
    errors = np.arange(last - 40, last + 1)
    ceilings = betainccinv(errors + 1.0, n - errors, level)
    worst = max(
        level + np.exp(binom.logpmf(far, n, rest) + (n - far) * np.log(far_rest / (1.0 - rest))).sum()
        for far, rest, far_rest in (
            (errors[j + 1 :], ceilings[j], 1.0 - ceilings[j + 1 :]) for j in range(errors.size - 1)
        )
    )
    assert failure(n, 0.05, level, 0.5) < 0.98 * worst
    assert worst <= 0.05
    assert failure(n, 0.05, level, top) >= worst * (1.0 - 1e-9)


def test_what_is_no_number_certifies_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ceilings", lambda start, stop, *_: np.full(stop - start, np.nan))
    assert not failure(865, 0.05, 0.04, 0.5) <= 1.0


def test_a_hundred_thousand_points_take_less_than_a_second() -> None:
    local_level.cache_clear()
    started = time.process_time()
    assert local_level(100_000, 0.05, 0.05, 0.5) == 0.049129133
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("asked", [1e-9, 0.2, 0.999])
def test_extreme_requests_have_a_level_too(asked: float) -> None:
    top = max(asked, 0.5)
    for delta in (1e-12, 1e-3, 0.2, 0.999):
        level = local_level(500, asked, delta, top)
        assert 0.0 < level <= delta, delta
        assert failure(500, asked, level, top) <= delta, delta


def steps(step: float, start: float = 0.05) -> tuple[float, ...]:
    return tuple(round(start + step * times, 12) for times in range(1000) if start + step * times < 0.9999)


FIXED = [steps(0.1), steps(0.05), steps(0.3), steps(0.01, 0.3), (0.05, 0.1, 0.2, 0.4, 0.8), (0.2, 0.2001)]


@pytest.mark.parametrize(("n", "tenths", "twentieths"), [(170, 0.03682, 0.03718), (865, 0.03133, 0.03166)])
def test_the_reference_levels_of_fixed_ceilings(n: int, tenths: float, twentieths: float) -> None:
    assert [fixed_level(n, steps(step), 0.05) for step in (0.1, 0.05)] == [tenths, twentieths]


@pytest.mark.parametrize(
    "ceilings", slow_but(3, sorted(FIXED, key=len)), ids=lambda ceilings: f"{len(ceilings)}-{ceilings[0]}"
)
def test_the_failure_of_fixed_ceilings_is_the_supremum_over_all_places(ceilings: tuple[float, ...]) -> None:
    ends = np.array([0.0, *ceilings, 1.0])
    inner = ends[:-1, np.newaxis] + np.diff(ends)[:, np.newaxis] * np.linspace(0.0, 1.0, 12)[1:-1]
    places = np.array([*ceilings, *inner.ravel()])
    for n, delta in ((3, 0.01), (3, 0.4), (20, 0.05), (59, 0.01), (59, 0.4), (170, 0.05), (170, 0.4)):
        level = fixed_level(n, ceilings, delta)
        assert delta / len(ceilings) <= level <= delta, (n, delta)
        for at in (level, 0.7 * delta):
            found = fixed_failure(n, ceilings, at)
            failing = fixed_failures(n, np.array(ceilings), at, places)
            at_ceilings, between = failing[: len(ceilings)].max(), failing[len(ceilings) :].max()
            assert between <= at_ceilings * (1.0 + 1e-9), (n, delta, at)
            # what is left of the sum is bounded by one part in ten thousand of the level
            assert at_ceilings <= found <= at_ceilings + 1.1e-4 * at, (n, delta, at)
        assert fixed_failure(n, ceilings, level) <= delta, (n, delta)


@pytest.mark.parametrize(("each", "excess"), [(8, 1.1), (32, 1.01)])
@pytest.mark.parametrize("step", [0.3, 0.1, 0.02])
def test_terms_between_those_computed_are_bounded_from_above(
    monkeypatch: pytest.MonkeyPatch, step: float, each: int, excess: float
) -> None:
    exact = fixed_failure(2000, steps(step), 0.03)
    monkeypatch.setattr(module, "_SUMMED", each * len(steps(step)))
    found = fixed_failure(2000, steps(step), 0.03)
    assert exact * (1.0 - 1e-9) <= found <= exact * excess


def test_where_sums_take_too_long_each_ceiling_has_an_equal_share() -> None:
    many = steps(0.003)
    assert len(many) > 250
    assert fixed_level(500, many, 0.05) == 0.05 / len(many)
    assert fixed_level(10**8 + 1, steps(0.1), 0.05) == 0.05 / 10
    # the bound has an error of its own, beside which such a delta is nothing
    assert fixed_level(500, steps(0.1), 1e-11) == 1e-11 / 10
    assert fixed_level(500, (0.05,), 0.123456789) == 0.123456789
    assert fixed_level(0, steps(0.1), 0.05) == 0.05


@pytest.mark.parametrize("n", [100_000, 100_000_000])
def test_fixed_ceilings_take_less_than_half_a_second(n: int) -> None:
    fixed_level.cache_clear()
    started = time.process_time()
    assert 0.027 < fixed_level(n, steps(0.1), 0.05) < 0.03
    assert time.process_time() - started < 0.5
