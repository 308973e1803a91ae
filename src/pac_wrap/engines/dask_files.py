"""Files of labelled scores, read by Dask's own readers: what `--engine dask` does."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import escape
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from pac_wrap.base.floats import Floats
from pac_wrap.engines.dask_partitions import partitions_of, sum_over_partitions
from pac_wrap.engines.files import InspectedFiles, Layout, Reader, inspect
from pac_wrap.engines.frames import import_package
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.tables.columns import LOOKED_AT, anomaly_marks, no_rows, number, without_case
from pac_wrap.tables.files.text_format import JsonRows, read_start

_BLOCK: Final = 1 << 25
_SAMPLE: Final = 1 << 20
# what the readers of pandas and Arrow raise on files that are not what they seem
_ILL_FORMED: Final = (ValueError, TypeError, AttributeError, LookupError, OSError, NotImplementedError)


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
    frames = import_package("dask.dataframe", "dask")
    score, label, *group = columns
    found = inspect(files, reader, score, label, delimiter, *group)
    with found.naming_rows(score), _workers(master), _refusing(files):
        frame = frames.concat([read(reader, *layout, columns) for layout in found.by_layout.items()])
        if reader != "read_parquet":
            frame = frame.persist()
        counted = sum_over_partitions(_count_labels, *partitions_of(frame))
        if not counted.counts:
            raise no_rows([str(file) for file in files])
        marks = anomaly_marks(counted.counts, label, label_text)
        marked = frame["label"].map_partitions(_marked, marks, meta=("label", "bool"))
        yield frame.assign(label=marked), found


@contextmanager
def _workers(master: str | None) -> Iterator[None]:
    """Let the workers of a scheduler do what is computed, or else threads of this process."""
    config = import_package("dask", "dask").config
    if master is None:
        # the work is Arrow's and NumPy's, which let threads run; processes would cost seconds to start
        with config.set(scheduler="threads"):
            yield
        return
    try:
        # one that is made the default and then not reached would stay the default
        client = import_package("distributed", "dask").Client(master, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"there is no Dask scheduler at {master}: {reason}; check its address") from error
    with client, client.as_current(), config.set(scheduler="dask.distributed"):
        yield


@contextmanager
def _refusing(files: Sequence[Path]) -> Iterator[None]:
    """Say in one sentence what is wrong with the files; Dask's own advice does not help the user."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="dask")
            yield
    except PACWrapError:
        raise
    except _ILL_FORMED as error:
        reason = str(error).rpartition("Original Message: ")[2].strip().partition("\n")[0]
        raise InputError(f"cannot read {', '.join(map(str, files))}: {reason}") from error


def read(reader: Reader, layout: Layout, files: Sequence[Path], wanted: tuple[str, ...]) -> Any:
    """Return the scores and labels in files of one layout, as `score_and_label` makes them."""
    frames = import_package("dask.dataframe", "dask")
    paths, columns = [escape(str(file.absolute())) for file in files], list(wanted)
    meta = {"score": "float64", "label": "category"} | dict.fromkeys(
        ("group",) * (len(wanted) - 2), "category"
    )
    packing: dict[str, Any] = {
        "compression": "gzip" if layout.packed else None,
        "blocksize": None if layout.packed or layout.array else _BLOCK,
    }
    if reader == "read_json":
        engine = partial(_read_json, wanted=wanted)
        return frames.read_json(paths, lines=not layout.array, engine=engine, meta=meta, **packing)
    if reader == "read_parquet":
        alone = {"partitioning": None}  # the name of a folder is no column
        frame = frames.read_parquet(
            paths, columns=columns, dtype_backend="pyarrow", blocksize=_BLOCK, dataset=alone
        )
    else:
        # of the parsers that pandas has, Arrow's alone refuses rows that are too short
        texts: dict[str, Any] = {
            "dtype": str,
            "keep_default_na": False,
            "na_values": [""],
            "engine": "pyarrow",
        }
        frame = frames.read_csv(
            paths, sep=layout.delimiter, usecols=columns, sample=_SAMPLE, encoding="utf-8", **texts, **packing
        )
    return frame.map_partitions(score_and_label, *wanted, meta=meta)


