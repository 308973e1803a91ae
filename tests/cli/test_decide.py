"""pac-wrap decide: the format it writes, what it says it did, missing scores, and where rows came from."""

import csv
import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from pac_wrap.base.arguments import ON_MISSING
from pac_wrap.cli.decide import OnMissing
from support.shell import (
    CERTIFICATE,
    SCRIPT,
    invoke,
    one_sentence,
    parquet,
    refused,
    succeeded,
    write,
)
from support.tables import empty_database

DECIDE = ["decide", CERTIFICATE]
SCORE = ["--score", "score"]
# of four rows one is normal, one an alarm, and one of the two that are undecided has no score
ROWS = [("a", 0.1), ("b", 1.0), ("c", None), ("d", 5.0)]
SAID = "4 rows: 1 normal, 1 alarm, 2 undecided (1 without a score)"


@pytest.fixture
def shared_databases() -> None:
    """Here every database is closed off, as in real commands: what is written must be allowed."""


FORMATS = ["csv", "csv.gz", "tsv", "jsonl", "parquet", "npy"]
# every format to another one, and two to every one: CSV on its way to Parquet is read as nothing else is
every_way = pytest.mark.parametrize(
    ("ending", "output"),
    [
        ("csv", "out.csv"),
        ("csv", "out.parquet"),
        ("csv", "out.jsonl"),
        ("csv.gz", "out.parquet"),
        ("tsv", "out.csv"),
        ("jsonl", "out.parquet"),
        ("parquet", "out.csv"),
        ("parquet", "out.parquet"),
        ("parquet", "out.jsonl"),
        ("npy", "out.jsonl"),
    ],
)


def table(folder: Path, ending: str, name: str = "in") -> Path:
    """Return a table of the four rows in a format."""
    path = folder / f"{name}.{ending}"
    cells = [(one, "" if score is None else str(score)) for one, score in ROWS]
    if ending.startswith("csv") or ending == "tsv":
        mark = "\t" if ending == "tsv" else ","
        text = f"id{mark}score\n" + "".join(f"{one}{mark}{score}\n" for one, score in cells)
        if ending == "csv.gz":
            import gzip

            return write(path, gzip.compress(text.encode()))
        return write(path, text)
    if ending == "jsonl":
        return write(path, "".join(json.dumps({"id": one, "score": score}) + "\n" for one, score in ROWS))
    if ending == "npy":
        scores = [np.nan if score is None else score for _, score in ROWS]
        np.save(
            path, np.array(list(zip("abcd", scores, strict=True)), dtype=[("id", "U1"), ("score", float)])
        )
        return path
    values = ", ".join(f"('{one}', {'NULL' if score is None else score}::DOUBLE)" for one, score in ROWS)
    return parquet(path, f"SELECT * FROM (VALUES {values}) t(id, score)")


def rows_in(path: Path) -> list[dict[str, Any]]:
    with empty_database() as connection:
        found = connection.execute(f"SELECT * FROM '{path}'")
        names = [column[0] for column in found.description or []]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def is_csv(text: str) -> bool:
    return text.startswith("id,score,verdict,prediction_set\n") and len(text.splitlines()) == 5


@pytest.mark.parametrize("ending", FORMATS)
def test_standard_output_has_the_format_of_the_table(ending: str, tmp_path: Path) -> None:
    done = invoke(*DECIDE, table(tmp_path, ending), *SCORE)
    assert done.code == 0
    if ending == "jsonl":
        assert [json.loads(line)["verdict"] for line in done.out.splitlines()] == [0, -1, -1, 1]
    else:
        assert is_csv(done.out), done.out
    notes = done.err.splitlines()
    assert notes[-1] == f"pac-wrap: {SAID}"
    assert [("written as CSV" in note) for note in notes[:-1]] == [True] * (ending in ("parquet", "npy"))
    asked = succeeded(*DECIDE, table(tmp_path, ending), *SCORE, "--format", "jsonl")
    assert [json.loads(line)["prediction_set"] for line in asked.splitlines()] == [
        "{0}",
        "{0,1}",
        "{0,1}",
        "{1}",
    ]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_pipe_keeps_its_format(ending: str, tmp_path: Path) -> None:
    done = invoke(*DECIDE, "-", *SCORE, stdin=table(tmp_path, ending).read_bytes())
    assert (json.loads(done.out.splitlines()[3])["verdict"] == 1) if ending == "jsonl" else is_csv(done.out)
    assert done.err.splitlines()[-1] == f"pac-wrap: {SAID}"


