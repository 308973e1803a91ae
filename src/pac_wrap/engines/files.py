"""Files, inspected before an engine's own reader reads them, and their certificates: what `--engine` does.

Readers forgive much, each in its own way. What they are given is checked here, and the rows are counted, so
that they read what memory and DuckDB read, or the file is refused.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, MissingExtraError, PrecisionWarning
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certify import certify
from pac_wrap.method.groups.calibrate import certify_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.kinds.calibrate import certify_kinds
from pac_wrap.tables.columns import (
    miscounted,
    no_rows,
    refuse_as_third,
    refuse_twins,
    require_column,
    require_in_all,
    require_two,
)
from pac_wrap.tables.files.csv_files import (
    PACKED,
    CsvFile,
    columns_of,
    opened,
    opened_json,
    refuse_scores,
    survey,
)

Reader = Literal["read_csv", "read_parquet", "read_json"]
_START: Final = 1 << 18


class Layout(NamedTuple):
    """What a reader must be told about a file; files of one layout are read together."""

    names: tuple[str, ...] = ()
    delimiter: str = ","
    packed: bool = False
    array: bool = False
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InspectedFiles:
    """Files of one format by layout, and how many rows they hold; of JSON nobody knows before it is read."""

    by_layout: dict[Layout, list[Path]]
    rows: int | None = None
    csv_files: tuple[CsvFile, ...] = ()
    json_files: tuple[Path, ...] = ()
    wanted: tuple[str, ...] = ()

    def expect(self, rows: int) -> None:
        """Refuse to go on if an engine has read another number of rows than the files hold."""
        if self.rows is not None and rows != self.rows:
            names = [str(file) for files in self.by_layout.values() for file in files]
            raise miscounted(names, self.rows, rows)

    @contextmanager
    def naming_rows(self, score: str) -> Iterator[None]:
        """Name the first row of a text that is wrong if the engine, which counts no rows, refuses one."""
        try:
            yield
        except InputError:
            refuse_scores(self.csv_files, score)
            for file in self.json_files:
                with opened_json(file) as rows:
                    for batch in rows:
                        for name in self.wanted:
                            rows.column(name, batch)
            raise


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Some files, and who reads them: `certify` gives what the scores get in memory.

    Spark: the session that runs is used, else one is started with the master and stopped at the end. Dask:
    threads of this process read, or the workers of the scheduler at the address `master`; CSV and JSON are
    parsed once, and 9 bytes a row stay in memory. Workers must find the files under the same names.
    """

    engine: str
    files: Sequence[Path]
    reader: str
    delimiter: str | None = None
    master: str | None = None

    def certify(
        self, request: Any, columns: tuple[str, ...], anomaly_label: str | None, kind: bool = False
    ) -> Any:
        """Return what a request gets from columns of scores and labels, and perhaps of kinds or groups."""
        score, label = columns[:2]
        if len(columns) > 2:
            refuse_as_third(columns[2], (score, label), "kind" if kind else "group")
        engine: Any = import_module(f"pac_wrap.engines.{self.engine}")
        names = ("score", "label", "group")[: len(columns)]
        with engine.opened(self.files, self.reader, columns, anomaly_label, self.delimiter, self.master) as (
            frame,
            found,
        ):
            made: Any
            if kind:
                source = engine.source(frame, "score", "label", 1, "group", columns[2])
                made = certify_kinds(source, request)
                rows = sum(made.sizes)
            elif len(columns) > 2:
                made = certify_groups(engine.GroupedFrame(frame, names), request)
                rows = int(made.columns.n.sum())
            else:
                made = certify(engine.source(frame, "score", "label"), request)
                rows = sum(made.sizes)
            found.expect(rows)
        origin = {"score": score, "tables": tuple(map(str, self.files)), "engine": self.engine}
        return made.with_provenance(**origin)


def inspect(
    files: Sequence[Path],
    reader: Reader,
    score: str,
    label: str,
    delimiter: str | None = None,
    *third: str,
) -> InspectedFiles:
    """Return what is known about files before they are read; two columns of them are wanted, or three.

    What only DuckDB reads is refused: files packed by zstd, and cells of a CSV that hold line breaks.
    """
    require_two(score, label)
    for file in files:
        if PACKED.get(file.suffix.lower()) == "zstd":
            raise InputError(f"{file} is packed by zstd, which only DuckDB unpacks here; leave --engine out")
    wanted = (score, label, *third)
    if reader == "read_csv":
        return _csv(files, wanted, delimiter)
    return _parquet(files, wanted) if reader == "read_parquet" else _json(files, wanted)


def _csv(files: Sequence[Path], wanted: tuple[str, ...], delimiter: str | None) -> InspectedFiles:
    surveyed = [survey(file, wanted, delimiter) for file in files]
    _require(files, [file.header.names for file in surveyed], wanted)
    counted = tuple(
        replace(file, rows=_rows(file)) if file.rows is None or file.broken else file for file in surveyed
    )
    layouts = [Layout(file.header.names, file.header.delimiter, file.packing != "none") for file in counted]
    return _counted(files, layouts, sum(file.rows or 0 for file in counted), counted)


def _rows(file: CsvFile) -> int:
    """Return the number of rows, read by Python; the first that is none, or spans lines, is refused."""
    rows = 0
    for columns in columns_of(file, file.header.names):
        whole = "".join(map("".join, columns))
        if "\n" in whole or "\r" in whole:
            raise InputError(
                f"{file.path} has cells with line breaks, which only DuckDB reads; leave --engine out"
            )
        rows += len(columns[0])
    return rows


