"""Files of scores, calibrated by Dask in threads of this process."""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from glob import escape
from os.path import abspath
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Unpack

import duckdb

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import Part, PartTask, calibrate_parts
from pac_wrap.columns import no_rows, require_two
from pac_wrap.engines.cells import LabelCounts, Labels, exact_numbers
from pac_wrap.engines.dask_graph import partitions_of, run_parts
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.guarantee import Guarantee
from pac_wrap.labels import anomaly_marks
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.scratch import scratch_folder
from pac_wrap.sources import literal_path

Reader = Literal["read_csv", "read_parquet", "read_json"]
_BLOCK: Final = 1 << 25
# what the readers of pandas and Arrow raise on files that are not what they seem
_ILL_FORMED: Final = (ValueError, TypeError, AttributeError, LookupError)


class _Dialect(NamedTuple):
    """How a CSV is to be read, as DuckDB finds it, so that every engine reads the same."""

    separator: str
    quote: str
    skipped: int
    names: tuple[str, ...]
    packed: bool


def calibrate_files(
    files: Sequence[str],
    reader: Reader,
    guarantee: Guarantee | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
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
    with scratch_folder() as folder, threads, _refusing(files):
        scratch = str(folder)
        keys, graph = partitions_of(_opened(list(files), reader, columns, scratch)[columns])
        parsed = None if reader == "read_parquet" else scratch
        counted = run_parts(partial(_labels, columns, parsed), keys, graph)
        if not counted.counts:
            raise no_rows(list(files))
        marks = anomaly_marks(counted.counts, label, anomaly_label)
        if parsed:
            keys, graph = [_place(parsed, number) for number in range(len(keys))], {}
        return calibrate_parts(
            lambda task: run_parts(partial(_part, task, columns, marks), keys, graph),
            guarantee,
            abstain=abstain,
            strategy=strategy,
            **options,
        )


@contextmanager
def _refusing(files: Sequence[str]) -> Iterator[None]:
    """Say in one sentence what is wrong with the files; what Dask should mend is nothing to the user."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="dask")
            yield
    except PACWrapError:
        raise
    except (*_ILL_FORMED, OSError, NotImplementedError, duckdb.Error) as error:
        reason = str(error).rpartition("Original Message: ")[2].strip().partition("\n")[0]
        raise InputError(f"cannot read {', '.join(files)}: {reason}") from error


def _opened(files: list[str], reader: Reader, columns: list[str], scratch: str) -> Any:
    """Return the files as one frame, not yet read."""
    frames = import_package("dask.dataframe", "dask")
    if reader == "read_json":
        meta = dict.fromkeys(columns, "object")
        return frames.from_map(_json, files, args=[columns], meta=meta, enforce_metadata=False)
    if reader == "read_parquet":
        paths = [_literal(_linked(file, scratch, number)) for number, file in enumerate(files)]
        return frames.read_parquet(paths, columns=columns, dtype_backend="pyarrow", blocksize=_BLOCK)
    groups: dict[_Dialect, list[str]] = {}
    for file in files:
        groups.setdefault(_dialect(file), []).append(file)
    return frames.concat([_csv(frames, *group, columns) for group in groups.items()])


def _linked(file: str, scratch: str, number: int) -> str:
    """Return a path to a file without a folder called `name=value`, which Dask would make a column of."""
    if not any("=" in part for part in Path(file).parent.parts):
        return file
    link = Path(scratch) / f"linked-{number}{Path(file).suffix}"
    link.symlink_to(file)
    return str(link)


def _csv(frames: Any, dialect: _Dialect, files: list[str], columns: list[str]) -> Any:
    options: dict[str, Any] = {"engine": "pyarrow"}
    if dialect.names:
        # without a header pandas cannot pick columns in Arrow's reader
        options = {"engine": "c", "header": None, "names": dialect.names}
    # a quoted cell may hold a line's end, and a packed file has no lines to cut at
    whole = dialect.packed or any(_holds(file, dialect.quote.encode()) for file in files)
    return frames.read_csv(
        [_literal(file) for file in files],
        sep=dialect.separator,
        quotechar=dialect.quote,
        skiprows=dialect.skipped,
        usecols=columns,
        dtype="string[pyarrow]",
        keep_default_na=False,
        na_values=[""],
        blocksize=None if whole else _BLOCK,
        compression="gzip" if dialect.packed else None,
        **options,
    )


def _dialect(file: str) -> _Dialect:
    if file.lower().endswith(".zst"):
        raise InputError(f"Dask cannot unpack {file}; pack it with gzip, or let DuckDB read it")
    query = "SELECT Delimiter, Quote, SkipRows, HasHeader, Columns FROM sniff_csv(?)"
    with duckdb.connect() as connection:
        found = connection.execute(query, [literal_path(abspath(file))]).fetchall()
    separator, quote, skipped, header, columns = found[0]
    names = () if header else tuple(one["name"] for one in columns)
    quote = quote if len(quote) == 1 else '"'
    return _Dialect(separator, quote, skipped, names, packed=file.lower().endswith(".gz"))


def _literal(file: str) -> str:
    """Return a path that Dask does not take for a pattern."""
    return escape(abspath(file))


def _holds(file: str, mark: bytes) -> bool:
    with Path(file).open("rb") as opened:
        return any(mark in block for block in iter(lambda: opened.read(1 << 20), b""))


def _json(file: str, wanted: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow.json import read_json

    with pa.input_stream(file) as opened:
        start = opened.read(4096)
        array = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        rows = json.loads(start + opened.read()) if array else []
    try:
        if array:
            return pa.table({name: [row.get(name) for row in rows] for name in wanted})
        return read_json(file).select(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:  # perhaps numbers beside texts, as infinities are
        try:
            rows = rows or [json.loads(line) for line in _lines(file)]
        except ValueError:
            raise error from None
        return pa.table(
            {name: pa.array([_text(row.get(name)) for row in rows], pa.string()) for name in wanted}
        )


def _lines(file: str) -> list[bytes]:
    import pyarrow as pa

    with pa.input_stream(file) as opened:
        return [line for line in opened.read().splitlines() if line.strip()]


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
