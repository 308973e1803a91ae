"""Labelled scores in a Spark DataFrame, counted by Spark's own expressions: no row goes through Python.

Only operations that Spark Connect has too, and no setting that ANSI mode would change.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Final

import numpy as np

from pac_wrap.base.arguments import Scores, ScoreType, as_anomaly_mask
from pac_wrap.base.floats import just_below, order_key
from pac_wrap.engines.frames import import_package
from pac_wrap.errors import InputError
from pac_wrap.ranks.spread import Cells, Grid, Piece, Sample, Some
from pac_wrap.tables.columns import LOOKED_AT
from pac_wrap.tables.sql.expressions import between, quote_number

# rows in the sample, and how many of the first are looked at; so much more there may be
_POINTS: Final = 1 << 14
_FIRST: Final = 1 << 16
_MORE: Final = 1 << 10
# what stands in place of a cell
_NO_LABEL, _STRANGE_LABEL, _NO_SCORE = -3, -2, -1
_MISSING: Final = "score IS NULL OR isnan(score)"
# the parts of a hash, by the bits to their right: small enough for 2^41 of them to be added up
_PARTS: Final = {0: (1 << 22) - 1, 22: (1 << 21) - 1, 43: (1 << 21) - 1}
# pieces of a grid that are spelled out; more would be too long for Java's compiler
_SPELLED: Final = 8
# knots of a grid between which rows are added up, rather than grouped
_SUMS: Final = 12


class SparkCounts:
    """The columns `score` (double) and `label` of a frame, counted where they are."""

    def __init__(self, pairs: Any, score_type: ScoreType, anomaly_label: object) -> None:
        self.score_type, self._anomaly_label = score_type, anomaly_label
        self._pairs = pairs
        self._kind = dict(pairs.dtypes)["label"]
        # labels that are known, and whether each marks an anomaly
        self._labels: dict[Any, bool] = {}
        self._learn(_usual(anomaly_label, self._kind))

    def guess(self) -> Sample:
        """Return the scores of the first rows, which Spark finds without reading all of them."""
        rows = fetched(self._pairs.limit(_FIRST))
        return Sample(self._classes(rows), 1.0 if rows.num_rows < _FIRST else 1.0 / _MORE)

    def sample(self) -> Sample:
        """Return the scores of the rows that draw the smallest numbers.

        A row that comes late must draw a small one to be looked at, so that few are sorted: its place counts
        from the start of its partition, and more in later partitions. Where those are the largest by far,
        the sample is a worse one.
        """
        place = "monotonically_increasing_id()"
        drawn = self._pairs.selectExpr("score", "label", "rand(0) AS drawn", f"{place} AS place")
        late = "drawn * (1 + (place & 8589934591))"
        near = drawn.where(f"{late} * {late} * (1 + shiftright(place, 33)) < {_POINTS**2}")
        smallest = near.orderBy("drawn").limit(_POINTS)
        rows = fetched(smallest.select("score", "label", "drawn"))
        # as many draws as rows are below the greatest of them, so that says how many there are in all
        part = float(rows.column("drawn").to_numpy().max()) if rows.num_rows == _POINTS else 1.0
        return Sample(self._classes(rows), part)

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, int]]:
        """Return the cells that have scores, and the sums of hashes of both classes; refuse what is wrong."""
        few = len(grid.knots) <= _SUMS and all(cells == 1 for cells in grid.cells)
        return (self._summed(grid) if few else None) or self._grouped(grid)

    def _summed(self, grid: Grid) -> tuple[Cells, tuple[int, int]] | None:
        """Return the same out of sums over all rows, or None if something is wrong.

        Spark keeps sums in variables, and groups in a table that every row must be looked up in. What lies
        below each knot is added up, one comparison for each sum: to find the cell first costs more.
        """
        rows = self._pairs.selectExpr(
            "score", f"{self._class} AS class", "xxhash64(score) AS hash"
        ).selectExpr("score", "hash", "IF(class = 1, 1L, 0L) AS mark", f"class < 0 OR {_MISSING} AS wrong")
        ends = [f"score < {quote_number(knot)}" for knot in grid.knots] + ["true"]
        sums = ["sum(IF(wrong, 1L, 0L)) AS wrong", "min(score) AS least", "max(score) AS greatest"]
        for place, below in enumerate(ends):
            sums.append(f"sum(IF({below}, 1L, 0L)) AS all_{place}")
            sums.append(f"sum(IF({below}, mark, 0L)) AS marked_{place}")
        for shift, mask in _PARTS.items():
            part = f"shiftrightunsigned(hash, {shift}) & {mask}"
            sums.append(f"sum({part}) AS hash_{shift}")
            sums.append(f"sum(IF(mark = 1, {part}, 0L)) AS marked_hash_{shift}")
        (found,) = fetched(rows.selectExpr(*sums)).to_pylist()
        if found["wrong"]:
            return None
        every, marked = (
            np.diff([found[f"{name}_{place}"] or 0 for place in range(len(ends))], prepend=0)
            for name in ("all", "marked")
        )
        counts = np.array([every - marked, marked])
        labels, numbers = np.nonzero(counts)
        # no score lies beyond the ends of its cell, nor beyond those of all scores
        lows, highs = [-inf, *grid.knots], [*map(just_below, grid.knots), inf]
        least = np.array([max(lows[cell], found["least"], key=order_key) for cell in numbers])
        greatest = np.array([min(highs[cell], found["greatest"], key=order_key) for cell in numbers])
        whole, anomalous = (
            sum((found[f"{name}_{shift}"] or 0) << shift for shift in _PARTS)
            for name in ("hash", "marked_hash")
        )
        sure = Cells(labels, numbers, counts[labels, numbers], least, greatest, ends=False)
        return sure, (whole - anomalous, anomalous)

    def _grouped(self, grid: Grid) -> tuple[Cells, tuple[int, int]]:
        """Return the same out of groups, or say what is wrong."""
        sums = [
            f"sum(shiftrightunsigned(hash, {shift}) & {mask}) AS hash_{shift}"
            for shift, mask in _PARTS.items()
        ]
        while True:
            rows = self._counted(
                self._numbered(grid).selectExpr("*", "xxhash64(score) AS hash"), sums, "number"
            )
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
        hashes = [0, 0]
        for shift in _PARTS:
            for number, part in zip(numbers.tolist(), rows.column(f"hash_{shift}").to_pylist(), strict=True):
                hashes[number & 1] += part << shift
        return _cells(rows), (hashes[0], hashes[1])

    def count(self, grid: Grid, within: Some) -> Cells:
        """Return the cells that have scores, of those that lie within some of another grid."""
        inside = self._inside(within).selectExpr("score", "class", f"{_piece(grid)} AS piece")
        numbered = inside.selectExpr("score", f"{_number(grid)} AS number", f"{_alone(grid)} AS alone")
        return _cells(self._counted(numbered, [], "number", "alone"))

    def gather(self, within: Some) -> Cells:
        """Return all different scores within some cells, each as a cell of its own."""
        rows = fetched(self._inside(within).selectExpr("CAST(class AS TINYINT) AS class", "score"))
        labels, scores = (rows.column(name).to_numpy() for name in ("class", "score"))
        pairs = [np.unique(scores[labels == label], return_counts=True) for label in (0, 1)]
        values, counts = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        labels = np.repeat([0, 1], [pair[0].size for pair in pairs])
        return Cells(labels, np.zeros_like(labels), counts, values, values)

    def _classes(self, rows: Any) -> tuple[Scores, Scores]:
        """Return the known scores of both classes, of rows with a score and a label; learn the labels."""
        labels = rows.column("label").combine_chunks().dictionary_encode()
        self._learn(label for label in labels.dictionary.to_pylist() if label is not None)
        marks = np.array([self._labels[label] for label in labels.dictionary.to_pylist()] or [False])
        mark, scores = marks[labels.indices.fill_null(0).to_numpy()], rows.column("score").to_numpy()
        known = ~np.isnan(scores) & labels.is_valid().to_numpy(zero_copy_only=False)
        return scores[known & ~mark], scores[known & mark]

    def mark(self) -> str:
        """Return the expression that is 1 for an anomaly and 0 for a normal point; refuse what is wrong."""
        functions = import_package("pyspark.sql.functions", "spark")
        wanted = ("count(*) AS rows", f"count_if({_MISSING}) AS gaps")
        rows = fetched(self._pairs.groupBy("label").agg(*map(functions.expr, wanted)).limit(LOOKED_AT))
        labels, total = rows.column("label").to_pylist(), sum(rows.column("rows").to_pylist())
        counts = dict(zip(labels, rows.column("rows").to_pylist(), strict=True))
        _refuse_gaps(total, labels=counts.pop(None, 0))
        self._learn(counts)
        _refuse_gaps(total, scores=sum(rows.column("gaps").to_pylist()))
        return self._class

    def _learn(self, labels: Iterable[Any]) -> None:
        """Add labels to those that are known, or refuse them."""
        known = [*dict.fromkeys([*self._labels, *labels])]
        values = np.empty(len(known), dtype=object)
        values[:] = known
        marks = as_anomaly_mask(values, self._anomaly_label).tolist()
        self._labels = dict(zip(known, marks, strict=True))

    @property
    def _class(self) -> str:
        """The expression for the class of a row, or what is wrong with its label."""
        cases = [
            f"WHEN label = {literal(label, self._kind)} THEN {int(mark)}"
            for label, mark in self._labels.items()
        ]
        return f"CASE WHEN label IS NULL THEN {_NO_LABEL} {' '.join(cases)} ELSE {_STRANGE_LABEL} END"

    def _numbered(self, grid: Grid) -> Any:
        """Return the scores, each with the number of its class and cell."""
        rows = self._pairs.selectExpr("score", f"{self._class} AS class", f"{_piece(grid)} AS piece")
        case = f"CASE WHEN class < 0 THEN class WHEN {_MISSING} THEN {_NO_SCORE} ELSE {_number(grid)} END"
        return rows.selectExpr("score", f"{case} AS number")

    def _inside(self, within: Some) -> Any:
        near = self._pairs.where(between("score", within.bounds))
        rows = near.selectExpr("score", f"{self._class} AS class", f"{_piece(within.grid)} AS piece")
        numbers = ", ".join(str(2 * cell + label) for label, cell in within.cells)
        return rows.where(f"{_number(within.grid)} IN ({numbers})").select("score", "class")

    def _counted(self, numbered: Any, sums: Sequence[str], *by: str) -> Any:
        functions = import_package("pyspark.sql.functions", "spark")
        wanted = ["count(*) AS scores", "min(score) AS least", "max(score) AS greatest", *sums]
        return fetched(numbered.groupBy(*by).agg(*map(functions.expr, wanted)).drop("alone"))


def _refuse_gaps(total: int, *, labels: int = 0, scores: int = 0) -> None:
    if labels:
        raise InputError(f"labels must not be missing, got {labels:,} of {total:,}; drop those rows")
    if scores:
        raise InputError(
            f"scores must not be empty or NaN, got {scores:,} of {total:,}; drop those rows or make the"
            " detector score them"
        )


def fetched(frame: Any) -> Any:
    """Return a small frame as an Arrow table: all that ever reaches the driver."""
    return frame.toArrow()


def _cells(rows: Any) -> Cells:
    numbers = rows.column("number").to_numpy().astype(np.int64)
    counts, least, greatest = (rows.column(name).to_numpy() for name in ("scores", "least", "greatest"))
    return Cells(numbers & 1, numbers >> 1, counts, least, greatest)


def _pieces(grid: Grid) -> tuple[list[Piece], bool]:
    """Return the pieces of a grid, that below the first knot included, and whether they are spelled out."""
    pieces = [Piece(0.0, 0.0, 0, 1), *grid.pieces]
    return pieces, sum(piece.cells > 1 for piece in pieces) <= _SPELLED


def _piece(grid: Grid) -> str:
    """Return the expression for the number of a score's piece, which `_number` may need."""
    places = [str(place) for place in range(len(grid.knots) + 1)]
    return "0" if _pieces(grid)[1] else _halved(grid.knots, places)