def _parquet(files: Sequence[Path], wanted: tuple[str, ...]) -> InspectedFiles:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    names, layouts, rows = [], [], 0
    for file in files:
        try:
            found = read_metadata(file)
            schema = found.schema.to_arrow_schema()
        except (ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"cannot read {file}: {reason}; check that it is whole") from error
        refuse_twins(schema.names, file)
        names.append(schema.names)
        layouts.append(
            Layout(types=tuple(str(schema.field(name).type) for name in wanted if name in schema.names))
        )
        rows += found.num_rows
    _require(files, names, wanted)
    return _counted(files, layouts, rows)


def _json(files: Sequence[Path], wanted: tuple[str, ...]) -> InspectedFiles:
    layouts = []
    for file in files:
        with opened(file) as source:
            start = source.read1(_START).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        try:
            first, _ = json.JSONDecoder().raw_decode(start.lstrip("[ \t\r\n"))
        except ValueError:  # cut off, or no JSON, as the engine will find
            first = None
        if isinstance(first, dict):
            for column in wanted:
                require_column(column, list(first))
        layouts.append(Layout(packed=file.suffix.lower() in PACKED, array=start.startswith("[")))
    return replace(_counted(files, layouts), json_files=tuple(files), wanted=wanted)


def _require(files: Sequence[Path], names: Sequence[Sequence[str]], wanted: tuple[str, ...]) -> None:
    require_in_all(files, names, wanted)
    for column in wanted:
        require_column(column, list(names[0]))


def _counted(
    files: Sequence[Path],
    layouts: Sequence[Layout],
    rows: int | None = None,
    csv_files: tuple[CsvFile, ...] = (),
) -> InspectedFiles:
    if rows == 0:
        raise no_rows([str(file) for file in files])
    by_layout: dict[Layout, list[Path]] = {}
    for file, layout in zip(files, layouts, strict=True):
        by_layout.setdefault(layout, []).append(file)
    return InspectedFiles(by_layout, rows, csv_files)


def import_package(name: str, extra: str) -> ModuleType:
    """Return the module of a name; where it is missing, one sentence names the extra that brings it.

    >>> import_package("json.decoder", "spark").__name__
    'json.decoder'
    >>> import_package("no_such_engine", "spark")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.MissingExtraError: no_such_engine is not installed; run pip install "pac-wrap-ad[spark]"
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise MissingExtraError(
            f'{missing} is not installed; run pip install "pac-wrap-ad[{extra}]"'
        ) from error


def require_columns(wanted: Sequence[Any], columns: Sequence[Any]) -> None:
    """Refuse a frame that lacks one of the columns or has it twice.

    >>> require_columns(["scor"], ["id", "score"])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no column 'scor'; did you mean 'score'? the columns are id, score
    """
    for name in wanted:
        if name not in columns:
            require_column(str(name), [str(column) for column in columns])
        if list(columns).count(name) > 1:
            raise InputError(f"there are two columns named {name!r}; rename one of them")


def warn_if_undecidable(certificate: Certificate, kind: ScoreType, score: str) -> None:
    """Warn the caller of `decide` if scores may have lost the digits that decide their verdicts.

    Nothing is computed yet, so nobody knows whether such a score occurs.
    """
    if values := certificate.undecidable(kind):
        warnings.warn(
            f"column {score!r} holds {kind}, but the certificate is of {certificate.score_type} scores: what"
            f" became {' or '.join(map(repr, values))} by rounding may get the wrong verdict; decide on"
            f" unrounded scores, or calibrate on {kind} ones",
            PrecisionWarning,
            stacklevel=3,
        )


def check_group(certificate: object, group: object) -> None:
    """Refuse what is no certificate, one of groups without their column, and a column without such a one."""
    if not isinstance(certificate, Certificate | GroupCertificate):
        raise InputError(
            f"certificate must be a Certificate or a GroupCertificate, got {quoted(certificate)}; read a file"
            " with the load of its class"
        )
    if isinstance(certificate, GroupCertificate) != (group is not None):
        which = "of groups: name their column" if group is None else "of no groups: leave the column out"
        raise InputError(f"the certificate is {which}, with group")


def not_kinds(column: str, kind: object) -> InputError:
    """Return the refusal of a column of another type, such as numbers, which have several texts."""
    return InputError(
        f"column {column!r} must hold kinds: texts, whole numbers, dates or booleans, but its type"
        f" is {kind}; convert it to text"
    )


def features_of(
    detector: Any, features: Sequence[Any] | None, numbers: Callable[[], Iterable[Any]]
) -> list[Any]:
    """Return the columns asked for, else those the detector was fitted on, else all columns of numbers."""
    if features is not None:
        return list(features)
    return list(detector.feature_names_in_ if knows_names(detector) else numbers())


def check_features(detector: Any, features: Sequence[Any]) -> None:
    """Refuse another number of features than the detector was fitted on."""
    wanted = getattr(detector, "n_features_in_", len(features)) or 0
    if len(features) != wanted or not features:
        raise InputError(
            f"the detector was fitted on {wanted or 'some'} features, got {len(features)}:"
            f" {', '.join(map(str, features)) or 'no column holds numbers'}; name its columns with features"
        )


def knows_names(detector: Any) -> bool:
    """Return whether a detector was fitted on a frame, and wants to see the names of its columns again."""
    return getattr(detector, "feature_names_in_", None) is not None


def scorer(detector: Any) -> Callable[[Any], Scores]:
    """Return what turns rows into scores: a fitted detector, or a PACWrap around it."""
    # here, since they load scikit-learn, which calibrating does not need
    from pac_wrap.detectors.estimator import PACWrap
    from pac_wrap.detectors.scores import anomaly_scores

    return detector.decision_function if isinstance(detector, PACWrap) else partial(anomaly_scores, detector)
