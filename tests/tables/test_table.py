"""Every format gives the same table, and no number is changed on the way."""

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from math import inf
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from pac_wrap.tables.decide import output_options
from pac_wrap.tables.files.connection import Done
from pac_wrap.tables.table import open_table
from support import tables
from support.patience import LIMIT
from support.shell import parquet, write
from support.strategies import refusal

# none of them is a short decimal, so that any detour through one shows
NUMBERS = [0.1 + 0.2, -1 / 3, 1e-300, 12345.6789, -0.0, 5e-324]
LABELS = [0, 1, 0, 1, 1, 0]
LATE = 30_000  # beyond the rows that DuckDB guesses types from


def csv_text(separator: str = ",") -> str:
    rows = [f"{score!r}{separator}{label}\n" for score, label in zip(NUMBERS, LABELS, strict=True)]
    return "".join([f"score{separator}label\n", *rows])


def json_text() -> str:
    rows = [{"score": score, "label": label} for score, label in zip(NUMBERS, LABELS, strict=True)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_parquet(path: Path) -> None:
    values = ", ".join(
        f"({i}, '{s!r}'::DOUBLE, {y})" for i, (s, y) in enumerate(zip(NUMBERS, LABELS, strict=True))
    )
    parquet(path, f"SELECT score, label FROM (VALUES {values}) t(i, score, label) ORDER BY i")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.csv": lambda path: write(path, csv_text()),
    "a.tsv": lambda path: write(path, csv_text("\t")),
    "semicolons.csv": lambda path: write(path, csv_text(";")),
    "windows.csv": lambda path: write(path, csv_text().replace("\n", "\r\n")),
    "mark.csv": lambda path: write(path, "\ufeff" + csv_text()),
    "a.csv.gz": lambda path: write(path, gzip.compress(csv_text().encode())),
    "A.CSV": lambda path: write(path, csv_text()),
    "a.parquet": as_parquet,
    "a.jsonl": lambda path: write(path, json_text()),
    "a.ndjson": lambda path: write(path, json_text()),
    "a.jsonl.gz": lambda path: write(path, gzip.compress(json_text().encode())),
    "a.json": lambda path: write(path, "[" + json_text().strip().replace("\n", ",\n") + "]"),
    "a.npz": lambda path: np.savez(path, score=np.array(NUMBERS), label=np.array(LABELS)),
    "records.npy": lambda path: np.save(
        path, np.array(list(zip(NUMBERS, LABELS, strict=True)), [("score", "f8"), ("label", "i8")])
    ),
}


def scores_of(
    *paths: Path, score: str = "score", label: str | None = None, whole: bool = False
) -> list[float]:
    with open_table([str(path) for path in paths], [score], label, whole=whole) as table:
        return list(tables.scores_of(table, score))


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_scores_and_labels_to_the_last_bit(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    with open_table([str(tmp_path / name)], ["score"], "label") as table:
        assert table.columns == ["score", "label"]
        scores, anomalous = table.labelled("score", "label", None)
    assert [score.hex() for score in scores.tolist()] == [score.hex() for score in NUMBERS]
    assert anomalous.tolist() == [label == 1 for label in LABELS]


def test_several_files_are_one_table_in_the_order_given(tmp_path: Path) -> None:
    one, two = write(tmp_path / "z.csv", "score\n1\n2\n"), write(tmp_path / "a.csv", "score\n3.5\n")
    assert scores_of(one, two) == [1.0, 2.0, 3.5]
    assert scores_of(tmp_path / "*.csv") == [3.5, 1.0, 2.0]


def test_columns_of_several_files_are_matched_by_name(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "score,label\n1,0\n")
    write(tmp_path / "2.csv", "label,extra,score\ntrue,x,2.5\n")
    with open_table([str(tmp_path / "*.csv")], ["score"], "label") as table:
        scores, anomalous = table.labelled("score", "label", None)
    assert (scores.tolist(), anomalous.tolist()) == ([1.0, 2.5], [False, True])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("TINYINT", "-3", -3.0),
        ("BIGINT", "9007199254740993", float(9007199254740993)),
        ("UBIGINT", "18446744073709551615", 2.0**64),
        ("FLOAT", "0.1", float(np.float32(0.1))),
        ("DECIMAL(18, 3)", "1.125", float(Decimal("1.125"))),
        ("DOUBLE", "'-inf'", -inf),
        ("BOOLEAN", "true", 1.0),
    ],
)
def test_every_type_of_number_is_widened_to_a_double(
    kind: str, value: str, expected: float, tmp_path: Path
) -> None:
    assert scores_of(parquet(tmp_path / "a.parquet", f"SELECT {value}::{kind} AS score")) == [expected]


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "int8", "uint64", "bool"])
def test_every_numpy_type_of_number_is_widened_to_a_double(dtype: str, tmp_path: Path) -> None:
    array = np.array([0, 1, 1], dtype=dtype)
    np.save(tmp_path / "a.npy", array)
    assert scores_of(tmp_path / "a.npy") == array.astype(float).tolist()


