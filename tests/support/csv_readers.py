"""Every reader of CSV beside Python's csv, on generated files: the same rows or a refusal.

Each function takes a range of seeds and fails on the first file that is read otherwise.
"""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from pac_wrap import Certificate
from pac_wrap.engines.files import inspect
from pac_wrap.errors import InputError
from pac_wrap.streams.decide import Asked, decide_files, decide_lines
from pac_wrap.tables.columns import number, without_case
from pac_wrap.tables.files.connection import connected
from pac_wrap.tables.files.csv_files import refuse_rows
from pac_wrap.tables.files.text_format import CsvRows
from pac_wrap.tables.table import FoundFiles, Table
from support.generated_csv import LABEL, SCORE, Reading, generate, read_by_csv
from support.shell import CERTIFICATE

RULE = Certificate.load(CERTIFICATE)
Rows = list[tuple[str | None, ...]]
_JAVA_BLANKS = "".join(map(chr, range(33)))


def cases(seeds: range) -> Iterator[tuple[bytes, str, Reading]]:
    """Yield files that csv finds the columns of."""
    for seed in seeds:
        content, made = generate(seed)
        reading = read_by_csv(content)
        if reading is not None:
            yield content, f"seed {seed}: {made}: {content!r}", reading


def missing(rows: list[tuple[str, ...]]) -> Rows:
    return [tuple(cell or None for cell in row) for row in rows]


def agree(found: Rows | InputError, reading: Reading, made: str, *, may_refuse: bool = False) -> bool:
    """Fail unless the rows are those of csv, or were refused for a reason; return whether they were read."""
    if isinstance(found, InputError):
        if reading.bad_row is None:
            assert reading.excused or may_refuse, f"refused: {found}\n{made}"
        elif may_refuse and reading.bad_score and "column" in str(found):
            return False  # an engine names a bad score before a bad row
        elif not reading.excused:
            rows = {reading.bad_row, (reading.bad_score if may_refuse else None) or reading.bad_row}
            assert any(f"row {row:,} " in str(found).replace(";", " ;") for row in rows), f"{found}\n{made}"
        return False
    assert reading.bad_row is None, f"read although row {reading.bad_row} is none\n{made}"
    assert found == missing(reading.rows), made
    return True


def by_duckdb(seeds: range, folder: Path) -> int:
    """Return how many files DuckDB has read as csv does; the others it has refused."""
    made = list(cases(seeds))
    files = [folder / f"{place}.csv" for place in range(len(made))]
    read = 0
    with connected(files, folder) as connection:
        for place, (file, (content, words, reading)) in enumerate(zip(files, made, strict=True)):
            file.write_bytes(content)
            whole = place % 2 == 1
            try:
                named = FoundFiles([str(file)], [file], "read_csv", folder)
                view = Table(connection, named, reading.wanted, whole=whole)
                columns = ", ".join(f'"{name}"' for name in reading.wanted)
                found: Rows | InputError = connection.execute(f"SELECT {columns} FROM source").fetchall()
                assert view.counted == len(reading.cells), words
            except InputError as error:
                found = error
            except duckdb.Error as error:  # as a table does
                found = refused_rows(view.csv_files, error if reading.excused else None)
            read += agree(found, reading, words)
            connection.execute("DROP VIEW IF EXISTS source")
            for table in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                connection.execute(f"DROP TABLE {table[0]}")
    return read


def refused_rows(files: Any, otherwise: Exception | None) -> InputError:
    """Return the error that names the first row too short or too long, or else what DuckDB says."""
    try:
        refuse_rows(files)
    except InputError as error:
        return error
    assert otherwise is not None, "DuckDB refuses rows that are all alike"
    return InputError(str(otherwise))


def by_stream(seeds: range) -> int:
    """Return how many files the stream has read as csv does, however they are cut."""
    read = 0
    for seed, (content, words, reading) in enumerate(cases(seeds)):
        rows: list[tuple[str, ...]] = []
        found: Rows | InputError
        try:
            source = io.BytesIO(content)
            if seed % 3 == 0:  # cut into small pieces
                source = Slow(content)
            batches = CsvRows(source, source.read1(50), reading.wanted, None)
            places = [batches.header.names.index(name) for name in reading.wanted]
            for batch in batches:
                rows += [tuple(row[place] for place in places) for row in batch.rows]
            found = missing(rows)
        except InputError as error:
            found = error
            if reading.bad_row and not reading.excused:
                assert rows == reading.rows, words
        read += agree(found, reading, words)
    return read


