"""Files of labelled scores, read by Spark's own readers: what `--engine spark` does."""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from pac_wrap.base.files import scratch_folder
from pac_wrap.engines.files import InspectedFiles, Layout, Reader, inspect
from pac_wrap.engines.frames import import_package
from pac_wrap.engines.spark import LABELS, SCORES, check_frame, type_of
from pac_wrap.engines.spark_counts import literal
from pac_wrap.engines.spark_groups import GROUPS, group_sql
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.tables.columns import BLANKS, LOOKED_AT, NUMBER, anomaly_marks, no_rows
from pac_wrap.tables.files.text_format import JsonRows, read_start
from pac_wrap.tables.sql.expressions import quote_name, without_case_sql

# all cores, and a task that fails is tried again
_THIS_MACHINE: Final = "local[*, 4]"
# everything is stated, since the defaults guess, trim and escape
_CSV: Final[dict[str, Any]] = {
    "header": True,
    "quote": '"',
    "escape": '"',
    "encoding": "UTF-8",
    "nullValue": "",
    "ignoreLeadingWhiteSpace": False,
    "ignoreTrailingWhiteSpace": False,
    "maxCharsPerColumn": -1,
    # with a row's other cells left out, nobody would notice that it has too many or too few
    "columnPruning": False,
}


@contextmanager
def opened(
    files: Sequence[Path],
    reader: Reader,
    columns: tuple[str, ...],
    label_text: str | None,
    delimiter: str | None,
    master: str | None,
) -> Iterator[tuple[Any, InspectedFiles]]:
    """Yield a frame of scores, marks and perhaps groups or kinds, and what is known about its files."""
    for package in ("pyspark", "pandas", "pyarrow"):
        import_package(package, "spark")
    for file in files:
        if file.name.startswith(("_", ".")) or ":" in file.name:
            rule = "Spark reads no file whose name starts with _ or a dot or has a colon"
            raise InputError(f"{rule}, such as {file}; rename it")
    score, label, *group = columns
    found = inspect(files, reader, score, label, delimiter, *group)
    with found.naming_rows(score), spark_session(master) as session, _refusing(files):
        frames = [read(session, reader, *layout, columns) for layout in found.by_layout.items()]
        narrow = all(type_of(one, score) == "float32" for one in frames)
        frame = reduce(_union, (score_and_label(one, score, label, narrow, group) for one in frames))
        if reader != "read_parquet":  # texts are parsed once
            frame = frame.persist()
        try:
            marks = anomaly_marks(_counted(frame, files, score), label, label_text)
            listed = ", ".join(literal(mark, "string") for mark in marks)
            yield frame.selectExpr("score", f"label IN ({listed}) AS label", *["group"] * len(group)), found
        finally:
            frame.unpersist()


@contextmanager
def spark_session(master: str | None = None) -> Iterator[Any]:
    """Yield the active session; where there is none, start a quiet one, and stop it afterwards."""
    builder = import_package("pyspark.sql", "spark").SparkSession
    if (running := builder.getActiveSession()) is not None:
        yield running
        return
    with scratch_folder() as scratch:
        session = _started(builder.builder, master or _THIS_MACHINE, str(scratch))
        try:
            yield session
        finally:
            session.stop()


def _started(builder: Any, master: str, scratch: str) -> Any:
    settings = {
        "spark.master": master,
        "spark.app.name": "pac-wrap",
        "spark.sql.warehouse.dir": scratch,
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": scratch,
            "spark.ui.enabled": "false",
        }
    for name, value in settings.items():
        builder = builder.config(name, value)
    remedy = "install one, for example Debian's openjdk-17-jre-headless, and set JAVA_HOME"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise MissingExtraError(f"Spark needs Java 17 or later, which is not installed; {remedy}")
    errors, py4j = import_package("pyspark.errors", "spark"), import_package("py4j.protocol", "spark")
    try:
        with _silenced():
            session = builder.getOrCreate()
    except errors.PySparkRuntimeError as error:
        raise MissingExtraError(f"Spark did not start, it needs Java 17 or later; {remedy}") from error
    except (errors.PySparkException, py4j.Py4JError) as error:
        raise InputError(f"Spark did not start with the master {master}: {_reason(str(error))}") from error
    if master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # JSON is read by this package, which another interpreter may lack
        session.sparkContext.pythonExec = sys.executable
    return session


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what new processes write nowhere: Java keeps the outputs it was started with."""
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def read(session: Any, reader: Reader, layout: Layout, files: Sequence[Path], wanted: tuple[str, ...]) -> Any:
    """Return a frame of files of one layout, in which CSV and JSON are texts."""
    paths = [_literal(file) for file in files]
    if reader == "read_parquet":
        return session.read.parquet(*paths)
    if reader == "read_json":  # Spark's own reader would write numbers anew, and take a name twice
        schema = ", ".join(f"{quote_name(name, 'spark')} STRING" for name in wanted)
        lines = session.read.text(paths, wholetext=layout.array, lineSep=None if layout.array else "\n")
        return lines.mapInArrow(partial(_objects, wanted, not layout.array), schema)
    strict = session.read.option("mode", "FAILFAST")
    # by place, since Spark takes names that differ in case for one
    schema = ", ".join(f"c{place} STRING" for place in range(len(layout.names)))
    places = [layout.names.index(name) for name in wanted]
    picked = [f"c{place} AS {quote_name(name, 'spark')}" for place, name in zip(places, wanted, strict=True)]
    options = {**_CSV, "sep": layout.delimiter, "maxColumns": len(layout.names) + 1}
    return strict.schema(schema).options(**options).csv(paths).selectExpr(*picked)


def _objects(wanted: tuple[str, ...], on_lines: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield columns of the objects that some lines hold, as texts; called in a worker."""
    import pyarrow as pa

    for batch in batches:
        content = BytesIO("\n".join(one or "" for one in batch.column(0).to_pylist()).encode())
        rows = JsonRows(content, read_start(content), on_lines=on_lines)
        for some in rows:
            columns = [pa.array(rows.column(name, some), pa.string()) for name in wanted]
            yield pa.RecordBatch.from_arrays(columns, list(wanted))


