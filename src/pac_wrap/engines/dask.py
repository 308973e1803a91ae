"""Dask: calibrate, decide and score frames of dask.dataframe; a worker is given partitions, pandas frames."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from glob import escape
from io import BytesIO
from itertools import chain
from operator import add, call
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, as_anomaly_mask, as_scores, missing_places, score_type
from pac_wrap.base.floats import Floats, ScoreType
from pac_wrap.engines import frames
from pac_wrap.engines.files import InspectedFiles, Layout
from pac_wrap.engines.frames import AnyCertificate, Names
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.calibrate import Block, GroupSource, Part
from pac_wrap.method.groups.certificate import GroupCertificate, decided, sets_of
from pac_wrap.method.groups.values import NO_SCORES, Lookup, coded, merged
from pac_wrap.method.kinds import coded_kinds, population_codes, populations_of
from pac_wrap.method.promise import Population
from pac_wrap.method.rule import SETS
from pac_wrap.method.source import PartitionSource, Source
from pac_wrap.method.traffic.calibrate import STATES
from pac_wrap.ranks.passes import PartitionAnswer, PartitionTask, within
from pac_wrap.tables.columns import LOOKED_AT, LabelCounts, TrafficColumns, number, without_case
from pac_wrap.tables.files.text_format import JsonRows, read_start

# the number of answers that are added up in one step of the tree
_TOGETHER: Final = 8
# from this number of partitions on, looking at one of them first saves more than it costs
_SAMPLED: Final = 4
_SETS: Final = np.array(SETS, dtype=object)


class _Dask(frames.Engine):
    packages = ("dask.dataframe",)

    def check(self, df: Any, numbers: Names = (), labels: Names = (), groups: Names = ()) -> None:
        if not isinstance(df, frames.import_package("dask.dataframe", "dask").DataFrame):
            kind = f"{type(df).__module__.split('.')[0]} {type(df).__name__}"
            raise InputError(
                f"df must be a DataFrame of dask.dataframe, got {kind}; make one, for example with"
                " dask.dataframe.from_pandas(df, npartitions=8) or read_parquet"
            )
        from pandas.api import types

        frames.require_columns([*labels, *groups, *numbers], list(df.columns))
        for name in numbers:
            kind = df.dtypes[name]
            known = (types.is_numeric_dtype, types.is_bool_dtype, types.is_object_dtype)
            if not any(fits(kind) for fits in known) and kind != "category":
                raise InputError(
                    f"column {name!r} must hold numbers, but its type is {kind}; pick another column"
                )

    def source(self, df: Any, columns: Names, anomaly_label: object, called: str) -> Source:
        rows = df[[*columns]]
        if len(columns) == 2:
            return _pairs(rows, anomaly_label)
        name = called or columns[2]
        counted, kind = _first_look(rows, anomaly_label, name)
        found = populations_of(name, [(int(mark), text, n) for (_, text, mark), n in counted.items()])
        return _pairs(_numbered(rows, (name, *found), anomaly_label, kind)[["score", "place"]], 1, found)

    def grouped(self, df: Any, columns: Names, anomaly_label: object) -> "GroupedFrame":
        return GroupedFrame(df[[*columns]], anomaly_label)

    def traffic(self, df: Any, columns: TrafficColumns) -> tuple[Source, int]:
        rows = df[[columns.score, *columns.marks]]
        counted = answered(partial(_count_states, columns), *partitions_of(rows))
        sizes, unscored = columns.counted((state, *pair) for state, pair in enumerate(counted.tolist()))
        meta = {"score": (kind := self.score_type(df, columns.score)), "state": "int64"}
        scored = rows.map_partitions(_in_states, columns, kind, meta=meta).dropna(subset=["score"])
        return _pairs(scored, 1, dict(zip(STATES, sizes, strict=True))), unscored

    def score_type(self, df: Any, score: str) -> ScoreType:
        return column_type(df[score].dtype)

    def decided(self, df: Any, certificate: Any, score: str, group: str | None) -> Any:
        # only the columns that decide: a caller who wants the verdicts alone need not read the others
        rows, meta = df[[*{score, group} - {None}]], {"verdict": "int8", "prediction_set": "string[pyarrow]"}
        made = rows.map_partitions(_decided, _sent_once(certificate), score, group, meta=meta)
        return df.assign(verdict=made["verdict"], prediction_set=made["prediction_set"])

    def numbers(self, df: Any) -> Iterable[Any]:
        return list(df.select_dtypes("number").columns)

    def scored(self, df: Any, detector: Any, features: list[Any], score: str) -> Any:
        scores = df[features].map_partitions(_scored, _sent_once(detector), meta=(score, "float64"))
        return df.assign(**{score: scores})

    @contextmanager
    def reading(self, found: InspectedFiles, master: str | None) -> Iterator[Any]:
        from dask.dataframe import concat

        with _workers(master), _refusing(found.files):
            frame = concat([read(found.reader, *layout, found.wanted) for layout in found.by_layout.items()])
            # texts are parsed once
            yield frame if found.reader == "read_parquet" else frame.persist()

    def marked(self, frame: Any, score: str, choose: Callable[[LabelCounts], Sequence[str]]) -> Any:
        marks = choose(_first_labels(sum_over_partitions(_count_labels, *partitions_of(frame))))
        return frame.assign(label=frame["label"].isin(list(marks)))


ENGINE: Final = _Dask()
calibrate, certify_curve, decide, score = ENGINE.calibrate, ENGINE.certify_curve, ENGINE.decide, ENGINE.score


def _sent_once(value: Any) -> Any:
    """Return a value as a task of its own, which travels once to each worker, not with every partition."""
    from dask import delayed

    return delayed(value, traverse=False)


def answered(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
    """Return the sum of task(number, partition) over some partitions, or an error if they are unreadable."""
    try:
        return sum_over_partitions(task, keys, graph)
    except PACWrapError:
        raise
    except ValueError as error:
        # such as read_csv raises where a column has another type than in the first rows
        reason = str(error).partition("\n")[0].rstrip(".")
        remedy = "fix them, or give each column one type"
        raise InputError(f"the partitions cannot be read: {reason}; {remedy}") from error


def partitions_of(df: Any) -> tuple[list[Any], dict[Any, Any]]:
    """Return the keys of a frame's partitions, and the graph that computes them; see Dask's collections."""
    # tuning would put small files together, and a partition's number would no longer be the one a user sees
    with frames.import_package("dask", "dask").config.set({"optimization.tune.active": False}):
        frame = df.optimize()
    return list(frame.__dask_keys__()), dict(frame.__dask_graph__())


def sum_over_partitions(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
    """Return the sum of task(number, partition) over all partitions, added on the workers in a tree."""
    delayed = frames.import_package("dask.delayed", "dask")
    name = f"pac-wrap-{uuid4().hex}"
    # the task has a key of its own, so that it travels once to each worker
    added: dict[Any, Any] = {name: task}

    def keyed(calls: list[tuple[Any, ...]]) -> list[Any]:
        places = [(name, len(added) + place) for place in range(len(calls))]
        added.update(zip(places, calls, strict=True))
        return places

    keys = keyed([(call, name, number, key) for number, key in enumerate(keys)])
    while len(keys) > 1:
        groups = range(0, len(keys), _TOGETHER)
        keys = keyed([(reduce, add, keys[start : start + _TOGETHER]) for start in groups])
    return delayed.Delayed(keys[0], graph | added).compute()


def _first_look(rows: Any, anomaly_label: object, kinds: str | None = None) -> tuple[Counter[Any], ScoreType]:
    """Return the rows of each group or kind and class, and the type of scores; wrong rows are refused."""
    task = partial(_looked_at, PartitionTask(_rows_of, anomaly_label), kinds)
    first: PartitionAnswer = answered(task, *partitions_of(rows))
    return first.settled(anomaly_label), first.score_type or "float64"


def _rows_of(normal: Scores, anomalous: Scores) -> int:
    return normal.size + anomalous.size


def _looked_at(task: PartitionTask, kinds: str | None, number: int, frame: Any) -> PartitionAnswer:
    answer = answer_of(task, number, frame)
    try:
        found = coded(frame.iloc[:, 2]) if kinds is None else coded_kinds(frame.iloc[:, 2], kinds)
    except InputError as error:
        return PartitionAnswer(None, problem=answer.problem or (number, str(error)))
    if answer.problem is not None or answer.missing:
        return replace(answer, value=None)
    marks = as_anomaly_mask(frame.iloc[:, 1].to_numpy(), task.anomaly_label)
    rows: Counter[tuple[type, Any, bool]] = Counter()  # with its type, since Python holds 1 and true equal
    for mark in (False, True):
        counts = np.bincount(found.codes[marks == mark], minlength=len(found.values)).tolist()
        for value, count in zip(found.values, counts, strict=True):  # two may have one text, or none
            rows[type(value), value, mark] += count
    return replace(answer, value=+rows)


def _pairs(df: Any, anomaly_label: object, found: Mapping[Population, int | None] | None = None) -> Source:
    """Return the scores of a frame whose columns are the scores and the labels, or numbers of populations."""
    keys, graph = partitions_of(df)

    def run(task: PartitionTask, some: list[Any] = keys) -> PartitionAnswer:
        task = replace(task, parts=None if found is None else len(found))
        return cast(PartitionAnswer, answered(partial(answer_of, task), some, graph))

    sample = partial(run, some=keys[len(keys) // 2 :][:1]), len(keys)
    return PartitionSource(run, anomaly_label, sample if len(keys) >= _SAMPLED else None, found)


class GroupedFrame(GroupSource):
    """The labelled scores of a frame by group: one shuffle brings each group into one partition."""

    def __init__(self, rows: Any, anomaly_label: object) -> None:
        counted, self.score_type = _first_look(rows, anomaly_label)
        if not counted:
            raise InputError(NO_SCORES)
        found = merged(np.arange(len(counted)), [value for _, value, _ in counted])
        self.groups, self.n = found.values, np.zeros((2, len(found.values)), dtype=np.int64)
        for code, ((*_, mark), rows_of_it) in zip(found.codes.tolist(), counted.items(), strict=True):
            self.n[int(mark), code] += rows_of_it
        self._rows = _numbered(rows, _sent_once(Lookup(found.values)), anomaly_label, self.score_type)

    def calibrated(self, request: Request) -> Part:
        near = self._rows.shuffle("place", ignore_index=True)
        return Part.joined(answered(partial(_calibrated, request, self.score_type), *partitions_of(near)))

    def pooled(self, places: NDArray[np.int64]) -> Source:
        chosen = self._rows["place"].isin(places.tolist())
        return _pairs(self._rows[chosen][["score", "mark"]], 1)


def _in_states(frame: Any, columns: TrafficColumns, kind: ScoreType) -> Any:
    """Return the score of each point of traffic in a partition, and the number of its state."""
    from pandas import DataFrame

    states = np.full(len(frame), columns.start)
    for name in columns.marks:
        found = coded(frame[name])
        parts = [columns.part_of(name, None if one is None else str(one)) for one in found.values]
        states += np.array(parts or [0])[found.codes]
    return DataFrame({"score": scores_of(frame[columns.score]).astype(kind), "state": states})


def _count_states(columns: TrafficColumns, number: int, frame: Any) -> NDArray[np.int64]:
    """Return how many points are in each state, and how many of them have no score."""
    rows = _in_states(frame, columns, "float64")
    gaps = rows["state"][rows["score"].isna()]
    return np.stack([np.bincount(one, minlength=len(STATES)) for one in (rows["state"], gaps)], axis=1)


def _numbered(rows: Any, known: Any, anomaly_label: object, kind: ScoreType) -> Any:
    """Return the score, the class and the number of the group or population of each row."""
    meta = {"score": kind, "mark": "bool", "place": "int64"}
    return rows.map_partitions(_with_numbers, known, anomaly_label, kind, meta=meta)


def _with_numbers(frame: Any, known: Any, anomaly_label: object, kind: ScoreType) -> Any:
    from pandas import DataFrame

    scores, labels, third = (frame.iloc[:, place] for place in range(3))
    marks = as_anomaly_mask(labels.to_numpy(), anomaly_label)
    if isinstance(known, Lookup):
        places = known.places(third)
    else:
        name, *populations = known
        places = population_codes(populations, marks, coded_kinds(third, name))
    made = {"score": numbers_of(scores).astype(kind), "mark": marks, "place": places}
    return DataFrame(made, index=frame.index)


def _calibrated(request: Request, kind: ScoreType, number: int, frame: Any) -> list[Part]:
    """Return the part of a partition that holds all rows of its groups, if it has any."""
    if frame.empty:
        return []
    places, codes = np.unique(frame["place"].to_numpy(), return_inverse=True)
    scores, marks = scores_of(frame["score"]), frame["mark"].to_numpy()
    block = Block.of(scores, marks, codes.reshape(-1), places.size)
    return [Part.of(request, places, block, kind)]


def _decided(frame: Any, certificate: AnyCertificate, score: str, group: str | None) -> Any:
    from pandas import DataFrame

    scores = scores_of(frame[score])
    if isinstance(certificate, GroupCertificate):
        places = certificate.lookup.places(frame[group])
        verdicts = decided(certificate.rules, scores, places)
        possible = sets_of(certificate.exclusions, scores, places)
    else:
        verdicts, _ = certificate.rule.decided(scores)
        possible = certificate.exclusions.possible(scores, missing_places(scores))
    made = {"verdict": verdicts, "prediction_set": _SETS[possible @ [1, 2]]}
    return DataFrame(made, index=frame.index).astype({"prediction_set": "string[pyarrow]"})


def _scored(frame: Any, detector: Any) -> Any:
    from pandas import Series
    from pandas.api.types import is_extension_array_dtype

    if frame.empty:
        return Series(np.empty(0), index=frame.index)
    rows = frame
    if not frames.knows_names(detector):
        nullable = any(is_extension_array_dtype(kind) for kind in frame.dtypes)
        rows = frame.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else frame.to_numpy()
    return Series(frames.scorer(detector)(rows), index=frame.index)


def answer_of(task: PartitionTask, number: int, frame: Any) -> PartitionAnswer:
    """Return a task's answer for a partition whose columns are the scores and the labels."""
    scores, labels = frame.iloc[:, 0], frame.iloc[:, 1]
    if missing := int(labels.isna().sum()):
        gaps = f"labels of partition {number} must not be missing, got {missing:,} of {labels.size:,}"
        return PartitionAnswer(None, problem=(number, f"{gaps}; drop those rows"))
    values = numbers_of(scores)
    if task.bounds is not None and values.dtype.kind in "biuf":
        inside = np.flatnonzero(within(values, task.bounds))
        values, labels = values[inside], labels.iloc[inside]
    return task(number, values, labels.to_numpy())


