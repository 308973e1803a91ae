"""Names from the outside, whatever they hold, are shown or used as names and never run."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.shell import CERTIFICATE, invoke, listing, refused, succeeded, write

COLUMNS = [
    "<script>alert(1)</script>",
    'a"b',
    "a'b",
    "a;b",
    "a,b",
    "a\nb",
    "a`b",
    "a\\b",
    "ünï 異 🎲",
    "[bold]x[/bold]",
    "{x}",
    "$HOME",
    '"; DROP TABLE source; --',
    "'; COPY (SELECT 1) TO 'pwned.csv'; --",
    'x" AS DOUBLE)) FROM source; --',
    "'}, filename = true); --",
    "score' UNION SELECT 1 --",
    "select",
    "*",
    "source",
]
FILES = [
    "with space.csv",
    "it's.csv",
    'double".csv',
    "[ab].csv",
    "[!a].csv",
    "a*b.csv",
    "what?.csv",
    "ünï 異 🎲.csv",
    "{a,b}.csv",
    "%41%.csv",
    "$HOME.csv",
    "back\\slash.csv",
    "new\nline.csv",
    "s3:x.csv",
    "part=1.csv",
    "~x.csv",
    "<script>alert(1)<&#47;script>.csv",
    "'); COPY (SELECT 1) TO 'pwned.csv'; --.csv",
    "'], union_by_name = true); --.csv",
]


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder of the test's own, so that whatever an injection wrote would be found there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_hostile_column_of_scores_is_a_column(name: str, suffix: str, workplace: Path) -> None:
    path = workplace / f"a{suffix}"
    if suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([[name, "y"], ["0.25", 0], ["5.5", 1]])
    else:
        pq.write_table(pa.table([pa.array([0.25, 5.5]), pa.array([0, 1])], names=[name, "y"]), path)
    before = listing(workplace)
    decided = [
        json.loads(line)
        for line in succeeded("decide", CERTIFICATE, path, "--score", name, "--format", "jsonl").splitlines()
    ]
    assert [list(row) for row in decided] == [[name, "y", "verdict", "prediction_set"]] * 2
    assert [(row[name], row["verdict"]) for row in decided] == [(0.25, 0), (5.5, 1)]
    if suffix == ".csv":
        out = succeeded("decide", CERTIFICATE, path, "--score", name, "--format", "csv")
        assert next(csv.reader(io.StringIO(out, newline=""))) == [name, "y", "verdict", "prediction_set"]
    else:
        assert invoke("calibrate", path, "--score", name, "--label", "y").code == 1
    assert listing(workplace) == before


@pytest.mark.parametrize("name", COLUMNS)
def test_a_hostile_column_of_labels_is_a_column(name: str, workplace: Path) -> None:
    pq.write_table(pa.table([pa.array([0.25, 5.5]), pa.array([0, 1])], names=["s", name]), "a.parquet")
    before = listing(workplace)
    assert "0 of 2" in succeeded("evaluate", CERTIFICATE, "a.parquet", "--score", "s", "--label", name)
    assert listing(workplace) == before


@pytest.mark.parametrize("name", COLUMNS)
def test_a_hostile_column_that_is_not_there_is_named_in_one_sentence(name: str, workplace: Path) -> None:
    write(workplace / "a.csv", "plain,y\n1,0\n")
    sentence = refused(workplace, "calibrate", "a.csv", "--score", "plain", "--label", name)
    assert f"there is no column {name!r}" in sentence


@pytest.mark.parametrize("name", COLUMNS)
def test_other_hostile_columns_are_kept(name: str, workplace: Path) -> None:
    pq.write_table(pa.table([pa.array(["x"]), pa.array([5.5])], names=[name, "s"]), "a.parquet")
    (line,) = succeeded("decide", CERTIFICATE, "a.parquet", "--score", "s", "--format", "jsonl").splitlines()
    assert json.loads(line) == {name: "x", "s": 5.5, "verdict": 1, "prediction_set": "{1}"}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_a_file(name: str, workplace: Path) -> None:
    write(workplace / name, "score\n0.25\n5.5\n")
    write(workplace / "a.csv", "score\n-9\n")  # what a pattern could match instead
    before = listing(workplace)
    for path in (name, workplace / name):
        out = succeeded("decide", CERTIFICATE, path, "--score", "score", "--format", "jsonl")
        assert [json.loads(line)["verdict"] for line in out.splitlines()] == [0, 1]
    assert listing(workplace) == before


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_output_is_a_file(name: str, workplace: Path) -> None:
    write(workplace / "in.csv", "score\n5.5\n")
    succeeded("decide", CERTIFICATE, "in.csv", "--score", "score", "-o", name)
    assert sorted(path.name for path in workplace.iterdir()) == sorted(["in.csv", name])
    assert (workplace / name).read_text() == "score,verdict,prediction_set\n5.5,1,{1}\n"


@pytest.mark.parametrize("name", [name for name in FILES if "\n" not in name])
def test_a_hostile_file_that_is_not_there_is_named_in_one_sentence(name: str, workplace: Path) -> None:
    sentence = refused(workplace, "decide", CERTIFICATE, f"nowhere/{name}", "--score", "score")
    assert " ".join(f"nowhere/{name}".split()) in sentence


def test_hostile_cells_are_kept_as_they_are(workplace: Path) -> None:
    cells = [
        "<script>alert(1)</script>",
        "'; DROP TABLE source; --",
        '"quoted"',
        "a,b",
        "line\nbreak",
        "[red]x",
    ]
    with (workplace / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["cell", "score"], *([cell, "1.5"] for cell in cells)])
    out = succeeded("decide", CERTIFICATE, "a.csv", "--score", "score", "--format", "jsonl")
    assert [json.loads(line)["cell"] for line in out.splitlines()] == cells


def test_markup_in_a_wrong_value_is_shown_as_it_is() -> None:
    done = invoke("show", CERTIFICATE, "--format", "[red]x[/red]")
    assert done.code == 2
    assert "[red]x[/red]" in done.err
