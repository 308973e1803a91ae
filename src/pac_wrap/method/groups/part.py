"""What whole groups give where their rows lie: a few numbers for each group, which travel and add up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.method.groups.block import Block, calibrated
from pac_wrap.method.groups.columns import Columns, Counts, Numbers, joined, permuted
from pac_wrap.method.request import Request

# rows that are calibrated together, at least
BLOCK: Final = 1 << 21
Marks = NDArray[np.bool_]
# the numbers of the groups, the scores, and which of them are anomalous
Rows = tuple[NDArray[Any], Scores, Marks]


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of some groups: their numbers, what is certified, and the area under the curve of each.

    >>> block = Block.of(np.arange(4.0), np.array([False, False, True, True]), np.array([0, 0, 0, 1]), 2)
    >>> part = Part.of(Request(), np.array([7, 3]), block, "float64")
    >>> both = Part.from_flat(part.flat())
    >>> both.places.tolist(), both.columns.n.tolist(), both.areas.tolist()
    ([3, 7], [[0, 2], [1, 1]], [nan, 1.0])
    """

    places: Counts
    columns: Columns
    areas: Numbers

    @classmethod
    def of(cls, request: Request, places: NDArray[Any], block: Block, score_type: ScoreType) -> "Part":
        """Return what the groups of a block get, which have these numbers."""
        return cls(places.astype(np.int64), calibrated(request, block, score_type), block.areas())

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "Part":
        """Return several parts as one, the groups in the order of their numbers."""
        places = np.concatenate([part.places for part in parts])
        order = np.argsort(places)
        columns = permuted(joined(part.columns for part in parts), order)
        return cls(places[order], columns, np.concatenate([part.areas for part in parts])[order])

    def flat(self) -> dict[str, NDArray[Any]]:
        """Return the same as columns of 64-bit integers and doubles, one row for each group."""
        columns: dict[str, NDArray[Any]] = {"place": self.places, "area": self.areas}
        for field in fields(Columns):
            for row, values in enumerate(np.atleast_2d(getattr(self.columns, field.name))):
                kept = values.view(np.int64) if values.dtype.kind == "u" else values
                columns[f"{field.name}_{row}"] = kept
        return columns

    @staticmethod
    def flat_types() -> dict[str, bool]:
        """Return the names of the columns of `flat`, and whether each holds whole numbers."""
        types = {"place": True, "area": False}
        for field in fields(Columns):
            for row in range(1 if field.name == "separable" else 2):
                types[f"{field.name}_{row}"] = field.type != Numbers
        return types

    @classmethod
    def from_flat(cls, flat: dict[str, NDArray[Any]]) -> "Part":
        """Return what `flat` gave, of one part or of several one after the other, in order."""
        made: dict[str, Any] = {}
        for field in fields(Columns):
            rows = [flat[name] for name in (f"{field.name}_0", f"{field.name}_1") if name in flat]
            made[field.name] = rows[0] if len(rows) == 1 else np.stack(rows)
        made["digest"] = made["digest"].view(np.uint64)
        return cls.joined([cls(flat["place"], Columns(**made), flat["area"])])


def whole_groups(batches: Iterable[Rows]) -> Iterator[tuple[NDArray[Any], Block]]:
    """Yield the numbers of some groups and their scores, from rows in the order of the groups.

    Memory is bounded by `BLOCK` rows or the largest group, and a batch.

    >>> marks = np.array([False, True])
    >>> first = np.array([2, 2]), np.array([0.1, 0.2]), marks
    >>> batches = [first, (np.array([2, 5]), np.array([0.3, 0.0]), marks)]
    >>> [(places.tolist(), block.starts.tolist()) for places, block in whole_groups(batches)]
    [([2, 5], [0, 3, 4])]
    """
    held: list[Rows] = []
    rows = 0
    for batch in batches:
        if not batch[0].size:
            continue
        held.append(batch)
        rows += batch[0].size
        if rows >= BLOCK and held[0][0][0] != batch[0][-1]:
            whole = _together(held)
            end = int(np.searchsorted(whole[0], whole[0][-1]))
            yield _block(whole[0][:end], whole[1][:end], whole[2][:end])
            held = [(whole[0][end:].copy(), whole[1][end:].copy(), whole[2][end:].copy())]
            rows -= end
    if held:
        yield _block(*_together(held))


def _together(held: list[Rows]) -> Rows:
    places, scores, marks = (np.concatenate(column) for column in zip(*held, strict=True))
    return places, scores, marks


def _block(places: NDArray[Any], scores: Scores, marks: Marks) -> tuple[NDArray[Any], Block]:
    first = np.concatenate([[True], places[1:] != places[:-1]])
    found = places[first]
    return found, Block.of(scores, marks, np.cumsum(first) - 1, found.size)
