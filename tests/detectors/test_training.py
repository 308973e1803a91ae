"""Which rows train and which calibrate: shares, units, and what a detector's own `fit` is given."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from pac_wrap import Certificate, Guarantee, InputError, PACWrap, VacuousWarning
from pac_wrap.detectors.training import calibrating, divide
from pac_wrap.method.promise import of_units
from pac_wrap.tails import min_samples

BOTH = Guarantee()
RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]


@given(
    anomalous=st.lists(st.booleans(), max_size=60),
    share=st.floats(0.01, 0.99),
    keep=st.booleans(),
    seed=st.integers(0, 100),
)
def test_a_split_covers_all_rows_once_and_keeps_the_share_of_each_class(
    anomalous: list[bool], share: float, keep: bool, seed: int
) -> None:
    mask = np.array(anomalous, dtype=bool)
    try:
        found = divide(mask, share, BOTH, np.random.RandomState(seed), keep_anomalies=keep)
    except InputError:
        of_normal, of_anomalous = round(share * np.sum(~mask)), round(share * np.sum(mask))
        assert of_normal + (np.sum(mask) if keep else of_anomalous) in (0, mask.size)
        return
    train, held_out = found
    assert 0 < train.size < mask.size
    assert sorted([*train, *held_out]) == list(range(mask.size))
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(held_out) > 0)
    normals, anomalies = np.count_nonzero(~mask), np.count_nonzero(mask)
    assert abs(np.count_nonzero(~mask[held_out]) - share * normals) <= 0.5 + 1e-9
    if keep:
        assert np.count_nonzero(mask[held_out]) == anomalies
    else:
        assert abs(np.count_nonzero(mask[held_out]) - share * anomalies) <= 0.5 + 1e-9


def test_the_seed_alone_decides_which_rows_are_held_out() -> None:
    mask = np.arange(100) >= 80

    def held_out(seed: int) -> list[int]:
        found = divide(mask, 0.5, BOTH, np.random.RandomState(seed), keep_anomalies=False)
        return [int(row) for row in found[1]]

    assert held_out(0) == held_out(0)
    assert held_out(0) != held_out(1)


def test_every_row_is_held_out_equally_often() -> None:
    # 2,000 splits of 20 rows: an honest count strays beyond 0.5 +- 0.062 with probability 20 * 3e-8 < 1e-6,
    # while a row that is held out 3 in 5 times is caught with probability 0.9997
    mask = np.arange(20) >= 10
    random = np.random.RandomState(0)
    counts = np.zeros(20)
    for _ in range(2000):
        counts[divide(mask, 0.5, BOTH, random, keep_anomalies=False)[1]] += 1
    assert np.abs(counts / 2000 - 0.5).max() < 0.062


@given(n=st.integers(0, 2000), rate=st.floats(0.001, 0.999), delta=st.floats(0.001, 0.999))
def test_auto_is_half_unless_only_more_certifies_and_a_tenth_is_left(
    n: int, rate: float, delta: float
) -> None:
    found = calibrating(n, "auto", Guarantee(rate, None, delta_fpr=delta).fpr)
    half, least = round(n / 2), min_samples(rate, delta)
    if half >= least or least > 0.9 * n:
        assert found == half
    else:
        assert found == least


def test_auto_is_half_of_a_class_that_nothing_is_promised_of() -> None:
    assert calibrating(100, "auto", None) == 50
    assert calibrating(100, 0.25, Guarantee().fnr) == 25


@pytest.mark.parametrize(("anomalies", "calibrate"), [(200, 100), (100, 59), (66, 59), (65, 32)])
def test_a_scarce_class_certifies_what_was_asked_if_it_can(anomalies: int, calibrate: int) -> None:
    rows = slice(0, 400 + anomalies)
    wrap = PACWrap(LogisticRegression(), random_state=0)
    if anomalies < 66:
        with pytest.warns(VacuousWarning, match="59 needed"):
            wrap.fit(X[rows], Y[rows])
    else:
        wrap.fit(X[rows], Y[rows])
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (200, calibrate)
    assert wrap.certificate_.empty == (anomalies < 66)


def test_normal_rows_may_be_the_scarce_ones() -> None:
    wrap = PACWrap(IsolationForest(n_estimators=10), random_state=0).fit(X[310:], Y[310:])
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (59, 200)


@given(
    rows=st.lists(st.tuples(st.integers(0, 7), st.booleans()), min_size=1, max_size=60),
    share=st.one_of(st.just("auto"), st.floats(0.1, 0.9)),
    keep=st.booleans(),
    seed=st.integers(0, 20),
)
def test_a_unit_is_on_one_side_and_no_row_is_lost_or_on_both(
    rows: list[tuple[int, bool]], share: Any, keep: bool, seed: int
) -> None:
    units = np.array([f"s{unit}" for unit, _ in rows], dtype=object)
    mask = np.array([label for _, label in rows])
    try:
        found = divide(mask, share, BOTH, np.random.RandomState(seed), keep_anomalies=keep, units=units)
    except InputError:
        return  # nothing to train on, or to calibrate on: the next test
    assert not set(units[found[0]]) & set(units[found[1]])
    assert not set(found[0]) & set(found[1])
    left_out = set(range(mask.size)) - set(found[0]) - set(found[1])
    mixed = set(units[mask]) & set(units[~mask])
    if keep:
        assert not mask[found[0]].any()
        assert all(mask[row] for row in left_out)
        assert mixed or not left_out
    else:
        assert not left_out


@pytest.mark.parametrize("keep", [False, True])
def test_a_single_unit_cannot_be_divided(keep: bool) -> None:
    mask, units = np.array([False, True]), np.array([0, 0])
    with pytest.raises(InputError, match="1 of them anomalous, of 1 units; add units or change"):
        divide(mask, "auto", BOTH, np.random.RandomState(0), keep_anomalies=keep, units=units)


def test_a_share_of_the_units_of_each_kind_calibrates() -> None:
    # 20 units with normal rows only, 10 with both: the same share of either, whatever their labels
    units = np.repeat(np.arange(30), 10)
    mask = (units >= 20) & (np.arange(300) % 2 == 0)
    random = np.random.RandomState(0)
    for keep in (False, True):
        found = divide(mask, 0.5, BOTH, random, keep_anomalies=keep, units=units)
        drawn = np.unique(units[found[1]])
        assert [np.count_nonzero(drawn < 20), np.count_nonzero(drawn >= 20)] == [10, 5]
        assert np.count_nonzero(mask[found[1]]) == 25
        assert found[0].size == (125 if keep else 150)


def test_units_of_one_class_each_all_calibrate_if_anomalous() -> None:
    units, mask = np.repeat(np.arange(30), 10), np.arange(300) >= 200
    found = divide(mask, 0.5, BOTH, np.random.RandomState(0), keep_anomalies=True, units=units)
    assert np.count_nonzero(mask[found[1]]) == 100
    assert (found[0].size, found[1].size) == (100, 200)


def test_every_unit_calibrates_equally_often() -> None:
    # as for rows: beyond 0.5 +- 0.062 with probability 20 * 3e-8 < 1e-6, and 3 in 5 is caught with 0.9997
    units, random = np.repeat(np.arange(20), [1, 3] * 10), np.random.RandomState(0)
    mask, counts = units % 4 == 0, np.zeros(20)
    for _ in range(2000):
        found = divide(mask, 0.5, BOTH, random, keep_anomalies=False, units=units)
        counts[np.unique(units[found[1]])] += 1
    # of the 5 anomalous units round(2.5) = 2 calibrate, and of the 15 others round(7.5) = 8
    expected = np.where(np.arange(20) % 4 == 0, 2 / 5, 8 / 15)
    assert np.abs(counts / 2000 - expected).max() < 0.062


def test_rows_of_several_units_are_certified_over_units() -> None:
    patients = np.r_[np.arange(400) // 4, np.arange(200)] + 0.5
    forest = IsolationForest(n_estimators=10)
    wrap = PACWrap(forest, max_fpr=0.2, max_fnr=0.2, random_state=0).fit(X, Y, units=patients)
    found = wrap.certificate_
    assert found.assumptions == of_units(True, True)
    assert found.fpr.units == 50  # of the 100 patients with normal rows, half calibrate
    assert Certificate.from_json(found.to_json()) == found
    again = wrap.calibrate(X + 0.01, Y, units=np.r_[np.arange(400) // 4, np.arange(1000, 1200)])
    assert again.certificate_.assumptions == of_units(False, True)
    assert again.certificate_.fpr.units == 100


def test_one_row_of_each_unit_keeps_the_rule_and_adds_the_deltas_of_paired_classes() -> None:
    plain = PACWrap("precomputed").fit(X[:, 0], Y).certificate_
    # one of each class: the promise of a class is about its own rows
    paired = PACWrap("precomputed").fit(X[:, 0], Y, units=np.r_[np.arange(400), np.arange(200)]).certificate_
    assert (paired.clauses, paired.rule) == (plain.clauses, plain.rule)
    assert paired.confidence == 0.9
    assert plain.confidence > 0.9025


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pl.Series, lambda names: np.array(names, dtype=object)]
)
def test_units_may_have_names_in_any_container(kind: Any) -> None:
    names = [f"machine {row // 30}" for row in range(600)]
    wrap = PACWrap(IsolationForest(n_estimators=5), random_state=0).fit(X, Y, units=kind(names))
    assert wrap.certificate_.fpr.n % 30 in (0, 10)


@pytest.mark.parametrize(
    ("units", "reason"),
    [
        (np.arange(3), "X and units must have the same length, got 600 and 3"),
        (np.zeros((600, 1)), r"units must be one-dimensional, one group per point, got shape \(600, 1\)"),
        (
            np.r_[np.nan, np.arange(599)],
            "but 1 of 600 are missing, the first at position 0",
        ),
        (
            [None, *"abc"] * 150,
            "units must be known, but 150 of 600 are missing",
        ),
        (pd.Series([pd.NA, "a"] * 300, dtype="string"), "but 300 of 600 are missing"),
    ],
    ids=["short", "wide", "NaN", "None", "NA"],
)
def test_units_that_are_none_are_refused(units: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        PACWrap(LogisticRegression()).fit(X, Y, units=units)


def test_units_of_another_index_are_refused() -> None:
    table = pd.DataFrame(X)
    with pytest.raises(InputError, match="X and units must have the same index"):
        PACWrap(LogisticRegression()).fit(table, Y, units=pd.Series(range(600), index=range(1, 601)))
