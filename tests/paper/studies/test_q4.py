"""Q4: ambiguity falls with the ceiling while thresholds overlap and rises once they are separated."""

from itertools import pairwise, product
from typing import Any

import pytest

from pac_wrap_paper.studies import reproduce
from pac_wrap_paper.studies.charts import HeatMap
from pac_wrap_paper.studies.q4 import READINGS
from pac_wrap_paper.studies.study import Study

TRIALS = 400
# five standard errors of a difference of means, each over 400 trials with a standard deviation below .017
NOISE = 0.006


@pytest.fixture(scope="module")
def shares() -> list[float]:
    return []


@pytest.fixture(scope="module")
def study(shares: list[float]) -> Study:
    return reproduce("q4", trials=TRIALS, quick=True, progress=lambda share, text: shares.append(share))


@pytest.fixture(scope="module")
def cells(study: Study) -> list[dict[str, Any]]:
    (table,) = study.tables
    return [dict(row) for row in table.rows]


def values(cells: list[dict[str, Any]], key: str) -> list[Any]:
    return sorted({cell[key] for cell in cells})


def lines(cells: list[dict[str, Any]], along: str) -> list[list[dict[str, Any]]]:
    """Return the cells in lines along eps or delta, in ascending order, for each margin and other value."""
    other = "delta" if along == "eps" else "eps"
    return [
        sorted(
            (cell for cell in cells if (cell["margin"], cell[other]) == fixed), key=lambda cell: cell[along]
        )
        for fixed in product(values(cells, "margin"), values(cells, other))
    ]


def test_the_grid_is_whole_and_at_least_five_by_five(cells: list[dict[str, Any]]) -> None:
    grid = list(product(*(values(cells, key) for key in ("margin", "eps", "delta"))))
    assert sorted((cell["margin"], cell["eps"], cell["delta"]) for cell in cells) == grid
    assert len(values(cells, "eps")) >= 5
    assert len(values(cells, "delta")) >= 5
    assert values(cells, "margin") == sorted(READINGS)
    assert {cell["separated"].n for cell in cells} == {TRIALS}


def test_where_thresholds_overlap_the_ambiguity_falls_with_the_ceiling(cells: list[dict[str, Any]]) -> None:
    steps = [
        (low["ambiguity"], high["ambiguity"])
        for line in lines(cells, "eps")
        for low, high in pairwise(line)
        if low["separated"].value == high["separated"].value == 0.0
    ]
    assert len(steps) >= 25
    assert all(high < low for low, high in steps)


def test_where_thresholds_are_separated_the_ambiguity_rises_with_the_ceiling(
    cells: list[dict[str, Any]],
) -> None:
    steps = [
        (low["ambiguity"], high["ambiguity"])
        for line in lines(cells, "eps")
        for low, high in pairwise(line)
        if low["separated"].value == high["separated"].value == 1.0
    ]
    assert len(steps) >= 15
    assert all(high > low for low, high in steps)


@pytest.mark.parametrize(("separated", "sign"), [(0.0, -1), (1.0, 1)])
def test_delta_moves_the_ambiguity_the_same_way_but_less(
    cells: list[dict[str, Any]], separated: float, sign: int
) -> None:
    whole = [
        line for line in lines(cells, "delta") if all(cell["separated"].value == separated for cell in line)
    ]
    assert len(whole) >= 3
    for line in whole:
        found = [cell["ambiguity"] for cell in line]
        assert all(sign * (high - low) > -NOISE for low, high in pairwise(found))
        assert sign * (found[-1] - found[0]) > 0.0
    most = max(abs(line[-1]["ambiguity"] - line[0]["ambiguity"]) for line in whole)
    assert most > 2 * NOISE


def test_a_larger_ceiling_never_makes_fewer_trials_separated(cells: list[dict[str, Any]]) -> None:
    found = lines(cells, "eps")
    for line in found:
        assert all(low["separated"].count <= high["separated"].high * TRIALS for low, high in pairwise(line))
    assert max(line[-1]["separated"].value - line[0]["separated"].value for line in found) == 1.0


def test_the_ambiguity_is_least_where_the_thresholds_meet(cells: list[dict[str, Any]]) -> None:
    crossing = [
        line for line in lines(cells, "eps") if line[0]["separated"].value < 0.5 < line[-1]["separated"].value
    ]
    assert len(crossing) >= 5
    for line in crossing:
        least = min(range(len(line)), key=lambda place: line[place]["ambiguity"])
        turn = next(place for place, cell in enumerate(line) if cell["separated"].value >= 0.5)
        assert turn - 1 <= least <= turn


def test_the_pictures_show_the_cells(study: Study, cells: list[dict[str, Any]]) -> None:
    shown = []
    for picture, margin in zip(study.charts, READINGS, strict=True):
        assert isinstance(picture, HeatMap)
        for (i, delta), (j, eps) in product(enumerate(picture.y), enumerate(picture.x)):
            shown.append((margin, eps, delta, picture.values[i][j]))
    assert sorted(shown) == sorted((c["margin"], c["eps"], c["delta"], c["ambiguity"]) for c in cells)


@pytest.mark.slow
def test_a_seed_fixes_the_study_and_another_one_changes_it() -> None:
    first, again, other = (reproduce("q4", seed=seed, trials=20, quick=True) for seed in (0, 0, 1))
    assert first == again
    assert first.tables != other.tables


def test_progress_never_falls_and_stays_a_share(study: Study, shares: list[float]) -> None:
    assert shares[0] == 0.0
    assert all(0.0 <= first <= second <= 1.0 for first, second in pairwise(shares))
