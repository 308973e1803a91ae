"""Windows by themselves and in units: what is counted of many divisions, and what is said of it."""

import secrets

import numpy as np
import pytest

from pac_wrap.series import Points, SeriesSplit, joined, window_points
from pac_wrap.tails import Rate
from pac_wrap_paper.studies import reproduce
from pac_wrap_paper.studies.units import CERTIFIED, COUNTED, HEADS, RATES, SHARES, total
from support.datafolder import needs


def made_up(series: int) -> Points:
    """Return series that differ from each other, each with an event of five steps."""
    random = np.random.default_rng(3)
    labels = np.arange(60) // 5 == 6
    return joined([window_points(random.normal(random.normal() + 2 * labels), labels) for _ in range(series)])


def splits(points: Points, count: int) -> list[tuple[SeriesSplit, np.random.Generator]]:
    randoms = [np.random.default_rng(one) for one in range(count)]
    return [(points.divided(one, calibration=0.5, by_series=True), one) for one in randoms]


def test_windows_break_promises_with_a_warning_and_series_as_units_keep_them_without() -> None:
    points = made_up(120)
    alone, whole, events = (
        total(points, splits(points, 20), units, COUNTED[counted])
        for units, counted in ((None, "windows"), ("series", "windows"), ("series", "events"))
    )
    assert [row["units that calibrate"] for row in (alone, whole, events)] == [None, 60, 60]
    assert [row["warned"] for row in (alone, whole, events)] == [1.0, 0.0, 0.0]
    assert [row["nothing promised"] for row in (alone, whole, events)] == [0.0, 0.0, 0.0]
    broken, kept = alone["FPR exceeded"], whole["FPR exceeded"]
    assert isinstance(broken, Rate)
    assert isinstance(kept, Rate)
    assert (broken.n, kept.n) == (20, 20)
    assert broken.count > 3 + kept.count
    assert isinstance(alone["FPR, if independent"], float)
    assert whole["FPR, if independent"] is None


def test_too_few_units_promise_nothing_and_break_nothing() -> None:
    points = made_up(20)
    row = total(points, splits(points, 3), "series", None)
    assert [row[name] for name in (*RATES, *SHARES)] == [None, None, 0.0, 0.0, 1.0, 1.0]


def test_the_order_of_units_comes_from_the_seed_of_the_study_and_only_there() -> None:
    points = made_up(120)
    first, again = (total(points, splits(points, 4), "series", None) for _ in range(2))
    assert first == again
    assert secrets.token_hex(8) != secrets.token_hex(8)


@pytest.mark.slow
def test_the_study_in_small() -> None:
    needs("nasa", "smd")
    study = reproduce("units", quick=True, trials=2)
    (table,) = study.tables
    assert len(table.rows) == 2 * sum(map(len, CERTIFIED.values()))
    assert len({tuple(row[head] for head in HEADS) for row in table.rows}) == len(table.rows)
    assert {row["warned"] for row in table.rows if row["unit"] != "none"} == {0.0}
    assert all(sentence.endswith(".") for sentence in (*study.setting, *study.findings))
