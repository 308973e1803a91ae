"""The monitor on real data: bursts, and changes of a known size."""

import numpy as np
import pytest

from pac_wrap_paper.studies import reproduce
from pac_wrap_paper.studies.watch import (
    ALPHA,
    CHANGES,
    LEVEL,
    SHUFFLES,
    Changed,
    changed,
    monitor_second_half,
    monitored_rows,
)
from statistical.claims import assert_at_most, assert_power
from support.datafolder import needs

RNG = np.random.default_rng(0)
ORDERS = 20


def test_errors_in_bursts_raise_an_alarm_that_the_same_errors_in_any_order_do_not() -> None:
    scores = RNG.random(4000)
    scores[2000:] = 0.0
    scores[2500:2600] = 1.0  # a twentieth of the second half, all at once
    found = monitor_second_half("made", "up", 1, scores, np.zeros(4000, dtype=np.int8), seed=0)
    assert found.outcome == "a burst"
    assert found.alarm is not None
    assert 500 < found.alarm.row < 520
    assert (found.rate.count, found.rate.n, found.shuffled) == (100, 2000, 0)
    assert found.row()["highest fifth"] == pytest.approx(0.25)


@pytest.mark.parametrize(("shift", "outcome"), [(0.0, "quiet"), (0.3, "right")])
def test_independent_points_are_quiet_as_long_as_nothing_changes(shift: float, outcome: str) -> None:
    scores = np.random.default_rng(1).random(4000)
    scores[2000:] += shift
    found = monitor_second_half("made", "up", 1, scores, np.zeros(4000, dtype=np.int8), seed=0)
    assert found.outcome == outcome
    assert found.shuffled == (SHUFFLES if shift else 0)
    assert (found.rate.value > LEVEL) == bool(shift)


@pytest.mark.slow
def test_changes_of_a_known_size_are_noticed_and_nothing_before() -> None:
    """20 orders without a change, three tests under one alpha of 0.01; then the largest changes."""
    needs("thyroid")
    data = monitored_rows("thyroid", 0)
    (_, nothing, _), *others = CHANGES
    same = changed(data, "nothing", nothing, 0.0, ORDERS, 1)
    assert not same.broken
    assert_at_most(sum(one is not None for one in same.alarms), ORDERS, 3 * ALPHA)
    assert_power(ORDERS, 3 * ALPHA, 0.75, at_most=True)
    for title, change, sizes in others:
        found = changed(data, title, change, sizes[-1], 4, 1)
        assert found.broken, title
        assert found.before <= 1
        assert len(found.after) == 4 - found.before, title
        expected = {"flipped labels (share)": "FNR", "anomalies labelled normal (share)": "FPR"}
        assert expected.get(title, found.broken[0]) in found.broken


def test_a_row_says_what_was_broken_and_when_it_was_noticed() -> None:
    found = Changed("thyroid", "nothing", 0.0, 100, 0.005, 0.2, (None, None))
    assert found.broken == ("FNR",)
    row = found.row()
    assert (row["alarms before"], row["alarms after"], row["median rows until the alarm"]) == (0, 0, None)


@pytest.mark.slow
def test_the_study_in_small() -> None:
    needs("nasa", "smd", "thyroid", "celeba")
    study = reproduce("watch", quick=True, trials=1)
    outcomes, series, changes = study.tables
    assert [row["points"] for row in outcomes.rows] == ["every step", "every 60th step"] * 2
    assert len(series.rows) == 6
    assert len(changes.rows) == 10
    assert all(sentence.endswith(".") for sentence in (*study.setting, *study.findings))
