"""The passes over scores in C, called through ctypes: no Python headers to build, no lock held meanwhile."""

from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores
from pac_wrap.kernels.compiled import flushes, load_sealed
from pac_wrap.kernels.plain import Codes, Floats, Inside, Plain

_SOURCE: Final = Path(__file__).with_name("kernels.c")
# what is found in so many scores waits in a buffer, of which only the beginning is used
_CHUNK: Final = 1 << 18
_DOUBLE: Final[np.dtype[Any]] = np.dtype(np.float64)
_BOOL: Final[np.dtype[Any]] = np.dtype(np.bool_)
_KINDS: Final[tuple[np.dtype[Any], ...]] = _DOUBLE, np.dtype(np.float32)


def library() -> Path:
    """Return where the compiled source lies, if it does; its name tells of which source it was made."""
    return _SOURCE.with_name(f"kernels-{crc32(_SOURCE.read_bytes()):08x}.so")


class Native(Plain):
    """The passes in C; an array that C cannot walk through is left to NumPy."""

    def __init__(self, path: Path) -> None:
        functions = load_sealed(path)
        self._codes, self._bracket, self._count, self._mix = (
            {kind: functions[f"{name}_{kind}"] for kind in _KINDS}
            for name in ("codes", "bracket", "count", "mix")
        )
        self._count_leading, self._divide = functions["count_leading"], functions["divide"]

    def codes(
        self,
        scores: NDArray[Any],
        low: np.floating,
        high: np.floating,
        choice: tuple[int, int, int],
        out: Codes,
    ) -> bool:
        """Write the code of each score; return whether none is NaN."""
        if not _walkable(scores):
            return super().codes(scores, low, high, choice, out)
        call = self._codes[scores.dtype]
        return bool(call(_at(scores), scores.size, low, high, *choice, _at(out)))

    def bracket(self, scores: Floats, low: np.floating, high: np.floating, *, keep: bool) -> Inside:
        """Return what lies in [low, high], and kept if asked for, with all that one pass can count."""
        if not _walkable(scores) or _flushed(scores):
            return super().bracket(scores, low, high, keep=keep)
        call, nan, inside = self._bracket[scores.dtype], False, [np.empty(0, dtype=scores.dtype)]
        room, sums = np.empty(min(scores.size, _CHUNK), dtype=scores.dtype), np.zeros(3, dtype=np.uint64)
        for start in range(0, scores.size, _CHUNK):
            chunk = scores[start : start + _CHUNK]
            found = room[: call(_at(chunk), chunk.size, low, high, _at(room), _at(sums))]
            nan |= bool(np.isnan(found).any())
            if keep:
                inside.append(found.copy())
        below, above, mixed = sums.tolist()
        return Inside(below, above, np.concatenate(inside), nan, mixed)

    def count(self, scores: Floats, bound: np.floating) -> int:
        """Return how many scores are less than a bound."""
        if not _walkable(scores):
            return super().count(scores, bound)
        return int(self._count[scores.dtype](_at(scores), scores.size, bound))

    def mix(self, scores: Floats) -> int:
        """Return the sum that a digest shows."""
        if not _walkable(scores) or _flushed(scores):
            return super().mix(scores)
        return int(self._mix[scores.dtype](_at(scores), scores.size))

    def count_leading(self, scores: Scores, counts: NDArray[np.int64]) -> int:
        """Add each score to the counter of its 16 leading bits; return the sum for the digest."""
        if not _walkable(scores, _DOUBLE):
            return super().count_leading(scores, counts)
        return int(self._count_leading(_at(scores), scores.size, _at(counts)))

    def divide(self, scores: Scores, marks: NDArray[np.bool_]) -> tuple[Scores, Scores]:
        """Return the scores without and those with a mark."""
        if not (_walkable(scores, _DOUBLE) and _walkable(marks, _BOOL) and marks.size == scores.size):
            return super().divide(scores, marks)
        marked = int(np.count_nonzero(marks))
        # one more, since a score is written to both before its mark is looked at
        pair = np.empty(scores.size - marked + 1), np.empty(marked + 1)
        self._divide(_at(scores), _at(marks), scores.size, _at(pair[0]), _at(pair[1]))
        return pair[0][:-1], pair[1][:-1]


def _walkable(array: NDArray[Any], kind: np.dtype[Any] | None = None) -> bool:
    """Return whether an array is of a type, or of any that scores have in C, and lies there in one piece."""
    known = array.dtype in _KINDS if kind is None else array.dtype == kind
    return known and array.flags.c_contiguous and array.flags.aligned


def _flushed(scores: Floats) -> bool:
    """Return whether some scores may lose their bits as C widens them for their hash."""
    return scores.dtype != _DOUBLE and flushes()


def _at(array: NDArray[Any]) -> int:
    return array.ctypes.data