@every_way
def test_missing_scores_are_abstained_on_alike_from_every_format_to_every_other(
    ending: str, output: str, tmp_path: Path
) -> None:
    source, target = table(tmp_path, ending), tmp_path / output
    done = invoke(*DECIDE, source, *SCORE, "-o", target)
    assert (done.code, one_sentence(done.err)) == (0, f"{SAID} -> {target}")
    found = rows_in(target)
    assert [(row["id"], row["verdict"]) for row in found] == [("a", 0), ("b", -1), ("c", -1), ("d", 1)]
    assert [row["prediction_set"] for row in found] == ["{0}", "{0,1}", "{0,1}", "{1}"]
    sentence = refused(
        tmp_path, *DECIDE, source, *SCORE, "-o", tmp_path / f"2{output}", "--on-missing", "stop"
    )
    assert "column 'score' must not be empty or NaN, got 1 of 4, the first in row 3;" in sentence


def test_quiet_says_nothing(tmp_path: Path) -> None:
    for words in ([], ["-o", tmp_path / "out.parquet"]):
        assert invoke(*DECIDE, table(tmp_path, "parquet"), *SCORE, "--quiet", *words).err == ""
    assert invoke(*DECIDE, "-", *SCORE, "-q", stdin=b"score\n1\n").err == ""


def test_parquet_goes_through_a_pipe_but_not_to_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = table(tmp_path, "csv").read_bytes()
    words = [SCRIPT, *DECIDE, "-", *SCORE, "--format", "parquet"]
    out = subprocess.run(list(map(str, words)), input=stdin, capture_output=True).stdout
    assert len(rows_in(write(tmp_path / "again.parquet", out))) == 4
    pipe = io.BytesIO()
    monkeypatch.setattr("pac_wrap.cli.decide.standard_output", lambda: pipe)
    assert invoke(*DECIDE, table(tmp_path, "csv"), *SCORE, "--format", "parquet").code == 0
    found = rows_in(write(tmp_path / "out.parquet", pipe.getvalue()))
    assert [row["verdict"] for row in found] == [0, -1, -1, 1]
    monkeypatch.setattr("pac_wrap.cli.decide.standard_output", Terminal)
    sentence = refused(tmp_path, *DECIDE, table(tmp_path, "csv"), *SCORE, "--format", "parquet")
    assert sentence == "a terminal cannot show Parquet; name a file with -o, or remove --format"


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.filterwarnings("ignore")  # the files have the same content
@every_way
def test_a_column_tells_where_each_row_came_from(ending: str, output: str, tmp_path: Path) -> None:
    first, second = (table(tmp_path, ending, name) for name in ("it's %s", "b*"))
    more = table(tmp_path, ending, "c")
    target = tmp_path / output
    words = [first, tmp_path / f"b[*].{ending}", more, *SCORE, "--source-column", "file"]
    done = invoke(*DECIDE, *words, "-o", target)
    assert done.code == 0, done
    assert "-> " in done.err.splitlines()[-1]
    found = rows_in(target)
    assert list(found[0])[-3:] == ["file", "verdict", "prediction_set"]
    assert [row["file"] for row in found] == [str(one) for one in (first, second, more) for _ in ROWS]
    assert [row["verdict"] for row in found] == [0, -1, -1, 1] * 3
    for taken in ("id", "Verdict"):
        sentence = refused(
            tmp_path, *DECIDE, first, *SCORE, "--source-column", taken, "-o", tmp_path / f"2{output}"
        )
        assert "already; rename it or drop it first" in sentence


def test_a_source_needs_a_name(tmp_path: Path) -> None:
    sentence = refused(tmp_path, *DECIDE, table(tmp_path, "csv"), *SCORE, "--source-column", "")
    assert sentence == "--source-column must name a new column, got an empty name"


def test_files_of_other_columns_tell_their_source_too(tmp_path: Path) -> None:
    one = write(tmp_path / "1.csv", "score,x\n1,2\n")
    two = write(tmp_path / "2.csv", 'y,score\n"a\nb",5\n')
    for output in ("out.csv", "out.parquet"):
        succeeded(*DECIDE, one, two, *SCORE, "--source-column", "f", "-o", tmp_path / output)
        found = rows_in(tmp_path / output)
        assert [(row["score"], row["x"], row["y"], row["f"]) for row in found] == [
            (1, 2, None, str(one)),
            (5, None, "a\nb", str(two)),
        ]


LATE = 40_000


