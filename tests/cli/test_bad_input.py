"""Bad tables and bad certificates: one sentence, exit code 2, and nothing written or left behind."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.shell import CERTIFICATE, invoke, parquet, refused, write

LATE = 30_000
TEXT = b"score,label\n0.1,0\n0.9,1\n"
Ask = Callable[..., str]


def asker(name: str, tmp_path: Path) -> Ask:
    """Return what runs a command on tables, with outputs asked for, and gives its refusal."""
    certificate = [] if name in ("calibrate", "compare") else [CERTIFICATE]
    label = [] if name == "decide" else ["--label", "label"]
    output = {
        "calibrate": ["-o", tmp_path / "out.json"],
        "decide": ["--on-missing", "stop", "-o", tmp_path / "out.csv"],
    }

    def run(*tables: Path, stdin: bytes | None = None) -> str:
        options = ["--score", "score", *label, *output.get(name, [])]
        return refused(tmp_path, name, *certificate, *tables, *options, stdin=stdin)

    return run


# the other commands read their tables as calibrate does
@pytest.fixture(params=["calibrate", "decide"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    return asker(request.param, tmp_path)


@pytest.mark.parametrize("name", ["calibrate", "decide", "evaluate", "verify", "compare"])
def test_every_command_refuses_bad_tables(name: str, tmp_path: Path) -> None:
    ask = asker(name, tmp_path)
    assert "there is no file" in ask(tmp_path / "missing.csv")
    assert "there is no column 'score'" in ask(write(tmp_path / "1.csv", "x,label\n1,0\n"))
    assert "got 'x' in row 2" in ask(write(tmp_path / "2.csv", "score,label\n1,0\nx,1\n"))
    if name != "evaluate":  # which counts it among the undecided
        assert "the first in row 2" in ask(write(tmp_path / "3.csv", "score,label\n1,0\nnan,1\n"))
    assert "has no rows" in ask(write(tmp_path / "4.csv", "score,label\n"))


def test_a_missing_file_is_refused_with_the_nearest(ask: Ask, tmp_path: Path) -> None:
    write(tmp_path / "scores.csv", "score,label\n1,0\n")
    sentence = ask(tmp_path / "scroes.csv")
    assert sentence == f"there is no file {tmp_path}/scroes.csv; did you mean {tmp_path}/scores.csv?"


def test_a_folder_is_refused(ask: Ask, tmp_path: Path) -> None:
    assert f"{tmp_path} is a folder" in ask(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".csv.gz", ".npy"])
def test_an_empty_file_is_refused(suffix: str, ask: Ask, tmp_path: Path) -> None:
    path = write(tmp_path / f"a{suffix}", "")
    assert ask(path) == f"{path} is empty; it needs a header and rows"


@pytest.mark.parametrize("kind", ["header", "header without an end", "parquet", "npz"])
def test_a_table_without_rows_is_refused(kind: str, ask: Ask, tmp_path: Path) -> None:
    if kind == "parquet":
        path = parquet(tmp_path / "a.parquet", "SELECT 1.0 AS score, 1 AS label WHERE false")
    elif kind == "npz":
        path = tmp_path / "a.npz"
        np.savez(path, score=np.array([]), label=np.array([]))
    else:
        path = write(tmp_path / "a.csv", "score,label" + ("\n" if kind == "header" else ""))
    assert ask(path) == f"the table {path} has no rows; pass one with scores"


def test_empty_standard_input_is_refused(ask: Ask) -> None:
    assert ask("-", stdin=b"").startswith("standard input is empty")


def test_a_missing_column_is_refused_with_the_nearest_and_all(ask: Ask, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "scores,label,<b>x</b>\n1,0,2\n")
    assert ask(path) == (
        "there is no column 'score'; did you mean 'scores'? the columns are scores, label, <b>x</b>"
    )


def test_a_column_in_other_letters_is_suggested(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "SCORE,other\n1,0\n")
    sentence = refused(tmp_path, "decide", CERTIFICATE, path, "--score", "score")
    assert "did you mean 'SCORE'?" in sentence


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_text_in_the_score_column_is_refused_with_its_row(late: bool, ask: Ask, tmp_path: Path) -> None:
    before = LATE if late else 1
    path = write(tmp_path / "a.csv", "score,label\n" + "1,0\n" * before + "ab'c,1\n2,1\n")
    sentence = ask(path)
    assert "column 'score' must hold numbers, got \"ab'c\" in" in sentence
    assert f"row {before + 1:,};" in sentence


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("0,6792", "write decimals with a point, not with a comma"),
        ("-1,5E-3", "write decimals with a point, not with a comma"),
        ("NA", "leave the cell empty if the score is missing"),
        ("1,000,000", "fix that row"),
    ],
)
def test_a_number_of_another_country_is_refused_with_what_to_do(
    cell: str, remedy: str, ask: Ask, tmp_path: Path
) -> None:
    sentence = ask(write(tmp_path / "a.csv", f"score;label\n{cell};0\n0;1\n"))
    assert sentence == f"column 'score' must hold numbers, got '{cell}' in row 1; {remedy}"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv.gz", TEXT, "is not packed, though its name says so; rename it, without .gz"),
        (
            "a.csv",
            gzip.compress(TEXT, mtime=0),
            "is packed by gzip; unpack it first, for example with gunzip",
        ),
        ("a.csv", b"PAR1" + TEXT, "is Parquet; give it a name that ends in .parquet"),
        ("a.csv", b"PK\x03\x04" + TEXT, "is an archive or a spreadsheet; save the table in it as CSV first"),
        (
            "a.csv",
            TEXT.decode().encode("utf-16"),
            "is UTF-16; convert it first",
        ),
        (
            "a.csv",
            TEXT.decode().encode("utf-16-le"),
            "the header is not UTF-8, or holds a NUL byte",
        ),
        ("a.parquet", TEXT, "check that the file is complete and that its ending fits"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_with_what_to_do(
    name: str, content: bytes, what: str, ask: Ask, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert what in ask(path)


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_text_in_the_scores_of_json_lines_is_refused_with_its_row(
    late: bool, ask: Ask, tmp_path: Path
) -> None:
    before = LATE if late else 1
    rows = '{"score": 1, "label": 0}\n' * before + '{"score": "abc", "label": 1}\n'
    sentence = ask(write(tmp_path / "a.jsonl", rows))
    assert "abc" in sentence
    assert f"{before + 1:,}" in sentence or f"{before + 1}" in sentence
    assert "sample_size" not in sentence


def test_text_in_a_parquet_file_is_refused_with_its_row(ask: Ask, tmp_path: Path) -> None:
    query = "SELECT * FROM (VALUES ('1', 0), ('x', 1)) t(score, label)"
    sentence = ask(parquet(tmp_path / "a.parquet", query))
    assert sentence == "column 'score' must hold numbers, got 'x' in row 2; fix that row"


@pytest.mark.parametrize("missing", ["nan", "NaN", ""])
@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_missing_scores_are_counted_with_the_first_row(
    missing: str, late: bool, ask: Ask, tmp_path: Path
) -> None:
    before = LATE if late else 1
    rows = "1,0\n" * before + f"{missing},1\n2,1\n{missing},0\n"
    sentence = ask(write(tmp_path / "a.csv", f"score,label\n{rows}"))
    assert sentence.startswith(
        f"column 'score' must not be empty or NaN, got 2 of {before + 3:,}, the first in row {before + 1:,};"
    )


@pytest.mark.parametrize("value", ["NULL::DOUBLE", "'nan'::FLOAT", "NULL::INTEGER", "NULL::VARCHAR"])
def test_missing_scores_in_parquet_are_refused(value: str, ask: Ask, tmp_path: Path) -> None:
    sentence = ask(parquet(tmp_path / "a.parquet", f"SELECT {value} AS score, 1 AS label"))
    assert "must not be empty or NaN, got 1 of 1, the first in row 1" in sentence


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_nan_in_parquet_is_found_though_the_statistics_of_the_file_leave_it_out(
    kind: str, ask: Ask, tmp_path: Path
) -> None:
    # Arrow, Polars and Spark write the range of the other numbers, which DuckDB takes for that of all
    scores = pa.array(np.array([0.25, np.nan, 1.0, 3.0], dtype=kind))
    pq.write_table(
        pa.table([scores, pa.array([0, 0, 1, 1])], names=["score", "label"]), tmp_path / "a.parquet"
    )
    sentence = ask(tmp_path / "a.parquet")
    assert "must not be empty or NaN, got 1 of 4, the first in row 2" in sentence


def test_a_csv_file_without_any_score_is_refused_as_such(ask: Ask, tmp_path: Path) -> None:
    sentence = ask(write(tmp_path / "a.csv", "score,label\n,0\n,1\n"))
    assert "must not be empty or NaN, got 2 of 2, the first in row 1" in sentence


@pytest.mark.parametrize("kind", ["[1.5]", "{'a': 1}", "DATE '2024-01-01'", "INTERVAL 1 DAY", "'x'::BLOB"])
def test_a_score_column_of_another_type_is_refused_with_its_type(kind: str, ask: Ask, tmp_path: Path) -> None:
    sentence = ask(parquet(tmp_path / "a.parquet", f"SELECT {kind} AS score, 1 AS label"))
    assert sentence.startswith("column 'score' must hold numbers, but its type is ")


@pytest.mark.parametrize(
    "header", ["score,label,score", "score,label,Score", "score,label,LABEL", "x,score,label,x"]
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_columns_of_one_name_are_refused(header: str, suffix: str, ask: Ask, tmp_path: Path) -> None:
    path, names = tmp_path / f"a{suffix}", header.split(",")
    if suffix == ".csv":
        write(path, f"{header}\n" + f"{','.join('1' for _ in names)}\n" * 2)
    else:
        pq.write_table(pa.table([pa.array([1.0, 1.0]) for _ in names], names=names), path)
    assert "two columns" in ask(path)


def test_two_columns_of_one_name_are_refused_in_any_file(ask: Ask, tmp_path: Path) -> None:
    one = write(tmp_path / "1.csv", "score,label\n1,0\n")
    two = write(tmp_path / "2.csv", "score,score,label\n1,2,0\n")
    assert f"{two} has two columns named 'score'" in ask(one, two)


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_a_file_that_is_not_utf8_is_refused_where_it_cannot_be_kept(late: bool, tmp_path: Path) -> None:
    before = LATE if late else 1
    path = write(tmp_path / "a.csv", b"score,label\n" + b"1,0\n" * before + b"2,\xe9\n")
    row = f"{path}: row {before + 1:,} is not UTF-8"
    assert asker("calibrate", tmp_path)(path).startswith(row)
    decide = ["decide", CERTIFICATE, path, "--score", "score"]
    for words in (["--format", "jsonl"], ["-o", tmp_path / "out.parquet"]):
        assert refused(tmp_path, *decide, *words).startswith(row)
    assert invoke(*decide, "-o", tmp_path / "out.csv").code == 0
    assert (tmp_path / "out.csv").read_bytes().endswith(b"2,\xe9,1,{1}\n")


def test_a_parquet_file_cut_short_is_refused(ask: Ask, tmp_path: Path) -> None:
    whole = parquet(tmp_path / "a.parquet", "SELECT i + 0.5 AS score, i % 2 AS label FROM range(999) t(i)")
    content = whole.read_bytes()
    for size in (3, 8, len(content) // 2, len(content) - 1):
        assert "a.parquet" in ask(write(whole, content[:size]))


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl.gz"])
def test_a_packed_file_cut_short_is_refused(suffix: str, ask: Ask, tmp_path: Path) -> None:
    row = "1.5,0\n" if suffix == ".csv.gz" else '{"score": 1.5, "label": 0}\n'
    header = "score,label\n" if suffix == ".csv.gz" else ""
    packed = gzip.compress((header + "".join(row.replace("5", str(i)) for i in range(40_000))).encode())
    assert f"a{suffix}" in ask(write(tmp_path / f"a{suffix}", packed[: len(packed) // 2]))
    assert f"b{suffix}" in ask(write(tmp_path / f"b{suffix}", header + row))


def test_a_file_called_interrupted_is_not_taken_for_ctrl_c(ask: Ask, tmp_path: Path) -> None:
    path = write(tmp_path / "interrupted.parquet", "no table at all")
    assert str(path) in ask(path)


def test_json_lines_cut_short_are_refused(ask: Ask, tmp_path: Path) -> None:
    assert "a.jsonl" in ask(write(tmp_path / "a.jsonl", '{"score": 1, "label": 0}\n{"score": 2, "la'))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.npy", "a.npz", "a.csv.gz"])
def test_noise_is_refused(name: str, ask: Ask, tmp_path: Path) -> None:
    ask(write(tmp_path / name, np.random.default_rng(0).bytes(5000)))


def test_an_unknown_ending_and_mixed_formats_are_refused(ask: Ask, tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.csv", "score,label\n1,0\n"), write(tmp_path / "b.xlsx", "x")
    assert "no known format" in ask(two)
    parquet(tmp_path / "c.parquet", "SELECT 1.0 AS score, 0 AS label")
    assert "different formats" in ask(one, tmp_path / "c.parquet")


@pytest.mark.skipif(os.name != "posix", reason="names are bytes only on POSIX")
def test_a_name_that_is_not_utf8_is_refused_in_one_sentence(ask: Ask, tmp_path: Path) -> None:
    ask(write(tmp_path / os.fsdecode(b"a\xff.csv"), "score,label\n1,0\nx,1\n"))


CERTIFICATES: dict[str, tuple[str | bytes, str]] = {
    "not JSON": ("hello", "this is no certificate: not JSON"),
    "empty": ("", "this is no certificate: not JSON"),
    "bytes": (b"\xff\xfe\x00", "this is no certificate: not JSON"),
    "a list": ("[]", "this is no certificate: not a JSON object; is it the right file?"),
    "something else": ("{}", "is it the right file?"),
    "edited": (CERTIFICATE.read_text().replace("0.46", "0.47", 1), "changed after it was written"),
    "newer": (json.dumps(json.loads(CERTIFICATE.read_text()) | {"schema": 4}), "update pac-wrap-ad"),
    "deep": ("[" * 100_000, "more than 100 of the character '['"),
}
USES = {
    "show": [],
    "sql": [],
    "decide": ["a.csv", "--score", "score", "-o", "out.csv"],
    "evaluate": ["a.csv", "--score", "score", "--label", "label"],
    "verify": ["a.csv", "--score", "score", "--label", "label"],
}


# every command loads its certificate as show does
@pytest.mark.parametrize(
    ("use", "kind"),
    [
        *(("show", kind) for kind in (*CERTIFICATES, "missing", "a folder")),
        *((use, kind) for use in USES if use != "show" for kind in ("edited", "missing")),
    ],
)
def test_a_certificate_that_cannot_be_trusted_is_refused(
    use: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", "score,label\n1,0\n2,1\n")
    path = tmp_path / "certificate.json"
    content, words = CERTIFICATES.get(kind, ("", f"cannot open {path}"))
    if kind in CERTIFICATES:
        write(path, content)
    elif kind == "a folder":
        path.mkdir()
    assert words in refused(tmp_path, use, path, *USES[use])


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    done = invoke("--debug", "show", tmp_path / "missing.json")
    assert done.out == ""
    assert "Traceback (most recent call last)" in done.err
    assert "FileNotFoundError" in done.err
    assert done.code == 2