def column_type(kind: Any) -> ScoreType:
    """Return the type of scores in a column of this pandas type."""
    plain = getattr(kind, "numpy_dtype", kind)
    return score_type(plain) if isinstance(plain, np.dtype) else "float64"


def numbers_of(column: Any) -> NDArray[Any]:
    """Return a column as an array with NaN for missing values; columns without numbers stay as they are."""
    from pandas.api import types

    kind = column.dtype
    if types.is_object_dtype(kind):
        column = column.where(column.notna(), np.nan).infer_objects()
    elif types.is_extension_array_dtype(kind) and (types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)):
        return np.asarray(column.to_numpy(dtype=column_type(kind), na_value=np.nan))
    return np.asarray(column.to_numpy())


def scores_of(column: Any) -> Scores:
    """Return the scores of a column, NaN if missing."""
    return as_scores(numbers_of(column), f"column {column.name!r}", missing=True)


_BLOCK: Final = 1 << 25
_SAMPLE: Final = 1 << 20
# the errors of the readers of pandas and Arrow for damaged or foreign files
_ILL_FORMED: Final = (ValueError, TypeError, AttributeError, LookupError, OSError, NotImplementedError)


@contextmanager
def _workers(master: str | None) -> Iterator[None]:
    """Compute on the workers of a scheduler, or else in threads of this process."""
    config = frames.import_package("dask", "dask").config
    if master is None:
        # the work is Arrow's and NumPy's, which let threads run; processes would cost seconds to start
        with config.set(scheduler="threads"):
            yield
        return
    try:
        # one that is made the default and then not reached would stay the default
        client = frames.import_package("distributed", "dask").Client(master, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"there is no Dask scheduler at {master}: {reason}; check its address") from error
    with client, client.as_current(), config.set(scheduler="dask.distributed"):
        yield