@pytest.mark.parametrize("first", ["inf", "-inf", "Infinity", "-Infinity"])
@pytest.mark.parametrize("whole", [False, True])
def test_infinities_are_legal_scores_wherever_they_stand(first: str, whole: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"score,label\n{first},0\n1.5,1\ninf,1\n")
    assert scores_of(path, whole=whole) == [float(first), 1.5, inf]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_late_fraction_after_whole_numbers_is_not_rounded(suffix: str, whole: bool, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        write(path, "score\n" + "7\n" * LATE + "1.5\n")
    else:
        write(path, '{"score": 7}\n' * LATE + '{"score": 1.5}\n')
    assert scores_of(path, whole=whole)[-2:] == [7.0, 1.5]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_late_fraction_in_a_second_score_column_is_not_rounded(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        write(path, "a,b,label\n" + "7,7,0\n" * LATE + "1.5,1.5,1\n")
    else:
        write(path, '{"a": 7, "b": 7, "label": 0}\n' * LATE + '{"a": 1.5, "b": 1.5, "label": 1}\n')
    with open_table([str(path)], ["a", "b"], "label") as table:
        assert table.labelled("b", "label", None)[0][-1] == 1.5


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_late_labels_of_another_spelling_are_understood(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        write(path, "score,label\n" + "1,0\n" * LATE + "2,true\n")
    else:
        write(path, '{"score": 1, "label": 0}\n' * LATE + '{"score": 2, "label": true}\n')
    with open_table([str(path)], ["score"], "label") as table:
        assert table.labelled("score", "label", None)[1].sum() == 1


def test_a_late_key_of_json_lines_is_a_column_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"score": 1}\n' * LATE + '{"score": 2, "note": "x"}\n')
    with open_table([str(path)], ["score"], whole=True) as table:
        assert table.columns == ["score", "note"]
        assert tables.scores_of(table, "score")[-1] == 2.0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("folder", ["score=9", "label=1", "day=2024-01-01"])
def test_the_name_of_a_folder_never_becomes_a_column(folder: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / f"a{suffix}"
    if suffix == ".csv":
        write(path, "score,label\n1,0\n2,0\n")
    else:
        parquet(path, "SELECT * FROM (VALUES (1.0, 0), (2.0, 0)) t(score, label)")
    with open_table([str(path)], ["score"], "label") as table:
        scores, anomalous = table.labelled("score", "label", None)
        assert (scores.tolist(), anomalous.tolist()) == ([1.0, 2.0], [False, False])
        assert table.columns == ["score", "label"]


def test_rows_keep_their_order_when_many_threads_read_them(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", "SELECT i::DOUBLE AS score FROM range(500000) t(i)")
    assert np.array_equal(scores_of(path), np.arange(500_000.0))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.parquet", "FORMAT parquet"),
        ("A.PARQUET", "FORMAT parquet"),
        ("a.csv", "FORMAT csv, HEADER"),
        ("a.csv.gz", "FORMAT csv, HEADER, COMPRESSION gzip"),
        ("a.jsonl", "FORMAT json"),
        ("a.b.ndjson.GZ", "FORMAT json, COMPRESSION gzip"),
        (".csv", "FORMAT csv, HEADER"),
    ],
)
def test_the_ending_says_what_is_written(name: str, options: str) -> None:
    assert output_options(name) == options


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.parquet.gz", "csv", "a.csv.zip", ""])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    sentence = refusal(lambda: output_options(name))
    assert (
        sentence == f"the output {name} has no known format; the endings are .parquet, .csv, .jsonl, .ndjson"
    )


def test_the_share_of_a_query_that_is_done_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        """Says how far a query is; less than 0 means that DuckDB does not know yet."""

        shares = iter([-1.0, 40.0])

        def query_progress(self) -> float:
            return next(self.shares, 100.0)

    heard: list[tuple[float, int]] = []
    second = Event()

    def hear(done: Done) -> None:
        heard.append((done.share, done.number))
        if len(heard) == 2:
            second.set()

    with open_table([str(write(tmp_path / "t.csv", csv_text()))], ["score"], "label") as table:
        table.progress = hear
        monkeypatch.setattr(table, "_connection", Connection())
        with table._watched():
            assert second.wait(LIMIT)
        monkeypatch.undo()
    assert heard[:2] == [(0.0, 1), (40.0, 1)]
