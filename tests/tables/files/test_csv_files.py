"""What is said of a CSV file before an engine reads it."""

import gzip
from pathlib import Path

import pytest

from pac_wrap.errors import InputError
from pac_wrap.tables.files import csv_files
from pac_wrap.tables.files.csv_files import survey
from pac_wrap.tables.files.text_format import check_delimiter
from pac_wrap.tables.table import open_table
from support.examples import examples
from support.generated_csv import generate
from support.shell import write
from support.strategies import refusal
from support.tables import scores_of

pytestmark = pytest.mark.usefixtures("each_survey")


def set_block(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let files be looked at so many bytes at a time."""
    monkeypatch.setattr(csv_files, "_BLOCK", size)


@pytest.mark.parametrize(
    ("text", "rows", "end"),
    [
        ("s,y\n1,0\n2,1\n", 2, "\n"),
        ("s,y\n1,0\n2,1", 2, "\n"),
        ("s,y\n\n\n1,0\n\n", 1, "\n"),
        ("s,y\r\n1,0\r\n\r\n\r\n2,1\r\n", 2, "\r\n"),
        ("\ufeffs,y\n#1,'0\n", 1, "\n"),
        ("s,y\n", 0, "\n"),
        ("s,y", 0, "\n"),
        ("s,y\n\u2028,\u0085\n", 1, "\n"),
        ('s,y\n"1,5""",0\n', "C", "\n"),
        ('"s",y\r\n1,"a\nb"\r\n', "C", "\r\n"),
        ('s,y\n1,a"b\n', None, "\n"),
        ('s,y\n1,"a" \n', None, "\n"),
        ("s,y\n1,0\r\n", None, "\n"),
        ("s,y\r\n1,0\r", None, "\n"),
        ("\ns,y\n1,0\n", None, "\n"),
        ("s,y\n1,\0\n", None, "\n"),
        (b"s,y\n1,\xe9\n", None, "\n"),
        (",".join(["s", "y", *map(str, range(999))]) + "\n", None, "\n"),
    ],
)
def test_rows_are_counted_if_every_engine_reads_them_alike(
    text: str | bytes,
    rows: int | str | None,
    end: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    each_survey: str,
) -> None:
    if rows == "C":  # quotes are looked at in C alone
        rows, end = (1, end) if each_survey == "native" else (None, "\n")
    path = write(tmp_path / "a.csv", text)
    archive = write(tmp_path / "a.csv.gz", gzip.compress(path.read_bytes()))
    for block in (1, 2, 3, 1 << 20):
        set_block(monkeypatch, block)
        found = survey(path, ["s", "y"], None)
        assert (found.rows, found.line_end, found.header.delimiter) == (rows, end, ","), block
        packed = survey(archive, ["s", "y"], None)
        assert (packed.rows, packed.packing) == (rows, "gzip"), block


@pytest.mark.hypothesis
def test_cut_anywhere_a_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(examples(200)):
        path = write(tmp_path / "a.csv", generate(seed)[0])
        said = []
        for block in (1 << 20, 5):
            set_block(monkeypatch, block)
            try:
                said.append(repr(survey(path, ["s"], None)))
            except InputError as error:
                said.append(str(error))
        assert said[0] == said[1], seed


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("s;y\n1,5;0\n", ";"),
        ("s\ty\n1\t0\n", "\t"),
        ("s|y|a,b,c,d\n1|0|x\n", "|"),
        ("a,b;s;y\n1;2;3\n", ";"),
        ('"s","y"\n', ","),
        ("a;b,c,d\n", ","),
        ("a,b;c;d\n", ";"),
    ],
)
def test_the_delimiter_is_the_first_with_which_the_columns_are_found(
    text: str, delimiter: str, tmp_path: Path
) -> None:
    assert survey(write(tmp_path / "a.csv", text), ["s", "y"], None).header.delimiter == delimiter


def test_a_delimiter_that_is_given_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "s:a;s\n1:2;3\n")
    assert survey(path, ["s"], None).header.names == ("s:a", "s")
    assert survey(path, ["s"], ":").header.names == ("s", "a;s")
    for wrong in ("", "ab", '"', "\n", "a", "1", ".", "é"):
        assert "the delimiter must be one character" in refusal(check_delimiter, wrong)


def test_another_number_of_rows_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "s\n1\n2\n")
    with open_table([str(path)], ["s"]) as table:
        write(path, "s\n1\n2\n3\n")
        assert "has 2 rows, but 3 were read" in refusal(lambda: scores_of(table, "s"))


def test_a_short_row_and_a_long_one_do_not_make_up_for_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "s,y,z\n" + "1,0,x\n" * 5_000 + "1,0\n1,0,x,\n")
    assert survey(path, ["s"], None).rows == 5_002
    with open_table([str(path)], ["s"]) as table:
        said = refusal(lambda: scores_of(table, "s"))
    assert said == f"{path}: row 5,001 has 2 cells, but the header has 3; fix that row"
