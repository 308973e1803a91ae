"""Windows in units: certificates against those of the columns, both sides of a split, events, bad input."""

import warnings
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from pac_wrap import (
    Certificate,
    DependenceWarning,
    Guarantee,
    Monitor,
    VacuousWarning,
    calibrate,
    calibrate_labelled,
)
from pac_wrap.method.promise import of_units
from pac_wrap.method.provenance import Day, Event, Sampling
from pac_wrap.report.account import account_of
from pac_wrap.report.render import rendered
from pac_wrap.series import Points, SeriesSplit, calibrate_points, joined, several_series, window_points
from statistical.claims import assert_at_most, assert_power
from support.reports import facts_told
from support.strategies import refusal

FIFTH = Guarantee(0.2, 0.2)
RNG = np.random.default_rng(31)
SERIES, STEPS = 60, 200


def machines() -> Points:
    """Return series with levels of their own and one to three events of six steps each."""
    labels = np.zeros((SERIES, STEPS), dtype=int)
    for row in labels:
        for start in RNG.choice(STEPS // 20, RNG.integers(1, 4), replace=False) * 20:
            row[start : start + 6] = 1
    scores = RNG.normal(size=(SERIES, STEPS)) + 0.4 * RNG.normal(size=(SERIES, 1)) + 5 * labels
    names = [f"machine-{number}" for number in range(SERIES)]
    return several_series(names, [STEPS] * SERIES, scores.ravel(), labels.ravel())


POINTS = machines()
BY_SERIES = POINTS.divided(RNG, calibration=0.6, by_series=True)
IN_BLOCKS = POINTS.divided(RNG, calibration=0.6, block=100, gap=10)
NAMES = np.array(POINTS.names)[POINTS.series]
# each way to say what a unit is, with a split that keeps it whole, and what the certificate says of it
UNITS: list[Any] = [
    ("series", BY_SERIES, "split by whole series; a unit is a series"),
    (100, IN_BLOCKS, "split in blocks of 100 steps with a gap of 10; a unit is a block of 100 steps"),
    (np.int64(50), IN_BLOCKS, "a gap of 10; a unit is a block of 50 steps"),
    (NAMES.tolist(), BY_SERIES, "split by whole series"),
]
COUNTED: list[Any] = [None, Event(), Day(2), [Day(1), Event(alarms=2, first=4)]]


def classes(part: Any, units: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the scores and the units of each class of a part."""
    normal, anomalous = (POINTS.of_class(side, part) for side in (False, True))
    column = POINTS.units(units)
    return (POINTS.scores[normal], POINTS.scores[anomalous]), (column[normal], column[anomalous])


@pytest.mark.parametrize("per", COUNTED)
@pytest.mark.parametrize(("units", "split", "told"), UNITS)
def test_the_certificate_is_that_of_columns_in_units(
    units: Any, split: SeriesSplit, told: str, per: Any
) -> None:
    made = calibrate_points(POINTS, FIFTH, split=split, units=units, per=per)  # a warning would be an error
    assert made.assumptions == of_units(True, False)
    assert made.confidence == 0.9
    assert str(made.sampling).endswith(told)
    assert not made.overstated
    assert len(facts_told(made)["series"]) == 1  # not what the windows are worth
    assert all(one.errors is not None for one in made.clauses)
    scores, named = classes(split.calibration, units)
    verified = made.verify(*scores, units=named)
    assert verified, str(verified)
    assert Certificate.from_json(made.to_json()) == made
    plain = calibrate_labelled(
        np.concatenate(scores),
        np.repeat([0, 1], [one.size for one in scores]),
        FIFTH,
        units=np.concatenate(named),
        per=per,
    )
    assert [(one.n, one.units) for one in made.clauses] == [(one.n, one.units) for one in plain.clauses]
    rates = made.evaluate(*classes(split.test, units)[0], units=classes(split.test, units)[1])
    assert [one.exceeded for one in rates] == [False, False]
    for form in (".md", ".html", ".json"):
        assert rendered(account_of(made), f"report{form}")


@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr"])
def test_one_point_a_unit_gives_the_certificate_of_independent_points(overlap: str) -> None:
    scores, labels = POINTS.scores, POINTS.labels
    plain = calibrate(scores[labels == 0], scores[labels == 1], FIFTH, overlap=overlap)
    for units in (1, np.arange(labels.size)):
        made = calibrate_points(POINTS, FIFTH, units=units, overlap=overlap)
        assert made.assumptions == of_units(False, True)
        assert replace(made, assumptions=plain.assumptions, units=None, sampling=None) == plain


def test_a_certificate_of_windows_describes_them_and_not_what_they_are_worth() -> None:
    points = window_points(POINTS.scores, POINTS.labels, length=5, every=10)
    made = calibrate_points(points, FIFTH, units=50)
    assert made.sampling == Sampling(5, 10, "max", "none", 0, None, None, None, unit=50)
    told = "windows of 5 in every 10 steps (max), all of them calibrate; a unit is a block of 50 steps"
    assert facts_told(made)["series"] == [told]


def test_units_are_series_or_blocks_of_time_that_no_series_shares() -> None:
    one = window_points(np.arange(10.0), [0] * 4 + [1] * 6, every=2)  # begins at steps 0, 2, 4, 6 and 8
    points = joined([one, one])
    assert points.units("series")[:, 0].tolist() == [0] * 5 + [1] * 5
    assert several_series("ba", [2, 1], [0.0] * 3, [0] * 3).units("series")[:, 0].tolist() == ["b", "b", "a"]
    assert points.units(4)[:5, 0].tolist() == [0, 0, 1, 1, 2]
    # the second series begins at step 20, and a block of 1,000 steps holds both
    assert points.units(1000)[:, 0].tolist() == [0] * 5 + [1] * 5
    assert points.units(list("abcdefghij"))[:, 0].tolist() == list("abcdefghij")


def test_an_event_is_a_run_of_anomalous_points_in_one_unit() -> None:
    labels = np.array([0, 1, 1, 1, 0, 1, 1, 0, 0, 1])
    one = window_points(np.zeros(10), labels)
    runs = one.units(10)[labels == 1, 1]
    assert [np.count_nonzero(runs == run) for run in dict.fromkeys(runs)] == [3, 2, 1]
    # the first event crosses from one block into the next, and counts in both
    runs = one.units(2)[labels == 1, 1]
    assert [np.count_nonzero(runs == run) for run in dict.fromkeys(runs)] == [1, 2, 1, 1, 1]
    # the last event of a series is not that with which the next one begins
    ends = window_points(np.zeros(4), [1, 0, 0, 1])
    assert len(set(joined([ends, ends]).units(4)[[0, 3, 4, 7], 1])) == 4
    # windows of which one in between is missing, in the warm-up of a series, are two events
    apart = joined([window_points([np.nan, 0.0], [1, 1]), window_points([0.0], [1])])
    assert len(set(apart.units(list("aa"))[:, 1])) == 2


def test_several_events_of_one_unit_are_tested_in_units_and_single_ones_exactly() -> None:
    every = calibrate_points(POINTS, FIFTH, units="series", per=Event())
    runs = np.count_nonzero(np.diff(POINTS.labels, prepend=0) == 1)
    assert [every.fnr.n, every.fnr.units] == [runs, SERIES]
    first = calibrate_points(POINTS, FIFTH, units=20, per=[Day(), Event()])
    assert first.units is not None
    assert [first.fnr.n, first.fnr.units, first.units.order] == [runs, None, None]
    largest = POINTS.scores[POINTS.labels == 1].reshape(runs, 6).max(axis=1)
    days = POINTS.units(20)[POINTS.labels == 0, 0]
    normal = POINTS.scores[POINTS.labels == 0]
    highest = [normal[days == day].max() for day in dict.fromkeys(days.tolist())]
    plain = calibrate(highest, largest, FIFTH)
    assert (first.clauses, first.rule) == (plain.clauses, plain.rule)


def test_events_may_be_numbered_anew_in_each_unit_and_do_not_divide_a_day() -> None:
    column = POINTS.units("series")
    first = dict(reversed(column.tolist()))
    anew = [(unit, run - first[unit]) for unit, run in column.tolist()]
    both = [
        calibrate_labelled(POINTS.scores, POINTS.labels, FIFTH, units=units, per=[Day(1), Event()])
        for units in (column, anew)
    ]
    assert [one.fpr.n for one in both] == [SERIES, SERIES]
    assert both[0].fnr.n == both[1].fnr.n > SERIES
    assert both[0].fnr.digest == both[1].fnr.digest


def test_a_monitor_counts_each_series_once_with_its_share_of_missed_events() -> None:
    made = calibrate_points(POINTS, FIFTH, split=BY_SERIES, units="series", per=Event())
    verdicts, column = made.verdicts(POINTS.scores), POINTS.units("series")
    monitor = Monitor(made)
    assert (
        monitor.update(verdicts[BY_SERIES.test], POINTS.labels[BY_SERIES.test], units=column[BY_SERIES.test])
        is None
    )
    assert "24" in str(monitor)
    verdicts[POINTS.labels == 1] = 0
    alarm = Monitor(made).update(verdicts, POINTS.labels, units=column)
    assert alarm is not None
    assert alarm.watch == "FNR"
    single = calibrate_points(POINTS, FIFTH, units=20, per=Event())
    told = "the certificate was made from units with one event each, got a unit with 3"
    assert told in refusal(lambda: Monitor(single).update(verdicts, POINTS.labels, units=column))


def test_too_few_units_say_how_many_are_missing() -> None:
    with pytest.warns(VacuousWarning, match="of 3 units; 14 units needed"):
        made = calibrate_points(POINTS, FIFTH, units=POINTS.series % 3)
    assert made.fpr.vacuous


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"units": "machine"}, 'units must be "series" for points of several series, the steps of a block'),
        ({"units": 0}, "units must be a whole number, 1 or more, got 0"),
        ({"units": 2.5}, "units must be a whole number, 0 or more, got 2.5"),
        ({"units": True}, "units must be a whole number, 0 or more, got True"),
        ({"units": [1, 2]}, "points and units must have the same length, got 12,000 and 2"),
        ({"units": [None, *NAMES[1:]]}, "units must be known, but 1 of 12,000 are missing"),
        (
            {"units": "series", "split": IN_BLOCKS},
            "28 units on both sides of the split, such as 'machine-0'; divide whole units, with by_series",
        ),
        ({"units": 200, "split": IN_BLOCKS}, "divide whole units, with block=200"),
        ({"units": NAMES, "split": IN_BLOCKS}, "divide whole units, with a split of them"),
        ({"units": 20, "split": POINTS.divided(RNG)}, "units on both sides of the split"),
        ({"units": "series", "per": "event"}, "per must be an Event, a Day, or one of each, got 'event'"),
        ({"per": Day()}, "per is for units; give units too, or remove it"),
        ({"units": "series", "overlap": "raise"}, 'units need overlap="abstain"'),
        ({"units": "series", "overlap": "hold_fnr"}, "60 have points of both"),
    ],
)
def test_bad_input_is_refused(more: dict[str, Any], told: str) -> None:
    assert told in refusal(lambda: calibrate_points(POINTS, FIFTH, **more))


def test_one_series_has_no_units_and_no_window_is_larger_than_its_block() -> None:
    one = window_points(POINTS.scores, POINTS.labels, length=5, every=10)
    assert refusal(lambda: one.units("series")).endswith("; got 'series' for 1 series")
    assert refusal(lambda: one.units(4)) == (
        "units must be blocks of at least a window, 5 steps, got 4; choose larger blocks"
    )


def test_three_columns_of_units_are_refused() -> None:
    pairs = np.zeros((POINTS.scores.size, 3))
    told = "units must be one column, or pairs of a unit and an event, got 3 columns"
    assert told in refusal(lambda: calibrate_labelled(POINTS.scores, POINTS.labels, FIFTH, units=pairs))


def test_every_second_block_calibrates_if_neighbouring_blocks_depend_on_each_other() -> None:
    second = np.flatnonzero(POINTS.units(50)[:, 0] % 2 == 0)
    split = SeriesSplit(second, np.array([], dtype=np.intp), "blocks", 50, 50)
    made = calibrate_points(POINTS, FIFTH, split=split, units=50)
    assert made.fpr.units == SERIES * STEPS // 50 // 2


def test_series_with_levels_of_their_own_keep_the_promise_in_units_and_break_it_in_windows() -> None:
    """The true rate of a threshold is known, so nothing but the draw of the series is left to chance."""
    trials, series, steps, asked = 200, 60, 20, Guarantee(0.2, None, 0.1)
    assert_power(trials, 0.1, 0.32, at_most=True)
    random, broken = np.random.default_rng(32), {None: 0, "series": 0}
    for _ in range(trials):
        scores = random.normal(size=(series, steps)) + random.normal(size=(series, 1))
        points = joined([window_points(one, np.zeros(steps, dtype=int)) for one in scores])
        for units in broken:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DependenceWarning)
                made = calibrate_points(points, asked, units=units)
            broken[units] += norm.sf(made.rule.anomaly_from / sqrt(2)) > 0.2
    assert_at_most(broken["series"], trials, 0.1)
    with pytest.raises(AssertionError, match="contradict a rate"):
        assert_at_most(broken[None], trials, 0.1)


def test_events_of_one_series_depend_on_each_other_and_their_promise_holds() -> None:
    """Taken for independent, the same events break it: in which series an event lies matters."""
    trials, series, events, asked = 200, 60, 6, Guarantee(None, 0.2, delta_fnr=0.1)
    assert_power(trials, 0.1, 0.32, at_most=True)
    random, broken = np.random.default_rng(33), {"series": 0, "events": 0}
    labels = np.tile([1, 1, 1, 0], events)
    levels, weights = np.polynomial.hermite_e.hermegauss(60)
    for _ in range(trials):
        scores = random.normal(size=(series, labels.size)) + random.normal(size=(series, 1))
        points = joined([window_points(one, labels) for one in scores])
        for name, units in (("series", "series"), ("events", points.units("series")[:, 1])):
            made = calibrate_points(points, asked, units=units, per=Event())
            missed = norm.cdf(made.rule.normal_below - levels) ** 3
            broken[name] += float(weights @ missed / weights.sum()) > 0.2
    assert_at_most(broken["series"], trials, 0.1)
    with pytest.raises(AssertionError, match="contradict a rate"):
        assert_at_most(broken["events"], trials, 0.1)
