"""Rows are taken, split and compared alike, whatever container holds them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from pac_wrap import InputError
from pac_wrap.detectors.rows import row_digests, split_rows, take_rows

NUMBERS = np.array([[1.0, 0.0, 3.0], [0.0, -2.5, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
WORDS = [["red", "low"], ["blue", "high"], ["red", "low"], ["low", "red"]]

CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": np.asarray,
    "fortran array": np.asfortranarray,
    "list": lambda rows: np.asarray(rows).tolist(),
    "pandas": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(np.asarray(rows)),
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
}
TAKEABLE = [name for name in CONTAINERS if name not in ("csc array", "coo array")]


def dense(X: Any) -> NDArray[Any]:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


@pytest.mark.parametrize("name", TAKEABLE)
def test_taken_rows_stay_in_their_container_and_order(name: str) -> None:
    X = CONTAINERS[name](NUMBERS)
    taken = take_rows(X, np.array([2, 0, 1]))
    assert type(taken) is type(X)
    np.testing.assert_array_equal(dense(taken), NUMBERS[[2, 0, 1]])
    assert dense(take_rows(X, np.array([], dtype=np.intp))).shape[0] == 0


def test_frames_are_taken_by_position_and_keep_names_and_types() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=[2, 0, 1])
    taken = take_rows(frame, np.array([0, 2]))
    assert taken["b"].tolist() == ["x", "z"]
    assert taken.index.tolist() == [2, 1]
    assert taken.dtypes.equals(frame.dtypes)
    columns = take_rows(pl.from_pandas(frame.reset_index(drop=True)), np.array([0, 2]))
    assert columns.to_dict(as_series=False) == {"a": [1, 3], "b": ["x", "z"]}


def test_lists_of_anything_and_stacks_of_arrays_are_taken() -> None:
    assert take_rows(["first", "second", "third"], np.array([2, 0])) == ["third", "first"]
    stack = np.arange(24).reshape(4, 3, 2)
    np.testing.assert_array_equal(take_rows(stack, np.array([3])), stack[3:])
    assert take_rows(pd.Series(["a", "b"], index=[1, 0]), np.array([1])).tolist() == ["b"]


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_equal_rows_have_equal_digests_in_every_container_and_type(name: str, dtype: str) -> None:
    whole = np.trunc(NUMBERS).astype(dtype)
    digests = row_digests(CONTAINERS[name](whole))
    assert digests.dtype == np.uint64
    np.testing.assert_array_equal(digests, row_digests(np.trunc(NUMBERS)))
    assert digests[0] == digests[2]
    assert len(set(digests.tolist())) == 3


def test_booleans_and_nullable_types_equal_the_numbers_they_stand_for() -> None:
    numbers = np.array([[1, 0], [0, 1]])
    expected = row_digests(numbers)
    for same in (
        numbers.astype(bool),
        pd.DataFrame(numbers).astype("boolean"),
        pd.DataFrame(numbers).astype("Int64"),
        pd.DataFrame(numbers).astype("float64[pyarrow]"),
        pl.DataFrame(numbers, schema=["a", "b"]).cast(pl.Boolean),
    ):
        np.testing.assert_array_equal(row_digests(same), expected)


def test_negative_zero_equals_zero() -> None:
    zeros, negative = np.zeros((1, 2)), np.full((1, 2), -0.0)
    for container in CONTAINERS.values():
        assert row_digests(container(negative)) == row_digests(zeros)
    stored = sparse.csr_array((np.array([-0.0, 0.0]), (np.array([0, 0]), np.array([0, 1]))), shape=(1, 2))
    assert row_digests(stored) == row_digests(zeros)


def test_missing_values_equal_each_other() -> None:
    rows = np.array([[np.nan, 1.0], [2.0, 1.0]])
    frame = pl.DataFrame({"a": [None, 2.0], "b": [1.0, 1.0]})
    np.testing.assert_array_equal(row_digests(rows), row_digests(pd.DataFrame(rows)))
    np.testing.assert_array_equal(row_digests(rows), row_digests(frame))
    assert row_digests(rows)[0] != row_digests(rows)[1]


def test_columns_of_text_have_digests_too() -> None:
    expected = row_digests(WORDS)
    assert len(set(expected.tolist())) == 3
    for same in (
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        pd.DataFrame(WORDS),
        pd.DataFrame(WORDS, dtype=object),
        pd.DataFrame(WORDS).astype("category"),
        pl.DataFrame(WORDS, orient="row"),
    ):
        np.testing.assert_array_equal(row_digests(same), expected)


def test_mixed_columns_are_compared_each_by_its_own_type() -> None:
    columns: dict[str, Any] = {"size": [1.0, 2.0, 1.0], "colour": ["red", "red", "blue"]}
    frame = pd.DataFrame(columns)
    digests = row_digests(frame)
    assert len(set(digests.tolist())) == 3
    np.testing.assert_array_equal(digests, row_digests(pl.DataFrame(columns)))
    whole = frame.astype({"size": "int32"})
    np.testing.assert_array_equal(digests, row_digests(whole))


def test_numbers_in_an_array_of_objects_equal_themselves() -> None:
    frame = pd.DataFrame({"size": [1, 2], "colour": ["red", "blue"]})
    objects = frame.to_numpy()
    assert objects.dtype == object
    np.testing.assert_array_equal(row_digests(objects), row_digests(frame))


def test_columns_that_share_a_name_are_told_apart() -> None:
    frame = pd.DataFrame(NUMBERS, columns=["a", "a", "b"])
    np.testing.assert_array_equal(row_digests(frame), row_digests(NUMBERS))


def test_an_entry_stored_in_two_parts_equals_their_sum() -> None:
    parts = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(row_digests(parts), row_digests(parts.toarray()))


def test_stacks_of_arrays_and_single_columns_have_a_digest_per_row() -> None:
    stack = np.arange(24.0).reshape(4, 3, 2)
    np.testing.assert_array_equal(row_digests(stack), row_digests(stack.reshape(4, 6)))
    texts = row_digests(["first", "second", "first"])
    assert texts[0] == texts[2] != texts[1]
    np.testing.assert_array_equal(texts, row_digests(pd.Series(["first", "second", "first"])))


def different_rows(kind: str) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    if kind == "real":
        return rng.normal(size=(200_000, 2))
    if kind == "grid":
        return np.stack(np.divmod(np.arange(200_000), 500), axis=1).astype(float)
    return np.unique(rng.integers(0, 10 if kind == "digits" else 2, (200_000, 40)).astype(float), axis=0)


@pytest.mark.parametrize("kind", ["real", "grid", "digits", "binary"])
def test_different_rows_have_different_digests(kind: str) -> None:
    # 2e5 rows among 2^64 good digests collide by chance with probability 1.1e-9
    rows = different_rows(kind)
    assert len(rows) > 199_000
    assert len(rows) - np.unique(row_digests(rows)).size == 0


def test_a_single_precision_copy_has_the_digest_of_its_rounded_original() -> None:
    rows = np.array([[0.1, -0.0, 1e300], [1e-60, 3.0, -np.inf], [np.nan, 16_777_217.0, 5e-324]])
    with np.errstate(over="ignore"):
        copy = rows.astype(np.float32)
    for container in (np.asarray, pd.DataFrame, sparse.csr_array):
        np.testing.assert_array_equal(row_digests(container(rows), single=True), row_digests(container(copy)))
        np.testing.assert_array_equal(row_digests(container(copy), single=True), row_digests(copy))
    assert not np.any(row_digests(rows) == row_digests(copy))


def test_whole_numbers_and_texts_are_not_rounded() -> None:
    frame = pd.DataFrame({"id": [2**40, 2**40 + 1], "name": ["a", "a"], "size": [0.5, 0.5]})
    np.testing.assert_array_equal(row_digests(frame, single=True), row_digests(frame))
    assert len(set(row_digests(frame, single=True).tolist())) == 2


def test_the_order_of_columns_matters() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    assert not np.any(row_digests(rows) == row_digests(rows[:, ::-1]))


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
        train, held_out = split_rows(mask, share, np.random.RandomState(seed), keep_anomalies=keep)
    except InputError:
        of_normal, of_anomalous = round(share * np.sum(~mask)), round(share * np.sum(mask))
        assert of_normal + (np.sum(mask) if keep else of_anomalous) in (0, mask.size)
        return
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
        _, rows = split_rows(mask, 0.5, np.random.RandomState(seed), keep_anomalies=False)
        return [int(row) for row in rows]

    assert held_out(0) == held_out(0)
    assert held_out(0) != held_out(1)


def test_every_row_is_held_out_equally_often() -> None:
    # 2,000 splits of 20 rows: an honest count strays beyond 0.5 +- 0.062 with probability 20 * 3e-8 < 1e-6,
    # while a row that is held out 3 in 5 times is caught with probability 0.9997
    mask = np.arange(20) >= 10
    random = np.random.RandomState(0)
    counts = np.zeros(20)
    for _ in range(2000):
        counts[split_rows(mask, 0.5, random, keep_anomalies=False)[1]] += 1
    assert np.abs(counts / 2000 - 0.5).max() < 0.062
