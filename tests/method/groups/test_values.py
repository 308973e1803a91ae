"""Columns of groups: what each kind of column becomes, and what is refused."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError
from pac_wrap.method.groups.values import as_group, coded, shown, text_of

PLAIN = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=True, allow_infinity=False),
    st.dates(),
)


@given(st.lists(PLAIN, max_size=30))
def test_rows_get_the_number_of_their_own_value(values: list[object]) -> None:
    groups = list(map(as_group, values))
    if len({text_of(one) for one in groups}) < len({(type(one), one) for one in groups}):
        with pytest.raises(InputError, match="written alike"):
            coded(np.array(values, dtype=object))
        return
    found = coded(np.array(values, dtype=object))
    assert [text_of(found.values[code]) for code in found.codes] == [text_of(as_group(one)) for one in values]
    assert len(set(map(text_of, found.values))) == len(found.values)


@pytest.mark.parametrize(
    ("column", "values", "codes"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        (("b", None), (None, "b"), [1, 0]),
        (np.array([3, 1, 3]), (1, 3), [1, 0, 1]),
        (np.array([2**63, 1], dtype=np.uint64) // 16, (0, 2**59), [1, 0]),
        (np.array([-5, 10**15]), (-5, 10**15), [0, 1]),
        (np.array([True, False]), (False, True), [1, 0]),
        (np.array([1.0, np.nan, 2.5]), (None, 1, 2.5), [1, 0, 2]),
        (np.array(["x", "y"]), ("x", "y"), [0, 1]),
        (np.array(["2026-01-31", "NaT"], dtype="M8[D]"), (None, "2026-01-31"), [1, 0]),
        (np.array(["2026-01-31T05"], dtype="M8[ns]"), ("2026-01-31 05:00:00",), [0]),
        (pd.Series(["b", None, "a"]), (None, "a", "b"), [2, 0, 1]),
        (pd.Series(["b", None], dtype="string"), (None, "b"), [1, 0]),
        (pd.Series([7, None], dtype="Int64"), (None, 7), [1, 0]),
        (pd.Series([7.0, None]), (None, 7), [1, 0]),
        (pd.Series([True, None], dtype="boolean"), (None, True), [1, 0]),
        (pd.Series(["x", None], dtype="category"), (None, "x"), [1, 0]),
        (pd.Categorical(["b", "a"], categories=["a", "unused", "b"]), ("a", "b"), [1, 0]),
        (pd.cut(pd.Series([30, 20]), [0, 25, 100]), ("(0, 25]", "(25, 100]"), [1, 0]),
        (pd.to_datetime(pd.Series(["2026-01-31", None])), (None, "2026-01-31 00:00:00"), [1, 0]),
        (pl.Series(["b", None, "a"]), (None, "a", "b"), [2, 0, 1]),
        (pl.Series([2, 1]), (1, 2), [1, 0]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ("a", "b"), [1, 0]),
        ([date(2026, 1, 31), "x", 3], (3, "2026-01-31", "x"), [1, 2, 0]),
        ([Decimal("1.5"), Decimal("1.50")], ("1.5", "1.50"), [0, 1]),
        (
            [datetime(2026, 1, 31, 5, tzinfo=timezone(timedelta(hours=1)))],
            ("2026-01-31 04:00:00+00:00",),
            [0],
        ),
        ([float("nan"), None, pd.NA, pd.NaT, float("nan")], (None,), [0, 0, 0, 0, 0]),
        ([], (), []),
    ],
)
def test_columns_of_every_kind(column: object, values: tuple[object, ...], codes: list[int]) -> None:
    found = coded(column)  # type: ignore[arg-type]  # columns of several libraries
    assert found.values == values
    assert list(map(type, found.values)) == list(map(type, values))
    assert found.codes.tolist() == codes


def test_other_values_become_their_texts() -> None:
    known = [datetime(2026, 1, 31, 5), Decimal("1.50"), UUID(int=1)]
    assert [as_group(one) for one in known] == ["2026-01-31 05:00:00", "1.50", str(UUID(int=1))]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([7, "7"], "written alike"),
        ([True, 2], "mix truth values and numbers"),
        ([True, np.int64(1)], "mix truth values and numbers"),
        ([np.True_, np.float32(1)], "mix truth values and numbers"),
        ([True, Decimal(1)], "mix truth values and numbers"),
        ([1, Decimal(1)], "written alike"),
        ([timedelta(1)], "must be texts"),
        (np.array([1, 2], dtype="m8[ns]"), "must be texts"),
        (np.array(["2026-01-31T00:00:00.0000000000001"], dtype="M8[fs]"), "finer than nanoseconds"),
        ([[1], [2]], "one value for each point"),
        (np.zeros((2, 2)), "one-dimensional"),
        ([float("inf")], "cannot be inf"),
        ([10**18], "at most 18 digits"),
        (["a" * 1001], "at most 1,000 characters"),
        ([b"bytes"], "must be texts"),
        ([object()], "must be texts"),
    ],
)
def test_what_is_no_group_is_refused(column: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        coded(column)  # type: ignore[arg-type]  # refused


def test_a_hostile_name_is_shown_harmlessly() -> None:
    assert shown("\x1b[31m\u202e") == "'\\x1b[31m\\u202e'"
    assert shown(None) == "none"
    assert shown(True) == "True"


def test_truth_values_with_gaps_are_groups() -> None:
    found = coded([True, False, None])
    assert (found.codes.tolist(), found.values) == ([2, 1, 0], (None, False, True))
