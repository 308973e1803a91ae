"""CSV files looked at in C: what they hold, and that DuckDB then writes what the longer way writes."""

import csv
import io
import random
import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pac_wrap import Certificate
from pac_wrap.errors import InputError
from pac_wrap.ranks import compiled
from pac_wrap.tables.decide import decide_table
from pac_wrap.tables.files import csv_files, text_format
from pac_wrap.tables.files.csv_files import _KINDS, count_rows, kind_of, read_score_cells
from pac_wrap.tables.table import Table, found_files, open_found
from support.csv_readers import cases
from support.examples import examples
from support.shell import CERTIFICATE, write
from support.tables import empty_database

RULE = Certificate.load(CERTIFICATE)
pytestmark = pytest.mark.skipif(not csv_files.library().exists(), reason="cells.c was not compiled")
CELLS = st.lists(
    st.sampled_from(
        [*',"\n\r', "\r\n", '""', *"0019-+.ee", " ", "x", "é", "\0", "12345678901234567", ",", "\n"]
    ),
    max_size=40,
).map("".join)


def spelled(column: list[str]) -> str:
    """Return what a column is, by the spellings that the longer way looks for."""
    filled = [cell for cell in column if cell]
    fits = (kind for kind, spelling in _KINDS.items() if all(re.fullmatch(spelling, cell) for cell in filled))
    return next(fits, "VARCHAR") if filled else "VARCHAR"


