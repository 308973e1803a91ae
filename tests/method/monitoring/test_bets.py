"""Bets that start again: what they are by definition, that none can be expected to win, and when they do."""

from itertools import product
from math import exp, inf, log
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from pac_wrap.method.monitoring import bets as module
from pac_wrap.method.monitoring.bets import Bets, Placed, log_evidence
from statistical.claims import assert_at_most, assert_power
from support.examples import examples

NONE = np.empty(0, dtype=np.int64)
BETS = Bets.above(0.05)
ONE_PART = st.lists(st.integers(0, 1), max_size=80)


def taken(bets: Bets, labels: NDArray[np.int64], bar: float | None = None) -> tuple[Placed, list[float], Any]:
    """All labels in one part, with the wealth after each."""
    stops = np.arange(1, labels.size + 1)
    return bets.took(bets.unplaced(), labels, stops, stops, bar)


def by_definition(labels: NDArray[np.int64], ceiling: float) -> list[float]:
    """Eq. (82) after every label, with all starts of eq. (83) one by one."""
    bets, starts = Bets.above(ceiling), [0]
    while starts[-1] <= labels.size:
        starts.append(starts[-1] + max(module._LEAST_WAIT, starts[-1] // module._PART))
    heights = []
    for n in range(1, labels.size + 1):
        mixed = 1.0 / (len([start for start in starts if start < n]) + 1)
        for number, start in enumerate(starts):
            if start < n:
                ones = int(labels[start:n].sum())
                ratios = np.exp(bets.logs @ [n - start - ones, ones])
                mixed += float(ratios.mean()) / ((number + 1) * (number + 2))
        closed = exp(float(log_evidence(int(labels[:n].sum()), n, ceiling)))
        heights.append(log(0.5 * closed + 0.5 * mixed))
    return heights


@pytest.mark.parametrize(
    ("ceiling", "rate"), [(0.05, 0.05), (0.05, 0.3), (0.5, 0.4), (0.001, 0.01), (0.97, 0.98)]
)
def test_the_wealth_is_what_it_is_by_definition(ceiling: float, rate: float) -> None:
    labels = (np.random.default_rng(1).random(700) < rate).astype(np.int64)
    _, heights, _ = taken(Bets.above(ceiling), labels)
    np.testing.assert_allclose(heights, by_definition(labels, ceiling), atol=1e-9)


@pytest.mark.parametrize("ceiling", [1e-15, 1e-6, 0.05, 0.5, 0.95, 0.99, 0.999999, 1 - 2**-53])
def test_every_rate_that_is_bet_on_is_above_the_ceiling(ceiling: float) -> None:
    logs = Bets.above(ceiling).logs
    assert 1 <= len(logs) <= 24
    assert (logs[:, 1] > 0.0).all()
    assert (logs[:, 0] < 0.0).all()
    # at the ceiling nothing is won or lost on average
    np.testing.assert_allclose(
        ceiling * np.exp(logs[:, 1]) + (1.0 - ceiling) * np.exp(logs[:, 0]), 1.0, rtol=1e-12
    )


@pytest.mark.parametrize(("rate", "most"), [(0.3, 1.0), (0.2, 0.9)])
def test_nothing_is_won_on_average(rate: float, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerated: all sequences of eight labels, with a start every third."""
    monkeypatch.setattr(module, "_LEAST_WAIT", 3)
    bets, means = Bets.above(0.3), np.zeros(8)
    for labels in product((0, 1), repeat=8):
        chance = rate ** sum(labels) * (1.0 - rate) ** (8 - sum(labels))
        means += chance * np.exp(taken(bets, np.array(labels))[1])
    assert (means <= 1.0 + 1e-9).all()
    assert means[-1] <= most + 1e-9
    if rate == 0.3:
        np.testing.assert_allclose(means, 1.0, rtol=1e-9)


@settings(max_examples=examples(60))
@given(st.lists(ONE_PART, max_size=6), st.sampled_from([0.5, 0.05, 0.001]))
def test_parts_do_not_matter(parts: list[list[int]], alpha: float) -> None:
    whole = np.array([label for part in parts for label in part], dtype=np.int64)
    placed, heights, reached = taken(BETS, whole, -log(alpha))
    again, before, found, past = BETS.unplaced(), 0, None, []
    for part in parts:
        labels = np.array(part, dtype=np.int64)
        stops = np.arange(1, labels.size + 1)
        again, some, crossed = BETS.took(again, labels, before + stops, stops, None if found else -log(alpha))
        past += some
        if crossed is not None:
            found = before + crossed.point, crossed.log_evidence
        before += labels.size
    assert past == heights
    assert found == (None if reached is None else (reached.point, reached.log_evidence))
    for one, two in zip(placed, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_past_has_the_same_digits_however_many_stops_a_part_has() -> None:
    # far below the ceiling, where sums of logarithms are rounded differently in arrays of different lengths
    bets, rows = Bets.above(0.2628711285926315), np.arange(1, 56_001)
    labels = (np.random.default_rng(0).random(rows.size) < 0.2).astype(np.int64)
    placed, _, _ = bets.took(bets.unplaced(), labels[:52_000], rows[:52_000], NONE, None)
    _, whole, _ = bets.took(placed, labels[52_000:], rows[52_000:], np.arange(16, 4001, 16), None)
    alone = []
    for start in range(52_000, 56_000, 16):
        part = slice(start, start + 16)
        placed, heights, _ = bets.took(placed, labels[part], rows[part], np.array([16]), None)
        alone += heights
    assert whole == alone


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 1), max_size=300), st.sampled_from([0.5, 0.05, 0.001]))
def test_the_first_label_that_reaches_the_bar_is_found(labels: list[int], alpha: float) -> None:
    _, heights, reached = taken(BETS, np.array(labels, dtype=np.int64), -log(alpha))
    first = next((place for place, height in enumerate(heights) if height >= -log(alpha)), None)
    assert (None if reached is None else reached.point) == first


def test_a_bar_that_is_just_reached_is_reached() -> None:
    labels = (np.random.default_rng(8).random(400) < 0.15).astype(np.int64)
    _, heights, _ = taken(BETS, labels)
    records = [n for n, height in enumerate(heights) if height > max(heights[:n], default=0.0)]
    assert len(records) > 10
    for n in records:
        _, _, reached = taken(BETS, labels, heights[n])
        assert reached is not None
        assert reached.point == n


def test_no_group_of_points_is_passed_over_where_one_long_bet_has_won_most() -> None:
    """Eq. (85) bounds the wealth of points in whatever order: a rate little above the ceiling, for long."""
    labels = (np.random.default_rng(2).random(150_000) < 0.0595).astype(np.int64)
    placed, _, _ = BETS.took(BETS.unplaced(), labels, np.arange(1, labels.size + 1), NONE, None)
    won = float(log_evidence(placed.cells[1], labels.size, 0.05))
    assert won > float(BETS.log_evidence(placed)) > won - log(2.0) - 0.1
    ones = np.ones(16, dtype=np.int64)
    highest = float(BETS.log_evidence(placed, placed.cells + np.array([0, 16])))
    for bar in np.linspace(float(BETS.log_evidence(placed)) + 0.01, highest, 9).tolist():
        assert BETS._first(placed, ones, bar) is not None


def test_a_late_change_is_found_and_dated() -> None:
    """After 20,000 labels at .04 a rate of .15 is found in some hundred, where one bet takes thousands."""
    rng = np.random.default_rng(5)
    labels = np.r_[rng.random(20_000) < 0.04, rng.random(20_000) < 0.15].astype(np.int64)
    rows = np.arange(1, labels.size + 1)
    _, _, reached = BETS.took(BETS.unplaced(), labels, rows, NONE, log(100.0))
    assert reached is not None
    assert 20_000 < reached.point < 20_600
    _, row, _, fates = BETS.strongest(reached.placed)
    assert abs(row - 20_000) < 400
    assert fates.sum() == reached.point + 1 - (row - 1)
    one_bet = log_evidence(np.cumsum(labels), rows, 0.05)
    assert np.argmax(one_bet >= log(100.0)) > 22_000


def test_it_takes_memory_and_time_that_do_not_grow() -> None:
    labels = (np.random.default_rng(0).random(10**6) < 0.04).astype(np.int64)
    placed, _, reached = BETS.took(BETS.unplaced(), labels, np.arange(1, 10**6 + 1), NONE, log(100.0))
    assert reached is None
    assert placed.starts < 1000
    assert placed.gains.size < 25
    assert np.isfinite(placed.gains).all()
    assert -inf < float(BETS.log_evidence(placed)) < 0.0


@pytest.mark.slow
def test_a_kept_ceiling_seldom_ever_raises_an_alarm() -> None:
    """20,000 labels at the ceiling itself, 60 times, at alpha = .1: false-alarm rate 1e-6, and power."""
    rng, hits = np.random.default_rng(11), 0
    rows = np.arange(1, 20_001)
    for _ in range(60):
        labels = (rng.random(20_000) < 0.05).astype(np.int64)
        hits += BETS.took(BETS.unplaced(), labels, rows, NONE, log(10.0))[2] is not None
    assert_at_most(hits, 60, 0.1)
    assert_power(60, 0.1, 0.55, at_most=True)


def together(counts: tuple[int, ...], sizes: tuple[int, ...], bar: float | None = None) -> tuple[Placed, Any]:
    """The bets after batches of so many ones among so many points, and the last batch that reached a bar."""
    placed, found = BETS.unplaced(), None
    for ones, size in zip(counts, sizes, strict=True):
        cells = np.repeat([1, 0], [ones, size - ones])
        placed, reached = BETS.took_together(placed, cells, int(placed.cells.sum()) + 1, bar)
        found = reached or found
    return placed, found


@pytest.mark.parametrize(("rate", "expected"), [(0.05, 1.0), (0.02, None)])
def test_batches_cannot_be_expected_to_win_and_are_fair_at_the_ceiling(
    rate: float, expected: float | None
) -> None:
    """All numbers of ones in batches of 3, 33 and 2 points, enumerated; bets start again before the last."""
    sizes, mean = (3, 33, 2), 0.0
    chances = [binom.pmf(np.arange(size + 1), size, rate) for size in sizes]
    for counts in product(*(range(size + 1) for size in sizes)):
        placed, _ = together(counts, sizes)
        assert placed.starts == 2
        chance = np.prod([one[count] for one, count in zip(chances, counts, strict=True)])
        mean += chance * exp(float(BETS.log_evidence(placed)))
    assert mean == pytest.approx(expected, rel=1e-9) if expected else mean < 0.9


def test_the_wealth_of_batches_is_what_it_is_by_definition() -> None:
    """Eq. (130) with starts before the first, the third and the fourth batch: eq. (131)."""
    counts, sizes = (2, 4, 1, 30), (20, 12, 40, 60)
    placed, _ = together(counts, sizes)
    assert (placed.starts, placed.following) == (3, 72 + 32)
    mixed = 1.0 / 4.0  # what is not placed yet
    for number, first in enumerate((0, 2, 3)):
        ones, size = sum(counts[first:]), sum(sizes[first:])
        ratios = np.exp(BETS.logs @ [size - ones, ones])
        mixed += float(ratios.mean()) / ((number + 1) * (number + 2))
    closed = exp(float(log_evidence(sum(counts), sum(sizes), 0.05)))
    assert float(BETS.log_evidence(placed)) == pytest.approx(log((closed + mixed) / 2.0), rel=1e-12)


def test_a_batch_reaches_the_bar_at_its_end_or_not_at_all() -> None:
    counts, sizes = (5, 0), (5, 200)
    high = float(BETS.log_evidence(together(counts[:1], sizes[:1])[0]))
    low = float(BETS.log_evidence(together(counts, sizes)[0]))
    assert high > low
    _, reached = together(counts[:1], sizes[:1], high)
    assert (reached.point, reached.log_evidence) == (4, high)
    assert together(counts[:1], sizes[:1], high + 1e-9)[1] is None
    assert together((5,), (205,), high)[1] is None  # the same points as one batch
    placed = BETS.unplaced()
    assert BETS.took_together(placed, NONE, 1, -1.0) == (placed, None)


@pytest.mark.parametrize(
    ("ceiling", "count", "last"),
    [(0.05, 16, 0.95), (1e-9, 24, 0.95), (0.5, 8, 0.95), (0.9, 2, 0.95), (0.94, 1, None), (0.99, 1, None)],
)
def test_the_rates_that_are_bet_on_are_those_of_the_theory(
    ceiling: float, count: int, last: float | None
) -> None:
    """Equal steps of the odds up to .95, of a factor of root 2 at least; one such step if .95 is nearer."""
    rates = 1.0 - np.exp(Bets.above(ceiling).logs[:, 0]) * (1.0 - ceiling)
    odds = np.r_[ceiling, rates] / (1.0 - np.r_[ceiling, rates])
    factors = odds[1:] / odds[:-1]
    assert rates.size == count
    np.testing.assert_allclose(factors, factors[0], rtol=1e-6)
    if last is None:
        assert factors[0] == pytest.approx(2.0**0.5)
    else:
        assert rates[-1] == pytest.approx(last)
        assert factors[0] >= 2.0**0.5
        # one rate more would leave less, unless there are as many as there may be
        assert count == 24 or (odds[-1] / odds[0]) ** (1.0 / (count + 1)) < 2.0**0.5


def test_the_series_of_the_gamma_function_has_all_digits() -> None:
    with mpmath.workdps(40):
        for x in (1.0, 2.5, 10.0, 31.5, 32.0, 100.0, 1e4, 1e9):
            exact = mpmath.loggamma(x) - ((x - 0.5) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2)
            assert float(module._stirling(np.array([x]))[0]) == pytest.approx(
                float(exact), rel=1e-9, abs=1e-14
            )