def _number(grid: Grid) -> str:
    """Return the expression for twice the number of a score's cell, plus its class."""
    pieces, spelled = _pieces(grid)
    if spelled:
        return f"(class + 2 * {_halved(grid.knots, [_cell(*map(_exact, piece)) for piece in pieces])})"
    # the arrays are constants to Spark
    columns = (f"array({', '.join(map(_exact, column))})[piece]" for column in zip(*pieces, strict=True))
    return f"(class + 2 * {_cell(*columns)})"


def _cell(low: str, scale: str, first: str, cells: str) -> str:
    """Return the expression for the number of a cell: that of `Piece`."""
    if cells in ("0", "1"):
        return first
    step = f"CAST(least(floor((score - {low}) * {scale}), {cells} - 1) AS INT)"
    return f"({first} + IF({cells} <= 1, 0, {step}))"


def _alone(grid: Grid) -> str:
    """Return the expression for what tells a score from others of its number, where each is its own cell."""
    inside = between("score", tuple((low, just_below(high)) for low, high in grid.listed))
    return f"IF({inside}, score, 0D)" if grid.listed else "0D"


def _halved(knots: Sequence[float], leaves: Sequence[str]) -> str:
    """Return the expression that picks a leaf by the number of knots that are not above a score."""
    if not knots:
        return leaves[0]
    middle = len(knots) // 2
    below, above = _halved(knots[:middle], leaves), _halved(knots[middle + 1 :], leaves[middle + 1 :])
    return f"IF(score < {quote_number(knots[middle])}, {below}, {above})"


def _exact(number: float) -> str:
    return quote_number(number) if isinstance(number, float) else str(number)


def _usual(anomaly_label: object, kind: str) -> Sequence[Any]:
    """Return the labels that a column of this type will have, so that none is strange for being rare."""
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