@given(text=CELLS, block=st.sampled_from([1, 7, 1 << 20]))
@example(text='1,"a\nb"\n2,"c', block=1)
@example(text='"",""\n\n1,2', block=1)
def test_rows_without_doubt_are_those_of_csv(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_BLOCK", block)
        found = count_rows(io.BytesIO(f"a,b\n{text}".encode()), ",", 2)
    if found is None:
        return
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    assert all(len(row) == 2 for row in rows)
    assert found["rows"] == len(rows)
    assert found["quoted"] == ('"' in text)
    assert found["broken"] == any(mark in cell for row in rows for cell in row for mark in "\r\n")
    assert [kind_of(one) for one in found["spelled"]] == [spelled([row[i] for row in rows]) for i in range(2)]


def test_most_quotes_are_no_doubt() -> None:
    for text in ('a,b\n"x, y",1\n"say ""hi""",\n', 'a,b\r\n"","1.5"\r\n\r\n"\r\n",2', '"a","b"'):
        found = count_rows(io.BytesIO(text.encode()), ",", 2)
        assert found is not None, text
        assert found["quoted"]
    for text in ('a,b\nx"y,1\n', 'a,b\n "x",1\n', 'a,b\n"x"y,1\n', 'a,b\n"x,1\n', "a,b\n1,2\n1,2\r\n", ""):
        assert count_rows(io.BytesIO(text.encode()), ",", 2) is None, text


def written(file: Path, target: Path, on_missing: Any = "abstain") -> Any:
    """Return the types, rows and counts that `decide` writes as Parquet, or its refusal."""
    with found_files([str(file)]) as found:
        try:
            with open_found(found, ["s"], None, whole=True, output=target) as table:
                counted = decide_table(table, RULE, "s", target, "FORMAT parquet", on_missing)
        except InputError as error:
            return str(error)
    with empty_database() as connection:
        read = connection.sql(f"FROM read_parquet('{target}')")
        # as texts, since NaN is not itself
        return list(map(str, read.types)), repr(read.fetchall()), counted


def both_ways(file: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is written with the help of C, and without."""
    found = []
    for kernels in ("", "plain"):
        monkeypatch.setenv("PAC_WRAP_KERNELS", kernels)
        csv_files.functions.cache_clear()
        found.append(written(file, target))
    csv_files.functions.cache_clear()
    return found


@pytest.mark.hypothesis
def test_with_c_and_without_the_same_is_written_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, files = 0, examples(300)
    for content, made, _ in cases(range(5000, 5000 + files)):
        ours, longer = both_ways(write(tmp_path / "a.csv", content), tmp_path / "out", monkeypatch)
        assert ours == longer, made
        read += not isinstance(ours, str)
    assert read > files // 6


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", "-0", "", '"7"', "9" * 18], "BIGINT"),
        (["1", "2.50", "1e5", "-0.0", '"3"', "0." + "0" * 400 + "1"], "DOUBLE"),
        (["007", "1"], "VARCHAR"),
        (["9" * 18, "1.5"], "VARCHAR"),
        (["1", "1E5"], "VARCHAR"),
        (["1e100"], "VARCHAR"),
        (["5.", "1"], "VARCHAR"),
        (["1", " 2"], "VARCHAR"),
        (['""', ""], "VARCHAR"),
        ([*[""] * 20_000, "1.5"], "DOUBLE"),
        ([*["1"] * 20_000, "x"], "VARCHAR"),
    ],
)
def test_a_column_of_numbers_becomes_one(
    column: list[str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.csv", "\n".join(["s,x", *(f"0.1,{cell}" for cell in column), ""]))
    for types, _, _ in both_ways(file, tmp_path / "out", monkeypatch):
        assert types[:2] == ["DOUBLE", kind]


def test_scores_are_those_of_python_to_the_last_bit(tmp_path: Path) -> None:
    texts = [
        "5e-324",
        "2.2250738585072011e-308",
        "9007199254740993",
        "0.1",
        "1e23",
        "-0.0",
        "17976931348623157e292",
    ]
    texts += [
        "0." + "123456789" * 9,
        "8.5e-3",
        "179769313486231580793e289",
        " 7 ",
        "+1e400",
        "-inf",
        "nan",
        "",
    ]
    for some in (texts[:9], texts):
        file = write(tmp_path / "a.csv", "\n".join(["s,x", *(f'{text},"a,b"' for text in some), ""]))
        with found_files([str(file)]) as found, open_found(found, ["s"], whole=True) as table:
            scores = [row[0] for row in table.rows(f"SELECT s FROM {table.everything}")]
        assert list(map(repr, scores)) == [repr(float(text)) if text else "None" for text in some]


def test_where_threads_do_not_meet_one_reads_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_format, "LONGEST", 250)
    monkeypatch.setattr(csv_files, "_BUFFER", 1333)
    again: list[Table] = []
    look = Table.look_at_all_cells

    def looked(table: Table) -> None:
        again.append(table)
        look(table)

    monkeypatch.setattr(Table, "look_at_all_cells", looked)
    texts = ["x, y", "", 'say "hi"', '"', ",,,", '",",1', '""', 'z,"2"', "z" * 50]
    for seed in range(6):
        draw = random.Random(seed)
        rows = [[repr(draw.random()), draw.choice(texts), str(place)] for place in range(3000)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["s", "t", "i"], *rows])
        types, _, _ = written(write(tmp_path / "a.csv", text.getvalue()), tmp_path / "out")
        assert types[:3] == ["DOUBLE", "VARCHAR", "BIGINT"]
        with empty_database() as connection:
            cells_ = connection.execute(f"SELECT s, t, i FROM read_parquet('{tmp_path / 'out'}')").fetchall()
        assert cells_ == [(float(score), cell or None, int(place)) for score, cell, place in rows]
    assert again


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("n > 18", "n > 19"),
        ("*start == '0'", "*start == '1'"),
        ("end == fraction ? NOT_PLAIN : 0", "0"),
        ("end - exponent > 2", "end - exponent > 3"),
        ("if (at[1] != '\"')", "if (1)"),
        ("column + 1 != width", "0"),
        ("counts[BLANK]++;", ""),
        ("broken += lines", "broken += 0"),
        ("*at == 0", "*at == 1"),
    ],
)
def test_a_slip_in_the_source_is_noticed(right: str, wrong: str, tmp_path: Path) -> None:
    text = csv_files._SOURCE.read_text()
    assert right in text
    source, library = tmp_path / "cells.c", tmp_path / "cells-0.so"
    source.write_text(text.replace(right, wrong, 1))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(OSError, match="fails its test: look_at_rows"):
        compiled.load(library)


DIGITS = st.text("0123456789", min_size=1, max_size=21)
SPELLED = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map("{:.19g}".format),
    st.builds("{}{}.{}e{}".format, st.sampled_from(["", "-", "+"]), DIGITS, DIGITS, st.integers(-30, 25)),
    # halfway between two doubles, where the even one is right
    st.builds(
        lambda half, down: f"{Decimal(2 * half + 1) / 2**down}", st.integers(2**52, 2**53), st.integers(0, 8)
    ),
    st.sampled_from(["", "nan", "-inf", ".", "+", "1e", "1_0", " 1", "0x1", "-.5", "5.", "0e99999", "1e-28"]),
)


@given(st.lists(SPELLED, min_size=1, max_size=20), st.integers(0, 2))
def test_a_score_is_read_as_python_reads_it_or_left_to_python(spellings: list[str], place: int) -> None:
    rows = [["a", "", "é"] for _ in spellings]
    for row, cell in zip(rows, spellings, strict=True):
        row[place] = cell
    lines = [",".join(row) for row in rows]
    found = read_score_cells("\n\n".join(lines).encode(), 3, place)
    assert found is not None
    doubts = dict(found.doubts)
    for at, cell in enumerate(spellings):
        start, end = found.spans[at].tolist()
        assert found.text[start:end].decode() == lines[at]
        assert doubts.get(at, cell) == cell
        assert at in doubts or float(found.scores[at]).hex() == float(cell).hex()
    usual = [at for at, cell in enumerate(spellings) if re.fullmatch(r"-?\d{1,16}(\.\d{1,3})?", cell)]
    assert not doubts.keys() & set(usual)


@pytest.mark.parametrize("text", [b"1,2\n3\n", b"1,2,3\n", b"1\n"])
def test_a_row_of_another_number_of_cells_is_left_to_python(text: bytes) -> None:
    assert read_score_cells(text, 2, 0) is None