def _literal(file: Path) -> str:
    """Return a path that Spark neither takes for a pattern nor looks for in another file system."""
    return "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(file.absolute()))


def score_and_label(frame: Any, score: str, label: str, narrow: bool, group: Sequence[str] = ()) -> Any:
    """Return the score, what is no number among the scores, the label as a lower-case text, and the group.

    Scores become doubles unless they are float32 in all files: Spark would make float32 of whole numbers too.
    """
    check_frame(frame, {score: (*SCORES, "string"), label: LABELS} | dict.fromkeys(group, GROUPS))
    name = quote_name(score, "spark")
    text = without_case_sql(f"CAST({quote_name(label, 'spark')} AS STRING)", "spark")
    others = [f"{text} AS label", *(f"{group_sql(frame, one)} AS group" for one in group)]
    if dict(frame.dtypes)[score] != "string":
        number = name if narrow else f"CAST({name} AS DOUBLE)"
        return frame.selectExpr(f"{number} AS score", "CAST(NULL AS STRING) AS bad", *others)
    trimmed = f"trim(BOTH '{BLANKS}' FROM lower({name}))"
    # Java knows no sign of NaN
    number = f"IF({trimmed} RLIKE '^[+-]?nan$', CAST('NaN' AS DOUBLE), try_cast({name} AS DOUBLE))"
    # Java reads more as a number, 1.0d for one
    wrong = f"{name} IS NOT NULL AND ({number} IS NULL OR NOT {trimmed} RLIKE '^({NUMBER})$')"
    return frame.selectExpr(f"{number} AS score", f"IF({wrong}, {name}, NULL) AS bad", *others)


def _union(one: Any, other: Any) -> Any:
    if one.dtypes[3:] != other.dtypes[3:]:
        kinds = f"{one.dtypes[3][1]} and {other.dtypes[3][1]}"
        raise InputError(f"the files hold groups of different types, {kinds}; give the column one type")
    return one.unionAll(other)


def _counted(frame: Any, files: Sequence[Path], score: str) -> list[tuple[str | None, int]]:
    """Return the first labels and how often each occurs, after refusing scores that are no numbers."""
    functions = import_package("pyspark.sql.functions", "spark")
    sums = [functions.expr(one) for one in ("count(*) AS n", "count(bad) AS wrong", "min(bad) AS bad")]
    rows = frame.groupBy("label").agg(*sums).orderBy("label").limit(LOOKED_AT).collect()
    if not rows:
        raise no_rows([str(file) for file in files])
    if wrong := sum(row.wrong for row in rows):
        example = min(row.bad for row in rows if row.wrong)
        others = f" and {wrong - 1:,} more" if wrong > 1 else ""
        raise InputError(f"column {score!r} must hold numbers, got {example!r:.60}{others}; fix those rows")
    return [(row.label, row.n) for row in rows]


@contextmanager
def _refusing(files: Sequence[Path]) -> Iterator[None]:
    """Say in one sentence what Spark finds wrong with the files; its remarks about pandas are kept quiet."""
    errors, py4j = import_package("pyspark.errors", "spark"), import_package("py4j.protocol", "spark")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        try:
            yield
        except (errors.PySparkException, py4j.Py4JError) as error:
            names = ", ".join(map(str, files))
            raise InputError(f"Spark cannot read {names}: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    lines = [
        line.strip()
        for line in message.splitlines()
        if re.match(r"[\w.]*(Exception|Error): |\[[A-Z_.]+\]", line.strip())
    ]
    return lines[-1] if lines else message.partition("\n")[0]
