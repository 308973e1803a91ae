"""Files of scores, calibrated by Dask in threads of this process."""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from glob import escape
from os.path import abspath
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Unpack

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import Part, PartTask, calibrate_parts
from pac_wrap.columns import no_rows, require_two
from pac_wrap.csvfiles import CsvFile, engine_files, expect_rows
from pac_wrap.engines.cells import LabelCounts, Labels, exact_numbers
from pac_wrap.engines.dask_graph import partitions_of, run_parts
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.guarantee import Guarantee
from pac_wrap.labels import anomaly_marks
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.scratch import scratch_folder

Reader = Literal["read_csv", "read_parquet", "read_json"]
_BLOCK: Final = 1 << 25
_AS_WRITTEN: Final[dict[str, Any]] = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
# what the readers of pandas and Arrow raise on files that are not what they seem
_ILL_FORMED: Final = (ValueError, TypeError, AttributeError, LookupError)


class _Block(NamedTuple):
    """Whole lines of a CSV file, from one byte to another."""

    file: CsvFile
    start: int
    end: int


def calibrate_files(
    files: Sequence[str],
    reader: Reader,
    guarantee: Guarantee | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of two columns of some files, which must exist and have these columns.

    Texts are parsed once, and what they say is kept in a scratch folder until the end: 12 bytes a row.
    """
    require_two(score, label)
    columns = [score, label]
    # the work is Arrow's and NumPy's, which let threads run; processes would cost seconds to start
    threads = import_package("dask", "dask").config.set(scheduler="threads")
    with scratch_folder() as folder, threads, ExitStack() as stack:
        scratch = str(folder)
        csv_files: list[CsvFile] = []
        if reader == "read_csv":
            csv_files = stack.enter_context(engine_files(files, columns, delimiter, folder))
        stack.enter_context(_refusing(files))
        keys, graph = partitions_of(_opened(list(files), reader, csv_files, columns, scratch)[columns])
        parsed = None if reader == "read_parquet" else scratch
        counted = run_parts(partial(_labels, columns, parsed), keys, graph)
        if not counted.counts:
            raise no_rows(list(files))
        marks = anomaly_marks(counted.counts, label, anomaly_label)
        if parsed:
            keys, graph = [_place(parsed, number) for number in range(len(keys))], {}
        certificate = calibrate_parts(
            lambda task: run_parts(partial(_part, task, columns, marks), keys, graph),
            guarantee,
            abstain=abstain,
            strategy=strategy,
            **options,
        )
        expect_rows(csv_files, certificate.normal.n + certificate.anomalous.n)
        return certificate


@contextmanager
def _refusing(files: Sequence[str]) -> Iterator[None]:
    """Say in one sentence what is wrong with the files; Dask's own advice is no use to the user."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="dask")
            yield
    except PACWrapError:
        raise
    except (*_ILL_FORMED, OSError, NotImplementedError) as error:
        reason = str(error).rpartition("Original Message: ")[2].strip().partition("\n")[0]
        raise InputError(f"cannot read {', '.join(files)}: {reason}") from error


def _opened(
    files: list[str], reader: Reader, csv_files: list[CsvFile], columns: list[str], scratch: str
) -> Any:
    """Return the files as one frame, not yet read."""
    frames = import_package("dask.dataframe", "dask")
    if reader == "read_parquet":
        paths = [_literal(_linked(file, scratch, number)) for number, file in enumerate(files)]
        return frames.read_parquet(paths, columns=columns, dtype_backend="pyarrow", blocksize=_BLOCK)
    meta = dict.fromkeys(columns, "object")
    parts = [block for file in csv_files for block in _blocks(file)] if reader == "read_csv" else files
    if not parts:
        raise no_rows(files)
    read = _csv if reader == "read_csv" else _json
    return frames.from_map(read, parts, args=[columns], meta=meta, enforce_metadata=False)


def _linked(file: str, scratch: str, number: int) -> str:
    """Return a path to a file without a folder called `name=value`, which Dask would make a column of."""
    if not any("=" in part for part in Path(file).parent.parts):
        return file
    link = Path(scratch) / f"linked-{number}{Path(file).suffix}"
    link.symlink_to(file)
    return str(link)


def _blocks(file: CsvFile) -> Iterator[_Block]:
    """Yield the lines after the header, cut at ends of lines."""
    with file.path.open("rb") as opened:
        opened.readline()
        start, size = opened.tell(), file.path.stat().st_size
        while start < size:
            opened.seek(min(size, start + _BLOCK))
            opened.readline()
            yield _Block(file, start, opened.tell())
            start = opened.tell()


def _csv(block: _Block, wanted: list[str]) -> Any:
    """Return columns of a block as texts, nothing where a cell is empty."""
    import pyarrow as pa
    from pyarrow import csv

    form = block.file.form
    with block.file.path.open("rb") as opened:
        opened.seek(block.start)
        content = opened.read(block.end - block.start)
    places = {name: str(place) for place, name in enumerate(form.names)}
    texts = dict.fromkeys((places[name] for name in wanted), pa.string())
    if not content.strip(b"\r\n") and len(form.names) > 1:
        return pa.table([pa.array([], pa.string())] * len(wanted), wanted)
    table = csv.read_csv(
        pa.BufferReader(content),
        csv.ReadOptions(column_names=list(places.values()), block_size=len(content) + 1, use_threads=False),
        csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=False,
            double_quote=False,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=len(form.names) > 1,
        ),
        csv.ConvertOptions(
            column_types=texts,
            include_columns=list(texts),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return table.rename_columns(wanted)


def _literal(file: str) -> str:
    """Return a path that Dask does not take for a pattern."""
    return escape(abspath(file))


def _json(file: str, wanted: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow.json import read_json

    with pa.input_stream(file) as opened:
        start = opened.read(4096)
        array = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        rows = json.loads(start + opened.read(), **_AS_WRITTEN) if array else []
    try:
        if not array:
            table = read_json(file).select(wanted)
            if not pa.types.is_boolean(table.column(0).type):
                return table
            rows = [{wanted[0]: True}]  # true is no number, and the texts below say so
        return pa.table({name: [_cell(row.get(name)) for row in rows] for name in wanted})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:  # perhaps numbers beside texts, as infinities are
        try:
            rows = rows or [json.loads(line, **_AS_WRITTEN) for line in _lines(file)]
        except ValueError:
            raise error from None
        return pa.table(
            {name: pa.array([_text(row.get(name)) for row in rows], pa.string()) for name in wanted}
        )


def _lines(file: str) -> list[bytes]:
    import pyarrow as pa

    with pa.input_stream(file) as opened:
        return [line for line in opened.read().splitlines() if line.strip()]


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _labels(columns: list[str], scratch: str | None, number: int, frame: Any) -> LabelCounts:
    """Return how often each label occurs in a partition, and keep what its cells say if there is a folder."""
    import pyarrow as pa

    table = _table(frame)
    labels = Labels.of(table.column(columns[1]))
    if scratch:
        scores = exact_numbers(table.column(columns[0]), columns[0], f"partition {number}")
        encoded = pa.DictionaryArray.from_arrays(labels.places, pa.array(labels.texts, pa.string()))
        kept = pa.table([pa.array(scores), encoded], columns)
        with pa.OSFile(_place(scratch, number), "wb") as file, pa.ipc.new_file(file, kept.schema) as writer:
            writer.write_table(kept)
    return labels.counts


def _part(task: PartTask, columns: list[str], marks: tuple[str, ...], number: int, frame: Any) -> Part:
    table = _table(frame)
    scores = exact_numbers(table.column(columns[0]), columns[0], f"partition {number}")
    return task(number, [(scores, Labels.of(table.column(columns[1])).among(marks))])


def _place(scratch: str, number: int) -> str:
    return f"{scratch}/{number}.arrow"


def _table(frame: Any) -> Any:
    """Return a partition as an Arrow table: read from where it was kept, as it is, or from pandas."""
    import pyarrow as pa

    if isinstance(frame, str):
        with pa.OSFile(frame) as file:
            return pa.ipc.open_file(file).read_all()
    return frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