@contextmanager
def _refusing(files: Sequence[Path]) -> Iterator[None]:
    """Report errors about files in one sentence; the advice of Dask does not help the user."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="dask")
            yield
    except PACWrapError:
        raise
    except _ILL_FORMED as error:
        reason = str(error).rpartition("Original Message: ")[2].strip().partition("\n")[0]
        raise InputError(f"cannot read {', '.join(map(str, files))}: {reason}") from error


def read(reader: str, layout: Layout, files: Sequence[Path], wanted: tuple[str, ...]) -> Any:
    """Return the scores and labels in files of one layout, in the form of `score_and_label`."""
    readers = frames.import_package("dask.dataframe", "dask")
    paths, columns = [escape(str(file.absolute())) for file in files], list(wanted)
    meta = dict.fromkeys(("score", "label", "group")[: len(wanted)], "category") | {"score": "float64"}
    packing: dict[str, Any] = {"compression": "gzip" if layout.packed else None}
    packing["blocksize"] = None if layout.packed or layout.array else _BLOCK
    if reader == "read_json":
        engine = partial(_read_json, wanted=wanted)
        return readers.read_json(paths, lines=not layout.array, engine=engine, meta=meta, **packing)
    if reader == "read_parquet":
        # the name of a folder is no column
        kinds = {"dtype_backend": "pyarrow", "dataset": {"partitioning": None}}
        frame = readers.read_parquet(paths, columns=columns, blocksize=_BLOCK, **kinds)
    else:
        # of the parsers that pandas has, Arrow's alone refuses rows that are too short
        how = {"dtype": str, "keep_default_na": False, "na_values": [""], "engine": "pyarrow"} | packing
        how |= {"usecols": columns, "sample": _SAMPLE, "encoding": "utf-8"}
        frame = readers.read_csv(paths, sep=layout.delimiter, **how)
    return frame.map_partitions(score_and_label, *wanted, meta=meta)


def _read_json(file: Any, orient: str, lines: bool, wanted: tuple[str, ...]) -> Any:
    import pyarrow as pa

    content = BytesIO(file.read().encode())
    rows = JsonRows(content, read_start(content), on_lines=lines)
    batches = list(rows)
    scores = [rows.numbers(wanted[0], batch) for batch in batches]
    columns: dict[str, Any] = {}
    for name in wanted[0 if None in scores else 1 :]:  # the scores too if there are texts among them
        texts = chain.from_iterable(rows.column(name, batch) for batch in batches)
        columns[name] = pa.array(texts, pa.string())
    if None not in scores:
        columns[wanted[0]] = pa.array([one for some in scores for one in some or ()], pa.float64())
    return score_and_label({name: pa.chunked_array([one]) for name, one in columns.items()}, *wanted)


def score_and_label(frame: Any, score: str, label: str, *group: str) -> Any:
    """Return the exact scores of a partition, its labels as texts, and its groups as categories."""
    from pandas import DataFrame

    scores, labels = exact_numbers(_arrow(frame[score]), score), label_texts(_arrow(frame[label]))
    found = DataFrame({"score": scores, "label": labels})
    return found.assign(group=_categories(_arrow(frame[group[0]]))) if group else found


def _categories(column: Any) -> Any:
    """Return an Arrow column as pandas' categories, which are its values."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(column.type):
        # one zero, and what is no number is missing
        unsigned = compute.add(column, pa.scalar(0.0, column.type))
        column = compute.if_else(compute.is_nan(column), None, unsigned)
    return column.unify_dictionaries().combine_chunks().dictionary_encode().to_pandas()


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    found = column if isinstance(column, pa.ChunkedArray) else pa.array(column, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def exact_numbers(column: Any, name: str) -> Floats:
    """Return an Arrow column as float64, or float32 if it is no wider, NaN where it is empty."""
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
        texts = column.cast(pa.string()).to_pylist()
        values = [number(text or "") for text in texts]
        if None in values:
            wrong = texts[values.index(None)]
            raise InputError(f"column {name!r} must hold numbers, got {wrong!r:.60}; fix that row") from None
        return np.array(values)


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


def _first_labels(counts: Mapping[str | None, int]) -> LabelCounts:
    """Return how often the first few labels occur, in the order of their texts; no label comes last."""
    return sorted(counts.items(), key=lambda pair: (pair[0] is None, pair[0] or ""))[:LOOKED_AT]


def _count_labels(number: int, frame: Any) -> Counter[str | None]:
    labels = frame["label"].array
    counts = np.bincount(labels.codes + 1, minlength=len(labels.categories) + 1).tolist()
    names = [None, *labels.categories]
    # a label that is among the first few of all is so in every partition that holds it
    return Counter(dict(_first_labels(+Counter(dict(zip(names, counts, strict=True))))))
