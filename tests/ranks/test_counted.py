"""Data that an engine counts: whatever the scores, the sample and the cells, answers are those of memory."""

import warnings
from math import ceil, inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import Guarantee, certify_curve
from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.calibrate import Request, calibrate, certify
from pac_wrap.method.curves.curve import CurveRequest
from pac_wrap.method.source import CountedSource
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.ranks import counted
from pac_wrap.ranks.counted import Cells, Grid, Sample, Some, Spread, bounds, least_auc
from pac_wrap.ranks.kernels import kernels
from pac_wrap.ranks.memory import Rank, auc
from support.examples import examples
from support.slow import slow_but
from support.strategies import Floats, calibrate_quietly, every_rule, guarantee, refusal, scores


class InMemory:
    """Counts arrays as an engine would, and how often it was asked."""

    def __init__(self, normal: Any, anomalous: Any, step: int = 1) -> None:
        self.pair = np.asarray(normal, dtype=float), np.asarray(anomalous, dtype=float)
        self.step, self.score_type, self.rounds = step, "float64", 0
        self.listed = self.samples = 0

    score_type: ScoreType

    def guess(self) -> Sample:
        return Sample((self.pair[0][:: self.step], self.pair[1][:: self.step]), 1.0 / self.step)

    def sample(self) -> Sample:
        self.samples += 1
        return self.guess()

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, int]]:
        self.rounds += 1
        cells = self.cells([(label, one) for label, one in enumerate(self.pair)], grid)
        return cells, (kernels().mix(self.pair[0]), kernels().mix(self.pair[1]))

    def count(self, grid: Grid, within: Some) -> Cells:
        self.rounds += 1
        return self.cells(self.inside(within), grid)

    def gather(self, within: Some) -> Cells:
        self.rounds += 1
        rows = [
            (label, 0, count, value, value)
            for label, one in self.inside(within)
            for value, count in zip(*np.unique(one, return_counts=True), strict=True)
        ]
        self.listed = max(self.listed, sum(row[2] for row in rows))
        return as_cells(rows)

    def inside(self, within: Some) -> list[tuple[int, Floats]]:
        found = []
        for label, one in enumerate(self.pair):
            bounded = np.zeros(one.size, dtype=bool)
            for low, high in within.bounds:
                bounded |= (one >= low) & (one <= high)
            wanted = [cell for of, cell in within.cells if of == label]
            found.append((label, one[np.isin(numbers(within.grid, one), wanted) & bounded]))
        return found

    def cells(self, pair: list[tuple[int, Floats]], grid: Grid) -> Cells:
        rows = []
        for label, one in pair:
            place = numbers(grid, one)
            for cell in np.unique(place).tolist():
                inside = one[place == cell]
                alone = {piece.first for piece in grid.pieces if not piece.cells}
                parts = (
                    [inside[inside == value] for value in np.unique(inside)] if cell in alone else [inside]
                )
                rows += [(label, cell, part.size, part.min(), part.max()) for part in parts]
        return as_cells(rows)


def as_cells(rows: list[Any]) -> Cells:
    columns: list[Any] = [*zip(*rows, strict=True)] or [[]] * 5
    whole = [np.array(column, dtype=np.int64) for column in columns[:3]]
    least, greatest = (np.array(column, dtype=float) for column in columns[3:])
    return Cells(whole[0], whole[1], whole[2], least, greatest)


def numbers(grid: Grid, values: Floats) -> Any:
    found = np.zeros(values.size, dtype=np.int64)
    pieces = [*grid.pieces]
    for piece, high in zip(pieces, [*grid.knots[1:], nan], strict=False):
        here = (values >= piece.low) & ~(values >= high)
        found[here] = piece.first
        if piece.scale:
            steps = np.floor((values[here] - piece.low) * piece.scale)
            found[here] += np.minimum(steps, piece.cells - 1).astype(np.int64)
    return found


def test_numbers_of_cells_rise_with_the_scores() -> None:
    grid = Grid((-1.0, 0.0, 0.3, inf), (7, 1, 1))
    assert [piece.first for piece in grid.pieces] == [1, 8, 9, 10]
    values = np.sort(np.concatenate([np.random.default_rng(0).normal(0, 1, 999), [-inf, inf, 0.3]]))
    found = numbers(grid, values)
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (0, 10)


def test_knots_at_the_ends_of_the_doubles() -> None:
    from pac_wrap.base.floats import order_key

    ends = [-inf, -1.7976931348623157e308, 0.0, 5e-324, 1.7976931348623157e308, inf]
    grid = Grid.of(map(order_key, ends), lambda low, high: True, 4000)
    assert grid.knots == tuple(ends[1:])
    # too close or too far apart for more than one cell
    assert grid.cells == (1000, 1, 1000, 1)