@pytest.mark.parametrize(
    ("early", "late", "kind"),
    [
        ("7", "8", "BIGINT"),
        ("7", "007", "VARCHAR"),
        ("7", "1.5", "DOUBLE"),
        ("1.5", "1_000", "VARCHAR"),
        ("1.5", "x", "VARCHAR"),
        ("1.5", "123456789012345678901", "VARCHAR"),
        ("7", "", "BIGINT"),
        ("x", "7", "VARCHAR"),
    ],
)
def test_types_that_only_the_first_rows_have_are_not_given(
    early: str, late: str, kind: str, tmp_path: Path
) -> None:
    rows = f"0.5,{early}\n" * LATE + f"0.5,{late}\n"
    source, output = write(tmp_path / "a.csv", f"score,x\n{rows}"), tmp_path / "out.parquet"
    succeeded(*DECIDE, source, *SCORE, "-o", output)
    with empty_database() as connection:
        found = connection.execute(
            f"SELECT typeof(x), CAST(x AS VARCHAR), x IS NULL FROM '{output}'"
        ).fetchall()
    assert len(found) == LATE + 1
    assert found[-1] == (kind, late or None, not late)


@pytest.mark.parametrize("bad", ["x", "1_000", "+-5", "nan(7)", "0x10", "1,5x", "true"])
def test_a_score_that_is_no_number_late_in_a_csv_is_named_on_its_way_to_parquet(
    bad: str, tmp_path: Path
) -> None:
    source = write(tmp_path / "a.csv", "id;score\n" + "1;0.5\n" * LATE + f"2;{bad}\n" + "3;\n")
    for words in ([], ["--on-missing", "stop"]) if bad == "x" else ([],):
        sentence = refused(tmp_path, *DECIDE, source, *SCORE, "-o", tmp_path / "out.parquet", *words)
        assert sentence == f"column 'score' must hold numbers, got '{bad}' in row {LATE + 1:,}; fix that row"


def spellings() -> Iterator[str]:
    yield from ("inf", "-Infinity", "NaN", "-nan", "+1", " 5 ", ".5", "5.", "1e400", "-1E-3", "+.5", "0")


def test_unusual_numbers_are_scores_in_parquet_as_in_csv(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "id,score\n" + "".join(f"1,{one}\n" for one in spellings()))
    succeeded(*DECIDE, source, *SCORE, "-o", tmp_path / "out.parquet")
    expected = [float(one) for one in spellings()]
    np.testing.assert_array_equal([row["score"] for row in rows_in(tmp_path / "out.parquet")], expected)
    out = succeeded(*DECIDE, source, *SCORE)
    verdicts = [int(row["verdict"]) for row in csv.DictReader(io.StringIO(out))]
    assert [row["verdict"] for row in rows_in(tmp_path / "out.parquet")] == verdicts


@pytest.mark.filterwarnings("always")  # as in a shell
def test_evaluate_counts_missing_scores_as_undecided_and_says_so(tmp_path: Path) -> None:
    rows = [("0.1", 0), ("", 0), ("nan", 1), ("5", 1)]
    source = write(tmp_path / "a.csv", "score,y\n" + "".join(f"{score},{label}\n" for score, label in rows))
    done = invoke("evaluate", CERTIFICATE, source, *SCORE, "--label", "y", "-q")
    assert done.code == 0
    assert one_sentence(done.err) == (
        "note: 2 of 4 rows have no score in column 'score'; they are undecided, which counts as no error"
    )
    same = write(tmp_path / "b.csv", "score,y\n0.1,0\n1,0\n1,1\n5,1\n")
    assert done.out == succeeded("evaluate", CERTIFICATE, same, *SCORE, "--label", "y")
    wrong = write(tmp_path / "c.csv", source.read_text() + "x,1\n")
    assert "got 'x' in row 5" in refused(tmp_path, "evaluate", CERTIFICATE, wrong, *SCORE, "--label", "y")
    wrong = write(tmp_path / "d.csv", source.read_text() + "1,7\n")
    assert "must be 0/1" in refused(tmp_path, "evaluate", CERTIFICATE, wrong, *SCORE, "--label", "y")


def test_it_says_what_it_did_as_it_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke(*DECIDE, table(tmp_path, "csv"), *SCORE, "-o", "out.parquet")
    assert (done.code, done.out, done.err) == (0, "", f"pac-wrap: {SAID} -> out.parquet\n")


def test_missing_scores_may_be_treated_as_in_python() -> None:
    # written twice, because what Python has would load numpy before there is a command
    assert get_args(OnMissing) == ON_MISSING
