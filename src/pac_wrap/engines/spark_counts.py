"""Labelled scores in a Spark DataFrame, counted by Spark's own expressions: no row goes through Python.

Only operations that Spark Connect has too, and no setting that ANSI mode would change.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from pac_wrap.base.arguments import ScoreType, as_anomaly_mask
from pac_wrap.engines.frames import import_package
from pac_wrap.errors import InputError
from pac_wrap.ranks.spread import Cells, Grid, Sample, Some
from pac_wrap.tables.sql import between, quote_number

# rows in the sample
_POINTS: Final = 1 << 14
# what stands in place of a cell
_NO_LABEL, _STRANGE_LABEL, _NO_SCORE = -3, -2, -1
# a hash in three parts, each small enough to be added up 2^41 times without an overflow
_BITS: Final = (22, 21, 21)


class SparkCounts:
    """The columns `score` (double) and `label` of a frame, counted where they are."""

    def __init__(self, pairs: Any, score_type: ScoreType, anomaly_label: object) -> None:
        self.score_type, self._anomaly_label = score_type, anomaly_label
        self._pairs = pairs
        self._kind = dict(pairs.dtypes)["label"]
        # labels that are known, and whether each marks an anomaly
        self._labels: dict[Any, bool] = {}
        self._learn(_usual(anomaly_label, self._kind))

    def sample(self) -> Sample:
        """Return the scores of the rows that draw the smallest numbers.

        In each partition a row that comes late must draw a small number to be looked at, so that few are
        sorted; none that is among the smallest of all is lost.
        """
        number = "monotonically_increasing_id() & 8589934591"
        drawn = self._pairs.selectExpr("score", "label", "rand(0) AS drawn", f"1 + ({number}) AS row")
        smallest = drawn.where(f"drawn * row < {_POINTS}").orderBy("drawn").limit(_POINTS)
        rows = fetched(smallest.select("score", "label", "drawn"))
        labels = rows.column("label").combine_chunks().dictionary_encode()
        self._learn(label for label in labels.dictionary.to_pylist() if label is not None)
        marks = np.array([self._labels[label] for label in labels.dictionary.to_pylist()] or [False])
        places = labels.indices.fill_null(0).to_numpy()
        scores = rows.column("score").to_numpy()
        known = ~np.isnan(scores) & labels.is_valid().to_numpy(zero_copy_only=False)
        mark = marks[places]
        # as many draws as rows are below the greatest of them, so that says how many there are in all
        part = float(rows.column("drawn").to_numpy().max()) if rows.num_rows == _POINTS else 1.0
        return Sample((scores[known & ~mark], scores[known & mark]), part)

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, int]]:
        """Return the cells that have scores, and the sums of hashes of both classes; refuse what is wrong."""
        shifts = np.cumsum((0, *_BITS)).tolist()
        sums = [
            f"sum(shiftrightunsigned(hash, {shift}) & {(1 << bits) - 1}) AS hash_{shift}"
            for shift, bits in zip(shifts, _BITS, strict=False)
        ]
        while True:
            rows = self._counted(self._numbered(grid).selectExpr("*", "xxhash64(score) AS hash"), sums)
            numbers, counts = (rows.column(name).to_numpy() for name in ("number", "scores"))
            wrong = dict(zip(numbers[numbers < 0].tolist(), counts[numbers < 0].tolist(), strict=True))
            total = int(counts.sum())
            if gaps := wrong.get(_NO_LABEL):
                raise InputError(f"labels must not be missing, got {gaps:,} of {total:,}; drop those rows")
            if _STRANGE_LABEL not in wrong:
                break
            # the sample had none of these
            strangers = self._pairs.where(f"{self._class} = {_STRANGE_LABEL}").select("label").limit(1)
            self._learn(fetched(strangers).column("label").to_pylist())
        if gaps := wrong.get(_NO_SCORE):
            raise InputError(
                f"scores must not be empty or NaN, got {gaps:,} of {total:,}; drop those rows or make the"
                " detector score them"
            )
        hashes = [0, 0]
        for shift in shifts[:-1]:
            for number, part in zip(numbers.tolist(), rows.column(f"hash_{shift}").to_pylist(), strict=True):
                hashes[number & 1] += part << shift
        return _cells(rows), (hashes[0], hashes[1])

    def count(self, grid: Grid, within: Some) -> Cells:
        """Return the cells that have scores, of those that lie within some of another grid."""
        inside = self._inside(within).selectExpr("score", "class", f"{_piece(grid)} AS piece")
        return _cells(self._counted(inside.selectExpr("score", f"{_number(grid)} AS number"), []))

    def gather(self, within: Some) -> Cells:
        """Return all different scores within some cells, each as a cell of its own."""
        rows = fetched(self._inside(within).select("class", "score"))
        labels, scores = (rows.column(name).to_numpy() for name in ("class", "score"))
        pairs = [np.unique(scores[labels == label], return_counts=True) for label in (0, 1)]
        values, counts = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        labels = np.repeat([0, 1], [pair[0].size for pair in pairs])
        return Cells(labels, np.zeros_like(labels), counts, values, values)

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
        missing = f"score IS NULL OR isnan(score) THEN {_NO_SCORE}"
        case = f"CASE WHEN class < 0 THEN class WHEN {missing} ELSE {_number(grid)} END"
        return rows.selectExpr("score", f"{case} AS number")

    def _inside(self, within: Some) -> Any:
        near = self._pairs.where(between("score", within.bounds))
        rows = near.selectExpr("score", f"{self._class} AS class", f"{_piece(within.grid)} AS piece")
        numbers = ", ".join(str(2 * cell + label) for label, cell in within.cells)
        return rows.where(f"{_number(within.grid)} IN ({numbers})").select("score", "class")

    def _counted(self, numbered: Any, sums: Sequence[str]) -> Any:
        functions = import_package("pyspark.sql.functions", "spark")
        wanted = ["count(*) AS scores", "min(score) AS least", "max(score) AS greatest", *sums]
        return fetched(numbered.groupBy("number").agg(*map(functions.expr, wanted)))


def fetched(frame: Any) -> Any:
    """Return a small frame as an Arrow table: all that ever reaches the driver."""
    return frame.toArrow()


def _cells(rows: Any) -> Cells:
    numbers = rows.column("number").to_numpy().astype(np.int64)
    counts, least, greatest = (rows.column(name).to_numpy() for name in ("scores", "least", "greatest"))
    return Cells(numbers & 1, numbers >> 1, counts, least, greatest)


def _piece(grid: Grid) -> str:
    """Return the expression for the number of knots that are not above a score, found by halving."""

    def halved(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        knot = quote_number(grid.knots[middle])
        return f"IF(score < {knot}, {halved(first, middle)}, {halved(middle + 1, last)})"

    return halved(0, len(grid.knots))


def _number(grid: Grid) -> str:
    """Return the expression for twice the number of a score's cell, plus its class; `piece` must be known.

    The arrays are constants to Spark; spelled out for each piece, the expression would be too long to be
    compiled.
    """
    pieces = [*grid.pieces]
    if not pieces:
        return "class"
    lows = _array(quote_number(low) for low in (0.0, *(piece.low for piece in pieces)))
    scales = _array(quote_number(scale) for scale in (0.0, *(piece.scale for piece in pieces)))
    firsts = _array(str(2 * first) for first in (0, *(piece.first for piece in pieces)))
    lasts = _array(str(last) for last in (0, *(piece.cells - 1 for piece in pieces)))
    step = f"least(floor((score - {lows}) * {scales}), {lasts})"
    return f"({firsts} + class + IF({scales} = 0, 0, 2 * CAST({step} AS INT)))"


def _array(items: Iterable[str]) -> str:
    return f"array({', '.join(items)})[piece]"


def _usual(anomaly_label: object, kind: str) -> Sequence[Any]:
    """Return the labels that a column of this type will have, so that none is strange for being rare."""
    if kind == "string":
        return [anomaly_label] if isinstance(anomaly_label, str) else []
    if type(anomaly_label) is not int or anomaly_label not in (1, -1):
        return []
    return (
        [False, True] if kind == "boolean" and anomaly_label == 1 else [int(anomaly_label < 0), anomaly_label]
    )


def literal(label: Any, kind: str) -> str:
    """Return a label as an expression of its column's type; the bytes of a text need no escapes."""
    if isinstance(label, str):
        return f"CAST(X'{label.encode().hex()}' AS STRING)"
    return f"CAST('{label}' AS {kind})"
