"""Scores of several tables, matched by a key: as if they stood in one, or refused in one sentence."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.tables.table import joined
from support.examples import examples
from support.shell import parquet, refused, succeeded, write
from support.strategies import refusal


def csv(path: Path, header: str, *rows: str) -> str:
    return str(write(path, "\n".join([header, *rows, ""])))


@pytest.fixture
def left(tmp_path: Path) -> str:
    return csv(tmp_path / "a.csv", "id,forest,y", "x1,0.5,0", "x2,inf,1", "03,-1,0")


def test_rows_are_matched_whatever_their_order(left: str, tmp_path: Path) -> None:
    right = parquet(
        tmp_path / "b.parquet",
        "SELECT * FROM (VALUES ('03', 30.0), ('x1', 10.0), ('x2', 20.0)) t (id, lof)",
    )
    found = joined([left, str(right)], ["lof", "forest"], "y", "id")
    assert list(found) == ["lof", "forest"]
    assert found["lof"][0].tolist() == [10.0, 20.0, 30.0]
    assert found["forest"][0].tolist() == [0.5, np.inf, -1.0]
    assert all(marks.tolist() == [False, True, False] for _, marks in found.values())
    turned = joined([str(right), left], ["lof", "forest"], "y", "id")
    assert turned["forest"][0].tolist() == [-1.0, 0.5, np.inf]
    assert turned["lof"][1].tolist() == [False, False, True]


def test_labels_may_stand_in_both_if_they_agree(left: str, tmp_path: Path) -> None:
    right = csv(tmp_path / "b.csv", "id;lof;y", "x2;2;true", "x1;1;false", "03;3;false")
    assert joined([left, right], ["lof"], "y", "id")["lof"][1].tolist() == [False, True, False]
    other = csv(tmp_path / "c.csv", "id,lof,y", "x2,2,0", "x1,1,1", "03,3,0")
    assert refusal(lambda: joined([left, other], ["forest", "lof"], "y", "id")).endswith(
        "c.csv in 2 of 3 rows; fix the labels, or drop that column from one of them"
    )
    named = csv(tmp_path / "d.csv", "id,lof,y", "x2,2,bad", "x1,1,ok", "03,3,ok")
    found = joined([named], ["lof"], "y", "id", anomaly_label="bad")
    assert found["lof"][1].tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            ["x1,1", "x2,2"],
            "1 keys of a.csv are not in b.csv, and 0 keys of b.csv not in a.csv, such as '03'",
        ),
        (["x1,1", "x2,2", "03,3", "3,4"], "0 keys of a.csv are not in b.csv, and 1 keys of b.csv"),
        (
            ["x1,1", "x2,2", "03,3", "x2,4", "x2,5"],
            "b.csv has 2 rows with the key of another row, such as 'x2'",
        ),
        (["x1,1", "x2,2", "03,3", ",4"], "b.csv has 1 row without a key in column 'id'"),
        (["x1,1", "x2,", "03,3"], "column 'lof' must not be empty or NaN"),
        (["x1,1", "x2,a", "03,3"], "column 'lof' must hold numbers, got 'a' in row 2"),
    ],
)
def test_what_does_not_match_is_refused_with_counts(
    rows: list[str], words: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "b.csv", "id,lof", *rows)
    assert words in refusal(lambda: joined(["a.csv", "b.csv"], ["forest", "lof"], "y", "id"))


@pytest.mark.parametrize(
    ("scores", "label", "key", "words"),
    [
        (["forest", "lo"], "y", "id", "there is no column 'lo'; did you mean 'lof'?"),
        (["forest"], "z", "id", "there is no column 'z'"),
        (["forest"], "y", "nr", "there is no column 'nr'"),
        (["forest"], "y", "y", "column 'y' cannot be the key and a score or label"),
        (["forest"], "y", "forest", "column 'forest' cannot be the key and a score or label"),
        (["y"], "y", "id", "cannot be both"),
        (["twice"], "y", "id", "column 'twice' is in a.csv and in b.csv; rename one of them"),
    ],
)
def test_columns_that_are_not_there_or_not_clear(
    scores: list[str], label: str, key: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "a.csv", "id,forest,twice,y", "1,1,1,0")
    csv(tmp_path / "b.csv", "id,lof,twice", "1,1,1")
    assert words in refusal(lambda: joined(["a.csv", "b.csv"], scores, label, key))


@settings(max_examples=examples(25), deadline=None)
@given(st.permutations(range(12)))
def test_any_order_gives_the_same_columns(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    folder = tmp_path_factory.mktemp("joined")
    first = csv(folder / "a.csv", "id,a,y", *(f"k{i},{i},{i % 2}" for i in range(12)))
    second = csv(folder / "b.csv", "b,id", *(f"{i * 10},k{i}" for i in order))
    found = joined([first, second], ["a", "b"], "y", "id")
    assert (found["a"][0] * 10).tolist() == found["b"][0].tolist()


def test_compare_shows_what_one_table_would(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    a, b = rng.normal(0, 1, 400) + 2 * y, rng.normal(0, 1, 400) + y
    rows = range(400)
    whole = csv(tmp_path / "w.csv", "id,a,b,y", *(f"{i},{a[i]},{b[i]},{int(y[i])}" for i in rows))
    left = csv(tmp_path / "a.csv", "id,a,y", *(f"{i},{a[i]},{int(y[i])}" for i in rows))
    right = csv(tmp_path / "b.csv", "id,b", *(f"{i},{b[i]}" for i in reversed(rows)))
    columns = ["--score", "a", "--score", "b", "--label", "y"]
    assert succeeded("compare", left, right, "--key", "id", *columns) == succeeded("compare", whole, *columns)
    assert "there is no column 'nr'" in refused(tmp_path, "compare", left, right, "--key", "nr", *columns)
    hint = "; if the tables have different scores of the same rows, join them with --key"
    assert hint in refused(tmp_path, "compare", left, right, *columns)
    assert hint not in refused(tmp_path, "compare", left, *columns)
    other = tmp_path / "b.jsonl"
    other.write_text('{"id": 0, "b": 1}')
    assert hint in refused(tmp_path, "compare", left, other, *columns)
    assert hint not in refused(tmp_path, "compare", left, tmp_path / "none.csv", *columns)