def tighten(patch: pytest.MonkeyPatch, *, few: int, cells: int, knots: int, listed: int, ranges: int) -> None:
    for module, limits in (
        (counted, {"_FEW": few, "_LISTED": listed, "_AT_ONCE": knots // 4}),
        (counted, {"_CELLS": cells, "_KNOTS": knots, "_RANGES": ranges, "_NEAR": few}),
    ):
        for name, value in limits.items():
            patch.setattr(module, name, value)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few scores be many, so that every kind of round is needed."""
    tighten(monkeypatch, few=5, cells=12, knots=8, listed=2, ranges=2)


@every_rule
@pytest.mark.parametrize("step", [1, 3, 40])
def test_every_rule_is_the_one_of_memory(options: dict[str, Any], step: int) -> None:
    rng = np.random.default_rng(step)
    normal, anomalous = rng.normal(0, 1, 3000).round(3), rng.normal(2.5, 1, 700)
    data = InMemory(normal, anomalous, step)
    request = Request.of(options.get("guarantee"), options.get("overlap"))
    assert (
        certify(CountedSource(data), request).to_json() == calibrate(normal, anomalous, **options).to_json()
    )


@every_rule
def test_every_rule_with_hardly_any_room(options: dict[str, Any], small: None) -> None:
    rng = np.random.default_rng(8)
    normal, anomalous = rng.normal(0, 1, 900).round(2), rng.normal(2.5, 1, 300).round(1)
    data = InMemory(normal, anomalous, 7)
    request = Request.of(options.get("guarantee"), options.get("overlap"))
    assert (
        certify(CountedSource(data), request).to_json() == calibrate(normal, anomalous, **options).to_json()
    )


@settings(max_examples=examples(40), deadline=None)
@given(scores(), scores(), guarantee, st.sampled_from([1, 2, 5]), st.booleans())
def test_any_scores(normal: Floats, anomalous: Floats, asked: Guarantee, step: int, tight: bool) -> None:
    if not normal.size + anomalous.size:
        return
    with pytest.MonkeyPatch.context() as patch:
        if tight:
            tighten(patch, few=2, cells=8, knots=4, listed=1, ranges=1)
        patch.setattr("pac_wrap.ranks.memory.warn_if_upside_down", lambda *_: None)
        for overlap in ("abstain", "abstain_always", "raise", "hold_fnr", "algorithm1", Looks(5, 20)):
            expected = calibrate_quietly(normal, anomalous, asked, overlap=overlap).to_json()
            found = certify(CountedSource(InMemory(normal, anomalous, step)), Request.of(asked, overlap))
            assert found.to_json() == expected


@pytest.mark.parametrize("step", slow_but(1, [10, 1]))
def test_curves_with_hundreds_of_ranks(step: int) -> None:
    rng = np.random.default_rng(step)
    normal, anomalous = rng.normal(0, 1, 9000).round(3), rng.standard_cauchy(2000)
    data = InMemory(normal, anomalous, step)
    found = certify(CountedSource(data), CurveRequest())
    assert found.to_json() == certify_curve(normal, anomalous).to_json()


def test_three_rounds_do_and_few_scores_are_listed() -> None:
    rng = np.random.default_rng(1)
    data = InMemory(rng.normal(0, 1, 400_000), rng.normal(4, 1, 40_000), 30)
    certify(CountedSource(data), Request())
    assert (data.rounds, data.samples) == (2, 0)  # and the guess
    assert data.listed < 30_000


@pytest.mark.parametrize(("most", "rounds"), slow_but(1, [(20, 3), (1 << 17, 2)], several=True))
def test_scores_near_a_rank_are_listed_while_the_rest_of_a_large_cell_is_counted(
    monkeypatch: pytest.MonkeyPatch, most: int, rounds: int
) -> None:
    monkeypatch.setattr(counted, "_FEW", 5000)
    monkeypatch.setattr(counted, "_NEAR", most)
    rng = np.random.default_rng(1)
    data = InMemory(rng.normal(0, 1, 400_000), rng.normal(1, 1, 400_000), 100)
    assert certify(CountedSource(data), Request()).to_json() == calibrate(*data.pair).to_json()
    # what is too much to be listed is counted in cells, and the small one that holds a rank listed after that
    assert data.rounds == rounds


@pytest.mark.parametrize("share", slow_but(1, [0.2, 0.95, 1.0]))
def test_a_score_that_most_points_share_is_never_listed(share: float) -> None:
    rng = np.random.default_rng(1)
    normal, anomalous = rng.normal(0, 1, 100_000), rng.normal(2, 1, 50_000)
    normal[: ceil(share * 100_000)] = anomalous[: ceil(share * 50_000)] = 1.5
    data = InMemory(rng.permutation(normal), rng.permutation(anomalous), 100)
    assert certify(CountedSource(data), Request()).to_json() == calibrate(*data.pair).to_json()
    assert data.listed < 1000


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")
def test_a_sample_that_misleads_costs_rounds_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "_FEW", 1000)
    rng = np.random.default_rng(1)
    data = InMemory(rng.normal(0, 1, 25_000), rng.normal(4, 1, 10_000))
    for classes in (
        (data.pair[1][:500], data.pair[0][:50]),
        (np.full(500, 1e300), np.full(3, -1e300)),
        (np.empty(0), np.empty(0)),
        (np.array([-inf, inf]), np.array([0.0])),
    ):
        data.rounds = 0
        for name in ("guess", "sample"):
            monkeypatch.setattr(data, name, lambda classes=classes: Sample(classes, 0.005))
        assert certify(CountedSource(data), Request()).to_json() == calibrate(*data.pair).to_json()
        assert data.rounds <= 7


def test_first_scores_of_one_class_are_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    data = InMemory(rng.normal(0, 1, 100_000), rng.normal(4, 1, 40_000), 30)
    first, some = ((data.pair[0][:5000], data.pair[1][:3]), (data.pair[0][::30], data.pair[1][::30]))
    monkeypatch.setattr(data, "guess", lambda: Sample(first, 0.001))
    monkeypatch.setattr(data, "sample", lambda: Sample(some, 1 / 30))
    assert certify(CountedSource(data), Request()).to_json() == calibrate(*data.pair).to_json()
    assert data.rounds == 2


@pytest.mark.parametrize("change", ["more", "other", "fewer"])
def test_scores_that_change_between_two_rounds_are_refused(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "_CELLS", 12)
    rng = np.random.default_rng(1)

    class Changing(InMemory):
        def gather(self, within: Some) -> Cells:
            normal, anomalous = self.pair
            self.pair = {
                "more": (np.append(normal, normal), anomalous),
                "other": (normal + 0.5, anomalous),
                "fewer": (normal[::2], anomalous),
            }[change]
            return super().gather(within)

    data = Changing(rng.normal(0, 1, 20_000), rng.normal(2, 1, 20_000), 50)
    assert "scores changed between two passes" in refusal(lambda: certify(CountedSource(data), Request()))


@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
def test_upside_down_scores_are_told_by_the_sample(shift: float) -> None:
    rng = np.random.default_rng(5)
    data = InMemory(rng.normal(0, 1, 5000), rng.normal(shift, 1, 3000), 20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certify(CountedSource(data), Request())
    assert [one.category for one in caught] == [UpsideDownWarning] * (shift < 0)


@pytest.mark.parametrize("shift", [-0.5, 0.2])
def test_the_first_scores_neither_cause_nor_hide_a_warning(
    shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    data = InMemory(rng.normal(0, 1, 9000), rng.normal(shift, 1, 9000), 9)
    other = Sample((rng.normal(0, 1, 500), rng.normal(-4 * shift, 1, 500)), 0.001)
    monkeypatch.setattr(data, "sample", data.guess)
    monkeypatch.setattr(data, "guess", lambda: other)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certify(CountedSource(data), Request())
    assert [one.category for one in caught] == [UpsideDownWarning] * (shift < 0)


@given(scores(), scores(), st.integers(1, 9))
def test_the_least_auc_is_no_larger_than_the_auc(normal: Floats, anomalous: Floats, cells: int) -> None:
    if not normal.size * anomalous.size:
        return
    data = InMemory(normal, anomalous)
    exact, _ = data.count_all(Grid((-1.0, 0.0, 1.0, 2.0), (1, cells, 1)))
    pair = Spread.counted(exact, 0, 0), Spread.counted(exact, 1, 0)
    assert least_auc(*pair) <= auc(normal, anomalous) + 1e-12
    known = Spread.estimated(normal, 1.0), Spread.estimated(anomalous, 1.0)
    assert least_auc(*known) == pytest.approx(auc(normal, anomalous), abs=1e-12)


def test_a_score_of_several_classes_lies_between_two_keys() -> None:
    columns = [[[1, 10], [3, 12], [2, 2], [0, 0]], [[2], [5], [3], [0]]]
    spreads = [
        Spread.of(np.array(low, np.uint64), np.array(high, np.uint64), np.array(counts), np.array(origin))
        for low, high, counts, origin in columns
    ]
    found = [bounds(spreads, Rank((0, 1), k)) for k in range(1, 8)]
    assert found == [(1, 3)] * 2 + [(2, 5)] * 3 + [(10, 12)] * 2


def test_a_threshold_that_is_given_is_counted_at_once() -> None:
    rng = np.random.default_rng(5)
    data = InMemory(rng.normal(0, 1, 50_000), rng.normal(2, 1, 30_000), 20)
    found = counted.Bracketed(data, [(0,), (1,)], lambda both: tuple(one.count_below(1.25) for one in both))
    assert found.answer == tuple(int((scores < 1.25).sum()) for scores in data.pair)
    assert data.rounds == 1


def test_no_scores_at_all_are_refused() -> None:
    assert "both empty" in refusal(lambda: certify(CountedSource(InMemory([], [])), Request()))
