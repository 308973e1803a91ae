"""The split keeps its parts apart, its shares, and its promise that nothing held out was trained on."""

from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap_paper.data.dataset import Split, semi_supervised_split

HOLD_OUT = {"known": 0, "contamination": 0, "anomalies": "hold_out"}


def labels(normals: int, anomalies: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(np.repeat([0, 1], [normals, anomalies]))


def split(y: Any, seed: Any = 0, **options: Any) -> Split:
    return semi_supervised_split(y, np.random.default_rng(seed), **options)


def counts(y: NDArray[np.int64], rows: NDArray[np.intp]) -> list[int]:
    return [int(np.count_nonzero(y[rows] == kind)) for kind in (0, 1)]


def parts(result: Split) -> tuple[NDArray[np.intp], ...]:
    return result.train, result.calibration, result.test


sizes = {
    "y": st.builds(labels, st.integers(40, 400), st.integers(20, 200), st.integers(0, 99)),
    "seed": st.integers(0, 99),
    "train": st.sampled_from([0.5, 0.7, 0.8]),
    "calibration": st.sampled_from([0.3, 0.5]),
}
shares = sizes | {"known": st.integers(0, 5), "contamination": st.sampled_from([0, 0.005, 0.01])}


@given(**shares)
def test_parts_are_in_order_and_share_no_row(y: NDArray[np.int64], **options: Any) -> None:
    result = split(y, **options)
    joined = np.concatenate(parts(result))
    assert np.unique(joined).size == joined.size
    assert joined.min() >= 0
    assert joined.max() < y.size
    for rows in parts(result):
        assert rows.dtype == np.intp
        assert (np.diff(rows) > 0).all()


@given(**shares)
def test_labels_mark_the_known_anomalies_and_nothing_else(
    y: NDArray[np.int64], known: int, contamination: float, **options: Any
) -> None:
    result = split(y, known=known, contamination=contamination, **options)
    assert result.labels.dtype == np.int8
    assert result.labels.shape == result.train.shape
    assert y[result.train][result.labels == 1].tolist() == [1] * known
    normals, hidden = counts(y, result.train[result.labels == 0])
    # as many unlabelled anomalies as fit into the share, and not one more
    assert hidden <= contamination * (normals + hidden) + 1e-9
    assert hidden + 1 > contamination * (normals + hidden + 1) - 1e-9


@given(**shares)
def test_each_class_has_its_share_in_each_part(
    y: NDArray[np.int64], train: float, calibration: float, **options: Any
) -> None:
    result = split(y, train=train, calibration=calibration, **options)
    trained = counts(y, result.train)
    calibrating, testing = counts(y, result.calibration), counts(y, result.test)
    for kind in (0, 1):
        whole = int(np.count_nonzero(y == kind))
        held = calibrating[kind] + testing[kind]
        assert held == whole - round(train * whole)
        assert calibrating[kind] == round(calibration * held)
        assert min(calibrating[kind], testing[kind]) > 0
    assert trained[0] == round(train * np.count_nonzero(y == 0))


@given(**shares)
def test_anomalies_left_over_are_dropped_and_held_out_ones_do_not_hang_on_what_is_known(
    y: NDArray[np.int64], seed: int, train: float, calibration: float, known: int, contamination: float
) -> None:
    shared = {"train": train, "calibration": calibration}
    result = split(y, seed, known=known, contamination=contamination, **shared)
    ignorant = split(y, seed, known=0, contamination=0, **shared)
    assert (result.calibration == ignorant.calibration).all()
    assert (result.test == ignorant.test).all()
    taken = sum(counts(y, rows)[1] for rows in parts(result))
    supply = round(train * np.count_nonzero(y))
    assert np.count_nonzero(y) - taken == supply - counts(y, result.train)[1]


@given(**shares)
def test_one_seed_gives_one_split(y: NDArray[np.int64], seed: int, **options: Any) -> None:
    first, second = (split(y, seed, **options) for _ in range(2))
    for one, other in zip((*parts(first), first.labels), (*parts(second), second.labels), strict=True):
        np.testing.assert_array_equal(one, other)


@given(**sizes | {"y": st.builds(labels, st.integers(300, 400), st.integers(20, 40), st.integers(0, 99))})
def test_hold_out_trains_on_normals_only_and_uses_every_row(
    y: NDArray[np.int64], train: float, **options: Any
) -> None:
    result = split(y, train=train, **options, **HOLD_OUT)
    assert counts(y, result.train) == [round(train * y.size), 0]
    assert not result.labels.any()
    assert np.sort(np.concatenate(parts(result))).tolist() == list(range(y.size))


def test_hold_out_needs_normals_beyond_those_it_trains_on() -> None:
    with pytest.raises(InputError, match="at least one of the normals each, but 0 are held out"):
        split(labels(80, 20), **HOLD_OUT)


def test_other_seeds_draw_other_rows_and_every_row_has_its_chance() -> None:
    y = labels(200, 50)
    seen = np.zeros((3, y.size), dtype=bool)
    for seed in range(300):
        for place, rows in enumerate(parts(split(y, seed, known=5))):
            seen[place, rows] = True
    # a row stays out of a part of 6 % in 300 draws with a chance of 1e-8
    assert seen.all()


@pytest.mark.parametrize(
    ("normals", "anomalies", "calibrating", "testing", "hidden"),
    [
        (36_548, 4_640, [2_193, 278], [5_117, 650], 596),
        (198_052, 4_547, [11_883, 273], [27_727, 636], 3_233),
        (280_717, 18_568, [16_843, 1_114], [39_300, 2_600], 4_583),
    ],
    ids=["campaign", "celeba", "census"],
)
def test_the_sizes_of_the_paper(
    normals: int, anomalies: int, calibrating: list[int], testing: list[int], hidden: int
) -> None:
    y = labels(normals, anomalies)
    result = split(y)
    assert (counts(y, result.calibration), counts(y, result.test)) == (calibrating, testing)
    assert counts(y, result.train) == [normals - calibrating[0] - testing[0], 30 + hidden]
    assert hidden == floor((normals - calibrating[0] - testing[0]) * 2 / 98)


def test_the_sizes_of_thyroid() -> None:
    y = labels(6_666, 534)
    result = split(y, **HOLD_OUT)
    assert counts(y, result.train) == [5_760, 0]
    assert (result.calibration.size, result.test.size) == (432, 1_008)
    assert counts(y, np.r_[result.calibration, result.test]) == [906, 534]


@pytest.mark.parametrize(
    ("normals", "share", "hidden"), [(98, 0.02, 2), (49, 0.02, 1), (90, 0.1, 10), (97, 0.02, 1)]
)
def test_the_last_bit_of_a_quotient_does_not_decide(normals: int, share: float, hidden: int) -> None:
    y = labels(2 * normals, 100)
    result = split(y, train=0.5, known=0, contamination=share)
    assert counts(y, result.train) == [normals, hidden]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"train": 0}, "train must lie strictly between 0 and 1, got 0; write five percent as 0.05"),
        ({"train": 80}, "train must lie strictly between 0 and 1, got 80;"),
        ({"calibration": 1.0}, "calibration must lie strictly between 0 and 1, got 1.0;"),
        ({"contamination": 1}, "contamination must lie strictly between 0 and 1, got 1;"),
        ({"contamination": -0.1}, "contamination must lie strictly between 0 and 1, got -0.1;"),
        ({"contamination": float("nan")}, "contamination must lie strictly between 0 and 1, got nan;"),
        ({"known": -1}, "known must be a whole number, 0 or more, got -1"),
        ({"known": 2.5}, "known must be a whole number, 0 or more, got 2.5"),
        ({"anomalies": "drop"}, "anomalies must be one of 'split', 'hold_out'; got 'drop'"),
        (
            {"anomalies": "hold_out", "contamination": 0},
            'with anomalies="hold_out" only normals are trained on: known and contamination must be 0,'
            " got 30 and 0",
        ),
        (
            {"known": 38, "contamination": 0.02},
            "training on 38 known and 3 unlabelled anomalies needs 41, but the training part has 40 of 50;"
            " lower known or contamination",
        ),
        ({"train": 0.001}, "no normal row would be trained on, got train = 0.001 of 250 rows; raise it"),
        (
            {"train": 0.98, "known": 0},
            "calibration and test need at least one of the anomalies each, but 1 are held out and 0 of them"
            " would calibrate; pass more rows, or change train or calibration",
        ),
        ({"calibration": 0.001}, "calibration and test need at least one of the normals each, but 40 are"),
        ({"calibration": 0.999}, "calibration and test need at least one of the normals each, but 40 are"),
    ],
)
def test_what_cannot_be_done_is_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        split(labels(200, 50), **changed)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("y", [[0, 1, 2], [1, -1], ["a"], [[0], [1]], [0.0, np.nan]])
def test_labels_are_0_and_1(y: Any) -> None:
    with pytest.raises(InputError, match=r"^y must"):
        split(y)


def test_a_seed_is_no_generator() -> None:
    with pytest.raises(
        InputError, match=r"random must be a NumPy generator, got 0; pass np.random.default_rng"
    ):
        semi_supervised_split([0, 1], 0)  # type: ignore[arg-type]  # what a user may well pass


@pytest.mark.parametrize("kind", [0, 1])
def test_one_class_alone_is_refused(kind: int) -> None:
    with pytest.raises(InputError, match=r"must mark at least one (normal|anomalous) row, got 100 rows"):
        split([kind] * 100, known=0, contamination=0)
