"""Spark: calibrate, decide and score DataFrames.

Only DataFrames are used, no RDDs, so that Spark Connect works. Only `score` and `calibrate` by group need
Python workers, and pac_wrap where they run.
"""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial, reduce
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from pac_wrap.base.arguments import Scores, as_anomaly_mask
from pac_wrap.base.files import scratch_folder
from pac_wrap.base.floats import ScoreType, just_below
from pac_wrap.engines import frames
from pac_wrap.engines.files import InspectedFiles, Layout
from pac_wrap.engines.frames import Names
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import MOST_KINDS
from pac_wrap.method.groups import values
from pac_wrap.method.groups.calibrate import GroupSource, Part, whole_groups
from pac_wrap.method.kinds import not_kinds, populations_of
from pac_wrap.method.promise import Population
from pac_wrap.method.source import CountedSource, Source
from pac_wrap.method.traffic.calibrate import STATES
from pac_wrap.ranks.counted import Cells, Grid, Piece, Sample, Some
from pac_wrap.tables import sql
from pac_wrap.tables.columns import BLANKS, LOOKED_AT, NUMBER, LabelCounts, TrafficColumns
from pac_wrap.tables.files.text_format import JsonRows, read_start

# rows in the sample, and how many of the first are looked at; so much more there may be
_POINTS: Final = 1 << 14
_FIRST: Final = 1 << 16
_MORE: Final = 1 << 10
# what stands in place of a cell
_NO_LABEL, _STRANGE_LABEL, _NO_SCORE = -3, -2, -1
_MISSING: Final = "score IS NULL OR isnan(score)"
_COUNTED: Final = "count(*) AS scores", "min(score) AS least", "max(score) AS greatest"
# the parts of a hash, by the bits to their right: small enough for 2^41 of them to be added up
_PARTS: Final = {0: (1 << 22) - 1, 22: (1 << 21) - 1, 43: (1 << 21) - 1}
# pieces of a grid that are spelled out; more would be too long for Java's compiler
_SPELLED: Final = 8
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_TEXTS: Final = ("string", "char", "varchar")
# the column that a small table is joined by; no frame has one of this name
_OWN: Final = "pac-wrap group"
_NUMBERS: Final = (*_WHOLE, "float", "double", "decimal")
_SCORES: Final = (*_NUMBERS, "boolean")
_LABELS: Final = (*_SCORES, *_TEXTS)
_KINDS: Final = (*_TEXTS, *_WHOLE, "boolean", "date")
# the types of groups: what Spark and Arrow call them, and what reads a text
_GROUPS: Final[dict[str, tuple[str, str, Callable[[str], Any]]]] = {
    **dict.fromkeys(_TEXTS, ("STRING", "string", str)),
    **dict.fromkeys(_WHOLE, ("BIGINT", "int64", int)),
    **dict.fromkeys(("float", "double"), ("DOUBLE", "float64", float)),
    "boolean": ("BOOLEAN", "bool", {"true": True, "false": False}.__getitem__),
    "date": ("DATE", "date32", date.fromisoformat),
}
# the kinds of both classes, and the rows of both without one
_LISTED: Final = 2 * MOST_KINDS + 2