def _read_json(file: Any, orient: str, lines: bool, wanted: tuple[str, ...]) -> Any:
    """Return the scores and labels in a part of a file."""
    import pyarrow as pa

    content = BytesIO(file.read().encode())
    rows = JsonRows(content, read_start(content), on_lines=lines)
    batches = list(rows)
    columns: dict[str, Any] = {
        name: pa.array([one for batch in batches for one in rows.column(name, batch)], pa.string())
        for name in wanted[1:]
    }
    scores = [rows.numbers(wanted[0], batch) for batch in batches]
    if None in scores:  # there are texts among them
        texts = [one for batch in batches for one in rows.column(wanted[0], batch)]
        columns[wanted[0]] = pa.array(texts, pa.string())
    else:
        columns[wanted[0]] = pa.array([one for some in scores for one in some or ()], pa.float64())
    return score_and_label({name: pa.chunked_array([one]) for name, one in columns.items()}, *wanted)


def score_and_label(frame: Any, score: str, label: str, *group: str) -> Any:
    """Return the scores of a partition as exact numbers, NaN where there is none, and the labels as texts.

    A group becomes a category.
    """
    from pandas import DataFrame

    found = DataFrame(
        {"score": exact_numbers(_arrow(frame[score]), score), "label": label_texts(_arrow(frame[label]))}
    )
    return found.assign(group=_categories(_arrow(frame[group[0]]))) if group else found


def _categories(column: Any) -> Any:
    """Return an Arrow column as pandas' categories, which are its values."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(column.type):
        # one zero, and what is no number is missing
        column = compute.if_else(
            compute.is_nan(column), None, compute.add(column, pa.scalar(0.0, column.type))
        )
    return column.unify_dictionaries().combine_chunks().dictionary_encode().to_pandas()


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    found = column if isinstance(column, pa.ChunkedArray) else pa.array(column, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def exact_numbers(column: Any, name: str) -> Floats:
    """Return an Arrow column as float64, NaN where it is empty; of texts, only numbers are taken.

    Narrower floats are float32, as DuckDB makes them.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    try:
        narrow = pa.types.is_float32(kind) or pa.types.is_float16(kind)
        return np.asarray(column.cast(pa.float32() if narrow else pa.float64(), safe=False).to_numpy())
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"column {name!r} must hold numbers, but its type is {kind}; pick the score column"
        ) from error
    except pa.ArrowInvalid:
        return np.array([_number(text, name) for text in column.cast(pa.string()).to_pylist()])


def _number(text: str | None, name: str) -> float:
    value = number(text or "")
    if value is None:
        raise InputError(f"column {name!r} must hold numbers, got {text!r:.60}; fix that row")
    return value


def label_texts(column: Any) -> Any:
    """Return the labels of an Arrow column as texts without case: 1 is "1", 1.0 is "1.0", true is "true"."""
    import pyarrow as pa
    from pandas import Categorical

    whole = column.unify_dictionaries().combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    found = encoded.dictionary
    real = pa.types.is_floating(found.type)
    texts = found.to_numpy(zero_copy_only=False) if real else found.cast(pa.string()).to_pylist()
    known = Categorical([without_case(str(text)) for text in texts])
    codes = np.append(known.codes, np.int8(-1))
    return Categorical.from_codes(codes[encoded.indices.fill_null(len(texts)).to_numpy()], known.categories)


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """How often the first few labels occur, in the order of their texts; None, no label, is the last.

    >>> LabelCounts.of({"ok": 2}) + LabelCounts.of({None: 1, "ok": 3, "bad": 1})
    LabelCounts(counts=(('bad', 1), ('ok', 5), (None, 1)))
    """

    counts: tuple[tuple[str | None, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str | None, int]) -> "LabelCounts":
        """Return the first few of these counts; all parts of the data that hold such a label keep it."""
        ordered = sorted(counts.items(), key=lambda pair: (pair[0] is None, pair[0] or ""))
        return cls(tuple(ordered[:LOOKED_AT]))

    def __add__(self, other: "LabelCounts") -> "LabelCounts":
        return self.of(Counter(dict(self.counts)) + Counter(dict(other.counts)))


def _count_labels(number: int, frame: Any) -> LabelCounts:
    labels = frame["label"].array
    counts = np.bincount(labels.codes + 1, minlength=len(labels.categories) + 1).tolist()
    names = [None, *labels.categories]
    return LabelCounts.of({name: count for name, count in zip(names, counts, strict=True) if count})


def _marked(labels: Any, marks: tuple[str, ...]) -> Any:
    return labels.isin(marks)
