"""Certificates of files from another engine, after checks of the files: the work of `--engine`.

Readers forgive much, each in its own way. What they are given is checked here, and the rows are counted, so
that they read what memory and DuckDB read, or the file is refused.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from pac_wrap.engines.frames import Engine, import_package
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.promise import Guarantee
from pac_wrap.tables import columns as checks
from pac_wrap.tables.files import csv_files

_START: Final = 1 << 18


class Layout(NamedTuple):
    """The facts that a reader needs about a file; files of one layout are read together."""

    names: tuple[str, ...] = ()
    delimiter: str = ","
    packed: bool = False
    array: bool = False
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InspectedFiles:
    """Files of one format by layout, and their number of rows, which is unknown for JSON."""

    files: tuple[Path, ...]
    reader: str
    wanted: tuple[str, ...]
    by_layout: dict[Layout, list[Path]]
    rows: int | None = None
    surveyed: tuple[csv_files.CsvFile, ...] = ()

    def expect(self, rows: int) -> None:
        checks.expect_rows([*map(str, self.files)], self.rows, rows)

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Name the first bad row of a text if the engine, which counts no rows, refuses one."""
        try:
            yield
        except InputError:
            csv_files.refuse_scores(self.surveyed, self.wanted[0])
            for file in self.files if self.reader == "read_json" else ():
                with csv_files.opened_json(file) as rows:
                    for batch in rows:
                        for name in self.wanted:
                            rows.column(name, batch)
            raise


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Files and the engine that reads them; `certify` returns the same certificate as in memory."""

    engine: str
    files: Sequence[Path]
    reader: str
    delimiter: str | None = None
    # where Spark starts a session if none runs, or Dask's scheduler, whose workers need the files too
    master: str | None = None

    def certify(self, request: Any, columns: tuple[str, ...], anomaly_label: str | None) -> Any:
        """Return the certificate for a request, from columns of scores and labels, and of kinds or groups."""
        score, label, *third = columns
        by_group = isinstance(request, GroupRequest)
        for name in third:
            checks.refuse_as_third(name, (score, label), "group" if by_group else "kind")
        engine = self._started()
        found = inspect(self.files, self.reader, columns, self.delimiter)

        def marks(counts: checks.LabelCounts) -> Sequence[str]:
            if not counts:
                raise checks.no_rows([*map(str, self.files)])
            return checks.anomaly_marks(counts, label, anomaly_label)

        with found.naming_rows(), engine.reading(found, self.master) as frame:
            marked = engine.marked(frame, score, marks)
            names = ("score", "label", "group")[: len(columns)]
            made = engine.certified(marked, names, request, called="".join(third))
            if isinstance(made, Curve):
                found.expect(made.normal.n + made.anomalous.n)
            else:
                found.expect(int(made.columns.n.sum()) if by_group else sum(made.sizes))
        return made.with_provenance(score=score, tables=tuple(map(str, self.files)), engine=self.engine)

    def certify_traffic(self, asked: Guarantee, columns: checks.TrafficColumns) -> Certificate:
        score, review, audit = columns
        if review is None or audit is not None:
            raise InputError(
                f"--engine {self.engine} needs a column of reviews and takes none of audits; remove --engine"
            )
        engine = self._started()
        found = inspect(self.files, self.reader, (score, review), self.delimiter)

        def marks(counts: checks.LabelCounts) -> Sequence[str]:
            for text, _ in counts:
                columns.part_of(review, text)
            return checks.TRUE

        with found.naming_rows(), engine.reading(found, self.master) as frame:
            engine.marked(frame, score, marks)  # which checks the scores and the reviews
            made = engine.certified_traffic(frame, checks.TrafficColumns("score", "label"), asked)
            assert made.traffic is not None
            found.expect(made.traffic.points)
        return made.with_provenance(score=score, tables=tuple(map(str, self.files)), engine=self.engine)

    def _started(self) -> Engine:
        engine: Engine = import_module(f"pac_wrap.engines.{self.engine}").ENGINE
        for package in engine.packages:
            import_package(package, self.engine)
        return engine


def inspect(
    files: Sequence[Path], reader: str, wanted: tuple[str, ...], delimiter: str | None = None
) -> InspectedFiles:
    """Return the facts about files before they are read; CSV cells that hold line breaks are refused."""
    checks.require_two(*wanted[:2])
    rows: int | None = None
    counted: tuple[csv_files.CsvFile, ...] = ()
    if reader == "read_csv":
        surveyed = [csv_files.survey(file, wanted, delimiter) for file in files]
        _require(files, [file.header.names for file in surveyed], wanted)
        counted = tuple(
            replace(file, rows=_rows(file)) if file.rows is None or file.broken else file for file in surveyed
        )
        layouts = [Layout(one.header.names, one.header.delimiter, one.packing != "none") for one in counted]
        rows = sum(file.rows or 0 for file in counted)
    elif reader == "read_parquet":
        layouts, rows = _parquet(files, wanted)
    else:
        layouts = [_json(file, wanted) for file in files]
    if rows == 0:
        raise checks.no_rows([*map(str, files)])
    by_layout: dict[Layout, list[Path]] = {}
    for file, layout in zip(files, layouts, strict=True):
        by_layout.setdefault(layout, []).append(file)
    return InspectedFiles(tuple(files), reader, wanted, by_layout, rows, counted)


def _rows(file: csv_files.CsvFile) -> int:
    """Return the number of rows, counted by Python; a bad row, or a row over several lines, is refused."""
    rows = 0
    for columns in csv_files.columns_of(file, file.header.names):
        whole = "".join(map("".join, columns))
        if "\n" in whole or "\r" in whole:
            raise InputError(
                f"{file.path} has cells with line breaks, which only DuckDB reads; remove --engine"
            )
        rows += len(columns[0])
    return rows


def _parquet(files: Sequence[Path], wanted: tuple[str, ...]) -> tuple[list[Layout], int]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    names, layouts, rows = [], [], 0
    for file in files:
        try:
            found = read_metadata(file)
            schema = found.schema.to_arrow_schema()
        except (ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"cannot read {file}: {reason}; check that the file is complete") from error
        checks.refuse_twins(schema.names, file)
        names.append(schema.names)
        types = tuple(str(schema.field(name).type) for name in wanted if name in schema.names)
        layouts.append(Layout(types=types))
        rows += found.num_rows
    _require(files, names, wanted)
    return layouts, rows


def _json(file: Path, wanted: tuple[str, ...]) -> Layout:
    with csv_files.opened(file) as source:
        start = source.read1(_START).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    try:
        first, _ = json.JSONDecoder().raw_decode(start.lstrip("[ \t\r\n"))
    except ValueError:  # cut off, or no JSON, as the engine will find
        first = None
    if isinstance(first, dict):
        checks.require_columns(wanted, first)
    return Layout(packed=file.suffix.lower() == csv_files.PACKED, array=start.startswith("["))


def _require(files: Sequence[Path], names: Sequence[Sequence[str]], wanted: tuple[str, ...]) -> None:
    checks.require_in_all(files, names, wanted)
    checks.require_columns(wanted, names[0])
