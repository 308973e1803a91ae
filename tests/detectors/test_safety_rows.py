"""Rows are taken and compared alike, whatever container holds them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from pac_wrap import PACClassifier, PACWrap
from pac_wrap.detectors.safety import row_digests
from pac_wrap.detectors.scores import take_rows

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
    if kind == "digits":  # forty of them: two rows are the same with a probability of 2e-30
        return rng.integers(0, 10, (200_000, 40)).astype(float)
    whole = np.unique(rng.integers(0, 2**40, 200_000))
    return (whole[:, None] >> np.arange(40) & 1).astype(float)


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


@pytest.mark.parametrize("kind", [PACWrap, PACClassifier])
def test_a_lazy_frame_of_polars_is_read_as_the_frame_that_it_collects_to(kind: type[Any]) -> None:
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 300)
    frame = pl.DataFrame(rng.normal(4 * y[:, None], 1, (600, 2)), schema=["a", "b"])
    wrapped = IsolationForest(random_state=0) if kind is PACWrap else LogisticRegression()
    seen, lazy = (kind(wrapped, random_state=0).fit(one, y) for one in (frame, frame.lazy()))
    assert np.array_equal(seen.predict(frame), lazy.predict(frame.lazy()))
    assert np.array_equal(seen.predict_set(frame), lazy.predict_set(frame.lazy()))
    assert seen.score(frame, y) == lazy.score(frame.lazy(), y)


def test_a_lazy_frame_may_hold_the_column_of_groups() -> None:
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 300)
    frame = pl.DataFrame(rng.normal(4 * y[:, None], 1, (600, 2)), schema=["a", "b"])
    tenant = frame.with_columns(pl.Series("tenant", ["x", "y"] * 300))
    wrap = PACWrap(IsolationForest(random_state=0), random_state=0)
    lazy = wrap.fit(tenant.lazy(), y, groups="tenant").predict(tenant.lazy())
    assert np.array_equal(lazy, wrap.fit(tenant, y, groups="tenant").predict(tenant))
