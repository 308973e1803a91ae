"""What is said about files before an engine reads them."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from pac_wrap.engines.files import InspectedFiles, Layout, inspect
from pac_wrap.engines.spark import base_type
from pac_wrap.errors import InputError
from support.strategies import refusal

pa = pytest.importorskip("pyarrow")


def write(file: Path, text: str) -> Path:
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def parquet(file: Path, **columns: Any) -> Path:
    from pyarrow.parquet import write_table

    write_table(pa.table(columns), file)
    return file


def test_csv_files_are_counted_and_read_together_if_they_look_alike(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a.csv", "s,y\n1,0\n2,1\n"),
        write(tmp_path / "b.csv", '"s","y"\r\n"3","0"\r\n\r\n'),
        write(tmp_path / "c.csv", "y;s\n0;4\n"),
        write(tmp_path / "d.csv.gz", "s,y\n5,1\n"),
    ]
    found = inspect(files, "read_csv", ("s", "y"))
    assert found.rows == 5
    assert found.by_layout == {
        Layout(("s", "y"), ","): files[:2],
        Layout(("y", "s"), ";"): files[2:3],
        Layout(("s", "y"), ",", packed=True): files[3:],
    }
    assert inspect(files[:1], "read_csv", ("s", "y"), ",").rows == 2


def test_parquet_files_are_counted_and_read_together_if_their_types_are_the_same(tmp_path: Path) -> None:
    files = [
        parquet(tmp_path / "a.parquet", s=[1.0, 2.0], y=[0, 1]),
        parquet(tmp_path / "b.parquet", id=["x"], y=[0], s=[1.0]),
        parquet(tmp_path / "c.parquet", s=pa.array([1.0], pa.float32()), y=[True]),
    ]
    found = inspect(files, "read_parquet", ("s", "y"))
    assert found.rows == 4
    assert found.by_layout == {
        Layout(types=("double", "int64")): files[:2],
        Layout(types=("float", "bool")): files[2:],
    }


def test_json_may_be_lines_or_an_array(tmp_path: Path) -> None:
    row = '{"s": 1, "y": 0}'
    files = [
        write(tmp_path / "a.jsonl", row),
        write(tmp_path / "b.json", f"\ufeff \n[\n{row}]"),
        write(tmp_path / "c.jsonl.gz", row),
        write(tmp_path / "long.json", '[{"s": 1, "note": "' + "x" * 300_000 + '", "y": 0}]'),
    ]
    found = inspect(files, "read_json", ("s", "y"))
    assert found.rows is None
    assert found.by_layout == {
        Layout(): files[:1],
        Layout(array=True): [files[1], files[3]],
        Layout(packed=True): files[2:3],
    }


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "s,x\n1,0\n", "there is no column 'y'; the columns are s, x"),
        ("a.csv", "s,y,S\n1,0,1\n", "{} has two columns named 's'; rename one of them"),
        ("a.csv", "s,y\n", "the table {} has no rows; pass one with scores"),
        ("a.csv", "s,y\n1,0,2\n", "{}: row 1 has 3 cells, but the header has 2; fix that row"),
        ("a.csv", 's,y\n1,0\n1,"a\nb"\n', "{} has cells with line breaks, which only DuckDB reads; remove"),
        ("a.csv", 's,y\n1,"0"1\n', "{}: row 1 is not CSV: "),
        ("a.jsonl", '{"s": 1, "x": 0}', "there is no column 'y'; the columns are s, x"),
        ("a.parquet", "PAR1 and no more", "cannot read {}: "),
    ],
)
def test_what_no_engine_would_read_rightly_is_refused(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    file = write(tmp_path / name, text)
    readers = {"csv": "read_csv", "jsonl": "read_json", "parquet": "read_parquet"}
    reader = readers[name.split(".")[1]]
    said = refusal(lambda: inspect([file], reader, ("s", "y")))
    assert said.startswith(sentence.format(file))
    assert "\n" not in said


def test_columns_must_be_in_all_files(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.csv", "s,y\n1,0\n"), write(tmp_path / "b.csv", "s,z\n1,0\n")]
    assert "b.csv has no column 'y', which other files have" in refusal(
        lambda: inspect(files, "read_csv", ("s", "y"))
    )
    other = [parquet(tmp_path / "a.parquet", s=[1.0], y=[0]), parquet(tmp_path / "b.parquet", s=[1.0])]
    assert "b.parquet has no column 'y', which other files have" in refusal(
        lambda: inspect(other, "read_parquet", ("s", "y"))
    )
    twins = parquet(tmp_path / "c.parquet", s=[1.0], S=[1.0], y=[0])
    assert "has two columns named 's'" in refusal(lambda: inspect([twins], "read_parquet", ("s", "y")))
    assert "cannot be both" in refusal(lambda: inspect(files, "read_csv", ("s", "s")))


def test_another_number_of_rows_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "s,y\n1,0\n2,1\n")
    found = inspect([file], "read_csv", ("s", "y"))
    found.expect(2)
    said = refusal(lambda: found.expect(1))
    assert said == f"{file} has 2 rows, but 1 were read; do not change it while it is read"
    InspectedFiles((file,), "read_json", ("s", "y"), {}).expect(7)


def test_a_row_is_named_if_the_engine_refuses_one(tmp_path: Path) -> None:
    found = inspect([write(tmp_path / "a.csv", "s,y\n1,0\nx,1\n")], "read_csv", ("s", "y"))
    with (
        pytest.raises(InputError, match=r"^column 's' must hold numbers, got 'x' in row 2; fix that row$"),
        found.naming_rows(),
    ):
        raise InputError("some row is wrong")
    sound = inspect([write(tmp_path / "b.csv", "s,y\n1,0\n2,1\n")], "read_csv", ("s", "y"))
    with pytest.raises(InputError, match=r"^the labels are wrong$"), sound.naming_rows():
        raise InputError("the labels are wrong")


def test_a_type_of_spark_is_known_without_its_length() -> None:
    assert (base_type("varchar(9)"), base_type("decimal(12,2)")) == ("varchar", "decimal")