class Slow(io.BytesIO):
    """Bytes that come a few at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(7)


def by_decide(seeds: range, folder: Path, form: Any) -> int:
    """Return how many files were decided, with all their cells; the others were refused, as streams too."""
    decided, file, asked = 0, folder / "a.csv", Asked(SCORE, form == "csv", "stop")
    for content, words, reading in cases(seeds):
        if not content.strip() or content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
            continue
        file.write_bytes(content)
        out, again = io.BytesIO(), io.BytesIO()
        refusals = []
        for run in (
            partial(decide_lines, RULE, io.BytesIO(), content, out, asked),
            partial(decide_files, RULE, [file], ["a"], again, asked, None),
        ):
            try:
                run()
            except InputError as error:
                refusals.append(str(error))
        bad = reading.bad_row or reading.bad_score
        if refusals or reading.excused or bad or not reading.cells:
            assert len(refusals) in ((0, 2) if reading.excused else (2,)), f"{refusals}\n{words}"
            if bad and not reading.excused:
                first = min(place for place in (reading.bad_row, reading.bad_score) if place)
                assert f"row {first:,}" in refusals[0], f"{refusals}\n{words}"
            continue
        assert out.getvalue() == again.getvalue(), words
        if form == "csv":
            written = list(csv.reader(io.StringIO(out.getvalue().decode(), newline=""), strict=True))
            assert written[0] == [*reading.names, "verdict", "prediction_set"], words
            assert [row[:-2] for row in written[1:]] == reading.cells, words
            verdicts = RULE.verdicts(np.array([number(row[0]) for row in reading.rows]))
            assert [row[-2] for row in written[1:]] == list(map(str, verdicts)), words
        decided += 1
    return decided


def engine_cases(seeds: range) -> Iterator[tuple[bytes, str, Reading]]:
    for content, words, reading in cases(seeds):
        if len(reading.wanted) == 2:
            yield content, words, reading


def numbers(rows: Any) -> list[tuple[float | None, str | None]]:
    """Return scores as numbers, None where there is none, and labels as engines compare them."""
    found = []
    for score, label in rows:
        value = number(score or "")
        known = value is not None and not np.isnan(value)
        found.append((value if known else None, without_case(label) if label else None))
    return found


def spans_lines(reading: Reading) -> bool:
    """Return whether a cell holds a line break, which engines refuse."""
    return any(mark in cell for row in [reading.names, *reading.cells] for cell in row for mark in "\r\n")


def by_dask(seeds: range, folder: Path) -> int:
    """Return how many files Dask has read as csv does; the others it has refused."""
    from pac_wrap.engines.dask import _refusing, read

    done = 0
    for place, (content, words, reading) in enumerate(engine_cases(seeds)):
        (file := folder / f"{place}.csv").write_bytes(content)
        refused: InputError | None = None
        try:
            inspected = inspect([file], "read_csv", (SCORE, LABEL))
            with inspected.naming_rows(), _refusing([file]):
                ((layout, files),) = inspected.by_layout.items()
                found = read("read_csv", layout, files, (SCORE, LABEL)).compute(scheduler="sync")
                inspected.expect(len(found))
        except InputError as error:
            refused = error
        if refused is not None:
            if not spans_lines(reading):
                agree(refused, reading, words, may_refuse=True)
                why = reading.bad_row or reading.bad_score or reading.excused or not reading.cells
                assert why, f"{refused}\n{words}"
            continue
        assert reading.bad_row is None, words
        scores = [None if np.isnan(score) else score for score in found["score"]]
        labels = [label if isinstance(label, str) else None for label in found["label"]]
        assert list(zip(scores, labels, strict=True)) == numbers(reading.rows), words
        done += 1
    return done


def by_spark(seeds: range, folder: Path) -> int:
    """Return how many files Spark has read, in one job, as csv does; the others were refused before."""
    from functools import reduce

    from pac_wrap.engines.spark import read, score_and_label, spark_session

    expected: dict[str, tuple[Any, str]] = {}
    layouts: dict[Any, list[Path]] = {}
    for place, (content, words, reading) in enumerate(engine_cases(seeds)):
        (file := folder / f"{place}.csv").write_bytes(content)
        # what is refused here never reaches Spark
        with suppress(InputError):
            inspected = inspect([file], "read_csv", (SCORE, LABEL))
            # one bad row would end the job for all; rows of blanks, which Spark passes over, are counted
            if reading.bad_row is None and all("".join(row).strip(_JAVA_BLANKS) for row in reading.cells):
                ((layout, files),) = inspected.by_layout.items()
                layouts.setdefault(layout, []).extend(files)
                expected[file.name] = reading.rows, words
    found: dict[str, list[Any]] = {name: [] for name in expected}
    with spark_session() as session:
        frames = []
        for layout, files in layouts.items():  # as the engine does, files of one layout are read together
            frame = read(session, "read_csv", layout, files, (SCORE, LABEL))
            frame = score_and_label(frame, SCORE, LABEL, narrow=False)
            frames.append(frame.selectExpr("input_file_name() AS file", "score", "bad", "label"))
        for row in reduce(lambda one, other: one.unionAll(other), frames).coalesce(2).collect():
            unknown = row.score is None or np.isnan(row.score)
            found[row.file.split("/")[-1]].append((row.bad or (None if unknown else row.score), row.label))
    for name, (rows, words) in expected.items():
        read_by_csv = zip(rows, numbers(rows), strict=True)
        wanted = [
            (text if number(text) is None else score, label) for (text, _), (score, label) in read_by_csv
        ]
        assert sorted(map(repr, found[name])) == sorted(map(repr, wanted)), words
    return len(expected)