class _Spark(frames.Engine):
    packages = ("pyspark", "pandas", "pyarrow")

    def check(self, df: Any, numbers: Names = (), labels: Names = (), groups: Names = ()) -> None:
        if not isinstance(df, frames.import_package("pyspark.sql", "spark").DataFrame):
            kind = f"{type(df).__module__.split('.')[0]} {type(df).__name__}"
            raise InputError(f"df must be a DataFrame of Spark, got {kind}; try spark.createDataFrame(df)")
        frames.require_columns([*numbers, *labels, *groups], df.columns)
        types: dict[str, str] = dict(df.dtypes)
        for names, known, rule in (
            (numbers, _SCORES, "numbers"),
            (labels, _LABELS, "labels: numbers, booleans or texts"),
            (groups, _GROUPS, "groups: texts, numbers, dates or booleans"),
        ):
            for name in names:
                if base_type(kind := types[name]) not in known:
                    wrong = f"column {name!r} must hold {rule}, but its type is {kind}"
                    raise InputError(f"{wrong}; pick another column")

    def source(self, df: Any, columns: Names, anomaly_label: object, called: str) -> Source:
        score, label, *kind = columns
        score_type, pairs = self.score_type(df, score), _pairs(df, score, label)
        if not kind:
            return CountedSource(SparkCounts(df.selectExpr(*pairs), score_type, anomaly_label))
        name, found_type = called or kind[0], dict(df.dtypes)[kind[0]]
        if base_type(found_type) not in _KINDS:
            raise not_kinds(name, found_type)
        # without a collation, which would take other texts for the same kind
        text = f"nullif(CAST({sql.quote_name(kind[0], 'spark')} AS STRING), '') AS kind"
        rows = df.selectExpr(*pairs, text)
        mark = SparkCounts(rows.select("score", "label"), score_type, anomaly_label).mark()
        marked = rows.selectExpr("score", f"{mark} AS label", "kind")
        found = fetched(marked.groupBy("label", "kind").count().limit(_LISTED + 1))
        if found.num_rows > _LISTED:
            raise InputError(
                f"column {name!r} must name at most {MOST_KINDS} kinds of a class, got more; merge some kinds"
            )
        counted = (found.column(one).to_pylist() for one in ("label", "kind", "count"))
        known = populations_of(name, [*zip(*counted, strict=True)])
        texts = ("" if one.kind is None else f" AND kind = {literal(one.kind, 'string')}" for one in known)
        cases = [
            f"WHEN label = {int(one.label == 'anomalous')}{text} THEN {code}"
            for code, (one, text) in enumerate(zip(known, texts, strict=True))
        ]
        coded = marked.selectExpr("score", f"CASE {' '.join(cases)} END AS label")
        return CountedSource(SparkCounts(coded, score_type, 1, len(known)), known)

    def grouped(self, df: Any, columns: Names, anomaly_label: object) -> "GroupedFrame":
        score, label, group = columns
        rows = df.selectExpr(*_pairs(df, score, label), f"{group_sql(df, group)} AS value")
        return GroupedFrame(rows, self.score_type(df, score), anomaly_label)

    def traffic(self, df: Any, columns: TrafficColumns) -> tuple[Source, int]:
        names = {name: sql.quote_name(name, "spark") for name in columns.marks}
        review, audit = (None if name is None else names[name] for name in columns[1:])
        state, scores = sql.state_sql(review, audit, "spark"), f"{_double(columns.score)} AS score"
        rows = df.selectExpr(scores, f"{state} AS label")
        counted = fetched(_summed(rows, ("label",), "count(*) AS rows", f"count_if({_MISSING}) AS gaps"))
        found = counted.to_pylist()
        if any(one["label"] is None for one in found):
            marks = [f"CAST({name} AS STRING) AS {name}" for name in names.values()]
            for row in fetched(df.where(f"({state}) IS NULL").selectExpr(*marks).limit(1)).to_pylist():
                for column, text in row.items():
                    columns.part_of(column, text)
        sizes, unscored = columns.counted((one["label"], one["rows"], one["gaps"]) for one in found)
        known: dict[Population, int | None] = dict(zip(STATES, sizes, strict=True))
        scored, kind = rows.where(f"NOT ({_MISSING})"), self.score_type(df, columns.score)
        return CountedSource(SparkCounts(scored, kind, 1, len(known)), known), unscored

    def score_type(self, df: Any, score: str) -> ScoreType:
        return "float32" if dict(df.dtypes)[score] == "float" else "float64"

    def decided(self, df: Any, certificate: Any, score: str, group: str | None) -> Any:
        if group is None:
            rows, every = df, "*"
            verdict = sql.verdict_sql(certificate.rule, score, "spark")
            labels = sql.prediction_set_sql(certificate.exclusions, score, "spark")
        else:
            import pyarrow as pa

            _, arrow, read_text = _GROUPS[base_type(dict(df.dtypes)[group])]
            of_group = {}
            for place, text in enumerate(values.texts_of(certificate.groups)):
                # a group of another type than the column's is none of its values
                with suppress(ValueError, LookupError):
                    value = None if text is None else read_text(text)
                    if values.text_of(values.as_group(value)) == text:
                        of_group[place] = value
            ends = zip(sql.ENDS, (*certificate.rules, *certificate.exclusions), strict=True)
            known = pa.array(of_group.values(), type=pa.type_for_alias(arrow))
            rules = known, {name: column[[*of_group]] for name, column in ends}
            rows, every = _joined(df.alias("given"), group_sql(df, group), *rules), "given.*"
            verdict, labels = sql.answers_sql(sql.compared_column(score, "spark"), "spark")
        return rows.selectExpr(every, f"CAST({verdict} AS TINYINT) AS verdict", f"{labels} AS prediction_set")

    def numbers(self, df: Any) -> Iterable[Any]:
        return [name for name, kind in df.dtypes if base_type(kind) in _NUMBERS]

    def scored(self, df: Any, detector: Any, features: list[Any], score: str) -> Any:
        import pandas as pd
        from pyspark.sql import functions

        scores, named = frames.scorer(detector), frames.knows_names(detector)

        def batches(parts: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
            for frame in parts:
                rows = frame if named else frame.to_numpy()
                yield pd.Series(scores(rows) if len(frame) else [], dtype=float)

        row = functions.struct(*(functions.expr(_double(name)).alias(name) for name in features))
        return df.withColumn(score, functions.pandas_udf(batches, "double")(row))

    @contextmanager
    def reading(self, found: InspectedFiles, master: str | None) -> Iterator[Any]:
        for file in found.files:
            if file.name.startswith(("_", ".")) or ":" in file.name:
                rule = "Spark reads no file whose name starts with _ or a dot or has a colon"
                raise InputError(f"{rule}, such as {file}; rename it")
        score, label, *group = found.wanted
        with spark_session(master) as session, _refusing(found.files):
            layouts = found.by_layout.items()
            read_in = [read(session, found.reader, *layout, found.wanted) for layout in layouts]
            narrow = all(dict(one.dtypes).get(score) == "float" for one in read_in)
            parts = [score_and_label(one, score, label, narrow, group) for one in read_in]
            kinds = [*dict.fromkeys(kind for one in parts for _, kind in one.dtypes[3:])]
            if len(kinds) > 1:
                found_types = " and ".join(kinds[:2])
                raise InputError(
                    f"the groups must have one type in all files, got {found_types}; convert the column"
                )
            frame = reduce(lambda one, other: one.unionAll(other), parts)
            if found.reader != "read_parquet":  # texts are parsed once
                frame = frame.persist()
            try:
                yield frame
            finally:
                frame.unpersist()

    def marked(self, frame: Any, score: str, choose: Callable[[LabelCounts], Sequence[str]]) -> Any:
        from pyspark.sql import functions

        counted = _summed(frame, ("label",), "count(*) AS n", "count(bad) AS wrong", "min(bad) AS bad")
        rows = counted.orderBy("label").limit(LOOKED_AT).collect()
        if wrong := sum(row.wrong for row in rows):
            example = min(row.bad for row in rows if row.wrong)
            others = f" and {wrong - 1:,} more" if wrong > 1 else ""
            raise InputError(
                f"column {score!r} must hold numbers, got {example!r:.60}{others}; fix those rows"
            )
        listed = ", ".join(literal(mark, "string") for mark in choose([(row.label, row.n) for row in rows]))
        return frame.drop("bad").withColumn("label", functions.expr(f"label IN ({listed})"))


ENGINE: Final = _Spark()
calibrate, certify_curve, decide, score = ENGINE.calibrate, ENGINE.certify_curve, ENGINE.decide, ENGINE.score


def _pairs(df: Any, score: str, label: str) -> tuple[str, str]:
    name = sql.quote_name(label, "spark")
    # without a collation, which would take other texts for the same label
    plain = name if base_type(dict(df.dtypes)[label]) in _SCORES else f"CAST({name} AS STRING)"
    return f"{_double(score)} AS score", f"{plain} AS label"


def _double(column: str) -> str:
    return f"CAST({sql.quote_name(column, 'spark')} AS DOUBLE)"


class SparkCounts:
    """The columns `score` (double) and `label`, or numbers of populations, counted in place."""

    def __init__(self, pairs: Any, kind: ScoreType, anomaly_label: object, parts: int | None = None) -> None:
        self.score_type, self._anomaly_label = kind, anomaly_label
        self._pairs, self._numbers, self._count = pairs, parts, parts or 2
        self._kind = dict(pairs.dtypes)["label"]
        # labels that are known, and whether each marks an anomaly
        self._labels: dict[Any, int] = {}
        self._learn(_usual(anomaly_label, self._kind) if parts is None else range(parts))

    def guess(self) -> Sample:
        rows = fetched(self._pairs.limit(_FIRST))
        return Sample(self._classes(rows), 1.0 if rows.num_rows < _FIRST else 1.0 / _MORE)

    def sample(self) -> Sample:
        # a row that comes late must draw a small one to be looked at, so that few are sorted: its place is
        # that in its partition, times more in later ones; if those are by far the largest, the sample is a
        # worse one
        place = "monotonically_increasing_id()"
        drawn = self._pairs.selectExpr("score", "label", "rand(0) AS drawn", f"{place} AS place")
        late = "drawn * (1 + (place & 8589934591))"
        near = drawn.where(f"{late} * {late} * (1 + shiftright(place, 33)) < {_POINTS**2}")
        rows = fetched(near.orderBy("drawn").limit(_POINTS).select("score", "label", "drawn"))
        # as many draws as rows are below the greatest of them, so that says how many there are in all
        part = float(rows.column("drawn").to_numpy().max()) if rows.num_rows == _POINTS else 1.0
        return Sample(self._classes(rows), part)

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, ...]]:
        parts = _PARTS.items()
        sums = [f"sum(shiftrightunsigned(hash, {one}) & {mask}) AS hash_{one}" for one, mask in parts]
        while True:
            pieces = self._pairs.selectExpr("score", f"{self._class} AS class", f"{_piece(grid)} AS piece")
            number = f"WHEN {_MISSING} THEN {_NO_SCORE} ELSE {self._number(grid)} END AS number"
            cell = f"CASE WHEN class < 0 THEN class {number}"
            numbered = pieces.selectExpr("score", cell, "xxhash64(score) AS hash")
            rows = fetched(_summed(numbered, ("number",), *_COUNTED, *sums))
            numbers, counts = (rows.column(name).to_numpy() for name in ("number", "scores"))
            wrong = dict(zip(numbers[numbers < 0].tolist(), counts[numbers < 0].tolist(), strict=True))
            total = int(counts.sum())
            _refuse_gaps(total, labels=wrong.get(_NO_LABEL, 0))
            if _STRANGE_LABEL not in wrong:
                break
            # the sample had none of these
            strangers = self._pairs.where(f"{self._class} = {_STRANGE_LABEL}").select("label").limit(1)
            self._learn(fetched(strangers).column("label").to_pylist())
        _refuse_gaps(total, scores=wrong.get(_NO_SCORE, 0))
        hashes = [0] * self._count
        for shift in _PARTS:
            for number, part in zip(numbers.tolist(), rows.column(f"hash_{shift}").to_pylist(), strict=True):
                hashes[number % self._count] += part << shift
        return self._cells(rows), tuple(hashes)

    def count(self, grid: Grid, within: Some) -> Cells:
        inside = self._inside(within).selectExpr("score", "class", f"{_piece(grid)} AS piece")
        # what tells a score from others of its number, where each is its own cell
        listed = sql.between("score", tuple((low, just_below(high)) for low, high in grid.listed))
        alone = f"IF({listed}, score, 0D)" if grid.listed else "0D"
        numbered = inside.selectExpr("score", f"{self._number(grid)} AS number", f"{alone} AS alone")
        return self._cells(fetched(_summed(numbered, ("number", "alone"), *_COUNTED).drop("alone")))

    def gather(self, within: Some) -> Cells:
        rows = fetched(self._inside(within).selectExpr("CAST(class AS TINYINT) AS class", "score"))
        labels, scores = (rows.column(name).to_numpy() for name in ("class", "score"))
        pairs = [np.unique(scores[labels == label], return_counts=True) for label in range(self._count)]
        scores, counts = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        labels = np.repeat(np.arange(self._count), [pair[0].size for pair in pairs])
        return Cells(labels, np.zeros_like(labels), counts, scores, scores)

    def _classes(self, rows: Any) -> list[Scores]:
        """Return the known scores of each class, from rows with a score and a label; learn the labels."""
        labels = rows.column("label").combine_chunks().dictionary_encode()
        self._learn(label for label in labels.dictionary.to_pylist() if label is not None)
        marks = np.array([self._labels[label] for label in labels.dictionary.to_pylist()] or [0])
        mark, scores = marks[labels.indices.fill_null(0).to_numpy()], rows.column("score").to_numpy()
        known = ~np.isnan(scores) & labels.is_valid().to_numpy(zero_copy_only=False)
        return [scores[known & (mark == label)] for label in range(self._count)]

    def mark(self) -> str:
        """Return the expression that is 1 for anomalies and 0 for normal points; refuse other labels."""
        counted = _summed(self._pairs, ("label",), "count(*) AS rows", f"count_if({_MISSING}) AS gaps")
        rows = fetched(counted.limit(LOOKED_AT))
        labels, total = rows.column("label").to_pylist(), sum(rows.column("rows").to_pylist())
        counts = dict(zip(labels, rows.column("rows").to_pylist(), strict=True))
        _refuse_gaps(total, labels=counts.pop(None, 0))
        self._learn(counts)
        _refuse_gaps(total, scores=sum(rows.column("gaps").to_pylist()))
        return self._class

    def _learn(self, labels: Iterable[Any]) -> None:
        known = [*dict.fromkeys([*self._labels, *labels])]
        if self._numbers is not None:
            self._labels = {label: int(label) for label in known}
            return
        marks = as_anomaly_mask(np.array(known, dtype=object), self._anomaly_label).tolist()
        self._labels = dict(zip(known, marks, strict=True))

    @property
    def _class(self) -> str:
        """The expression for the class of a row, or the code of a wrong label."""
        known = self._labels.items()
        cases = [f"WHEN label = {literal(label, self._kind)} THEN {int(mark)}" for label, mark in known]
        return f"CASE WHEN label IS NULL THEN {_NO_LABEL} {' '.join(cases)} ELSE {_STRANGE_LABEL} END"

    def _inside(self, within: Some) -> Any:
        near = self._pairs.where(sql.between("score", within.bounds))
        rows = near.selectExpr("score", f"{self._class} AS class", f"{_piece(within.grid)} AS piece")
        numbers = ", ".join(str(self._count * cell + label) for label, cell in within.cells)
        return rows.where(f"{self._number(within.grid)} IN ({numbers})").select("score", "class")

    def _cells(self, rows: Any) -> Cells:
        numbers = rows.column("number").to_numpy().astype(np.int64)
        counts, least, greatest = (rows.column(name).to_numpy() for name in ("scores", "least", "greatest"))
        return Cells(numbers % self._count, numbers // self._count, counts, least, greatest)

    def _number(self, grid: Grid) -> str:
        """Return the expression for a score's cell number times the number of classes, plus the class."""
        pieces, spelled = _pieces(grid)
        if spelled:
            cells = [_cell(*map(_exact, piece)) for piece in pieces]
            return f"(class + {self._count} * {_halved(grid.knots, cells)})"
        # the arrays are constants to Spark
        columns = (f"array({', '.join(map(_exact, column))})[piece]" for column in zip(*pieces, strict=True))
        return f"(class + {self._count} * {_cell(*columns)})"


def _summed(frame: Any, by: Sequence[str], *sums: str) -> Any:
    from pyspark.sql import functions

    return frame.groupBy(*by).agg(*map(functions.expr, sums))


def _refuse_gaps(total: int, *, labels: int = 0, scores: int = 0) -> None:
    if labels:
        raise InputError(f"labels must not be missing, got {labels:,} of {total:,}; drop those rows")
    if scores:
        raise InputError(
            f"scores must not be empty or NaN, got {scores:,} of {total:,}; drop those rows or make the"
            " detector score them"
        )


def fetched(frame: Any) -> Any:
    """Return a small frame as an Arrow table; nothing else reaches the driver."""
    return frame.toArrow()


def _pieces(grid: Grid) -> tuple[list[Piece], bool]:
    """Return the pieces of a grid, with the one below the first knot, and whether they are spelled out."""
    pieces = [Piece(0.0, 0.0, 0, 1), *grid.pieces]
    return pieces, sum(piece.cells > 1 for piece in pieces) <= _SPELLED


def _piece(grid: Grid) -> str:
    """Return the expression for the number of a score's piece, which `_number` may need."""
    places = [str(place) for place in range(len(grid.knots) + 1)]
    return "0" if _pieces(grid)[1] else _halved(grid.knots, places)


def _cell(low: str, scale: str, first: str, cells: str) -> str:
    """Return the expression for the number of a cell: that of `Piece`."""
    if cells in ("0", "1"):
        return first
    step = f"CAST(least(floor((score - {low}) * {scale}), {cells} - 1) AS INT)"
    return f"({first} + IF({cells} <= 1, 0, {step}))"


def _halved(knots: Sequence[float], leaves: Sequence[str]) -> str:
    """Return the expression that picks a leaf by the number of knots at or below a score."""
    if not knots:
        return leaves[0]
    middle = len(knots) // 2
    below, above = _halved(knots[:middle], leaves), _halved(knots[middle + 1 :], leaves[middle + 1 :])
    return f"IF(score < {sql.quote_number(knots[middle])}, {below}, {above})"


def _exact(number: float) -> str:
    return sql.quote_number(number) if isinstance(number, float) else str(number)


def _usual(anomaly_label: object, kind: str) -> Sequence[Any]:
    """Return the usual labels of a column of this type, so that rare labels are known too."""
    if kind == "string":
        return [anomaly_label] if isinstance(anomaly_label, str) else []
    if type(anomaly_label) is not int or anomaly_label not in (1, -1):
        return []
    flags = kind == "boolean" and anomaly_label == 1
    return [False, True] if flags else [int(anomaly_label < 0), anomaly_label]


def literal(label: Any, kind: str) -> str:
    """Return a label as an expression of its column's type; the bytes of a text need no escapes."""
    if isinstance(label, str):
        return f"CAST(X'{label.encode().hex()}' AS STRING)"
    return f"CAST('{label}' AS {kind})"


def base_type(kind: str) -> str:
    """Return the name of a Spark type without its length or collation."""
    return kind.partition("(")[0].partition(" ")[0]


def group_sql(df: Any, group: str) -> str:
    """Return the expression for the group of a row, NULL if it is missing."""
    column, (kind, *_) = sql.quote_name(group, "spark"), _GROUPS[base_type(dict(df.dtypes)[group])]
    value = f"CAST({column} AS {kind})"
    return f"IF(isnan({column}), NULL, {value})" if kind == "DOUBLE" else value


class GroupedFrame(GroupSource):
    """The labelled scores of a frame by group: one shuffle brings the rows of each group together."""

    def __init__(self, rows: Any, score_type: ScoreType, anomaly_label: object) -> None:
        self.score_type = score_type
        mark = SparkCounts(rows.select("score", "label"), self.score_type, anomaly_label).mark()
        counted = _summed(rows, ("value",), "count(*) AS rows", f"count_if({mark} = 1) AS anomalous")
        known = fetched(counted.limit(values.MOST_GROUPS + 1))
        if not known.num_rows:
            raise InputError(values.NO_SCORES)
        if known.num_rows > values.MOST_GROUPS:
            raise values.too_many(values.MOST_GROUPS)
        found = values.merged(np.arange(known.num_rows), known.column("value").to_pylist())
        places = known.column("value"), {"place": found.codes}
        self._numbered = _joined(rows.selectExpr("score", f"{mark} = 1 AS mark", "value"), "value", *places)
        self.groups, self.n = found.values, np.zeros((2, len(found.values)), dtype=np.int64)
        both, anomalous = (known.column(name).to_numpy() for name in ("rows", "anomalous"))
        np.add.at(self.n[0], found.codes, both - anomalous)
        np.add.at(self.n[1], found.codes, anomalous)

    def calibrated(self, request: Request) -> Part:
        near = self._numbered.select("place", "score", "mark").repartition("place")
        # by one whole number Spark sorts without comparisons; a group's scores are sorted where they arrive
        kinds = ", ".join(f"row_{row} BIGINT" for row in range(Part.ROWS))
        task = partial(_calibrated, request, self.score_type)
        made = near.sortWithinPartitions("place").mapInArrow(task, kinds)
        return Part.from_flat(np.array([column.to_numpy() for column in fetched(made).columns]))

    def pooled(self, places: Any) -> Source:
        import pyarrow as pa
        from pyspark.sql import functions

        few = self._numbered.sparkSession.createDataFrame(pa.table({"place": places}))
        rows = self._numbered.join(functions.broadcast(few), "place", "left_semi")
        return CountedSource(SparkCounts(rows.selectExpr("score", "mark AS label"), self.score_type, 1))


def _calibrated(request: Request, score_type: ScoreType, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the columns of the groups of a partition; called in a worker."""
    import pyarrow as pa

    rows = (tuple(one.to_numpy(zero_copy_only=False) for one in batch.columns) for batch in batches)
    for places, block in whole_groups(rows):
        flat = Part.of(request, places, block, score_type).flat()
        yield pa.RecordBatch.from_arrays([*map(pa.array, flat)], [f"row_{row}" for row in range(Part.ROWS)])


def _joined(frame: Any, value: str, groups: Any, columns: dict[str, Any]) -> Any:
    """Return a frame in which each row also has the columns of its group."""
    import pyarrow as pa
    from pyspark.sql import functions

    small = frame.sparkSession.createDataFrame(pa.table({_OWN: groups, **columns}))
    same = functions.expr(f"{value} <=> {sql.quote_name(_OWN, 'spark')}")
    return frame.join(functions.broadcast(small), same, "left")


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
def spark_session(master: str | None = None) -> Iterator[Any]:
    """Yield the active session; without one, start a quiet session and stop it afterwards."""
    builder = frames.import_package("pyspark.sql", "spark").SparkSession
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
    errors = frames.import_package("pyspark.errors", "spark")
    py4j = frames.import_package("py4j.protocol", "spark")
    try:
        with _silenced():
            session = builder.getOrCreate()
    except errors.PySparkRuntimeError as error:
        raise MissingExtraError(f"Spark did not start: it needs Java 17 or later; {remedy}") from error
    except (errors.PySparkException, py4j.Py4JError) as error:
        raise InputError(f"Spark did not start with the master {master}: {_reason(str(error))}") from error
    if master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        # JSON is read by this package, which another interpreter may lack
        session.sparkContext.pythonExec = sys.executable
    return session


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard the output of new processes: Java keeps the outputs with which it was started."""
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


def read(session: Any, reader: str, layout: Layout, files: Sequence[Path], wanted: tuple[str, ...]) -> Any:
    """Return a frame of files of one layout, in which CSV and JSON are texts."""
    # Spark neither takes these for patterns nor looks for them in another file system
    paths = ["file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(file.absolute())) for file in files]
    if reader == "read_parquet":
        return session.read.parquet(*paths)
    if reader == "read_json":  # Spark's own reader would write numbers anew, and take a name twice
        schema = ", ".join(f"{sql.quote_name(name, 'spark')} STRING" for name in wanted)
        lines = session.read.text(paths, wholetext=layout.array, lineSep=None if layout.array else "\n")
        return lines.mapInArrow(partial(_objects, wanted, not layout.array), schema)
    strict = session.read.option("mode", "FAILFAST")
    # by place, since Spark takes names that differ in case for one
    schema = ", ".join(f"c{place} STRING" for place in range(len(layout.names)))
    picked = [f"c{layout.names.index(name)} AS {sql.quote_name(name, 'spark')}" for name in wanted]
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


def score_and_label(frame: Any, score: str, label: str, narrow: bool, group: Sequence[str] = ()) -> Any:
    """Return the columns score, bad (a score that is not a number), label in lower case, and group."""
    # unless all files have float32 it is a double: Spark would make float32 of whole numbers too
    texts = dict(frame.dtypes)[score] == "string"
    ENGINE.check(frame, [] if texts else [score], [label], group)
    name = sql.quote_name(score, "spark")
    text = sql.without_case_sql(f"CAST({sql.quote_name(label, 'spark')} AS STRING)", "spark")
    others = [f"{text} AS label", *(f"{group_sql(frame, one)} AS group" for one in group)]
    if not texts:
        number = name if narrow else f"CAST({name} AS DOUBLE)"
        return frame.selectExpr(f"{number} AS score", "CAST(NULL AS STRING) AS bad", *others)
    trimmed = f"trim(BOTH '{BLANKS}' FROM lower({name}))"
    # Java knows no sign of NaN
    number = f"IF({trimmed} RLIKE '^[+-]?nan$', CAST('NaN' AS DOUBLE), try_cast({name} AS DOUBLE))"
    # Java reads more as a number, 1.0d for one
    wrong = f"{name} IS NOT NULL AND ({number} IS NULL OR NOT {trimmed} RLIKE '^({NUMBER})$')"
    return frame.selectExpr(f"{number} AS score", f"IF({wrong}, {name}, NULL) AS bad", *others)


@contextmanager
def _refusing(files: Sequence[Path]) -> Iterator[None]:
    """Report Spark's errors about files in one sentence, and silence its warnings about pandas."""
    errors = frames.import_package("pyspark.errors", "spark")
    py4j = frames.import_package("py4j.protocol", "spark")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        try:
            yield
        except (errors.PySparkException, py4j.Py4JError) as error:
            names = ", ".join(map(str, files))
            raise InputError(f"Spark cannot read {names}: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    useful = re.compile(r"[\w.]*(Exception|Error): |\[[A-Z_.]+\]")
    lines = [line for line in map(str.strip, message.splitlines()) if useful.match(line)]
    return lines[-1] if lines else message.partition("\n")[0]
