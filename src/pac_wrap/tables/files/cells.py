"""The rows of a CSV file, counted, and how the cells of each column are spelled: one pass in C, on all cores.

Only rows beyond doubt count: Python's `csv` and DuckDB, told everything, read them alike. In a file with any
other, or where nothing was compiled, there is more to look at.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pac_wrap.ranks.compiled import stops
from pac_wrap.ranks.kernels import compiled_functions, together, usable_cores
from pac_wrap.tables.files.text_format import LONGEST, MARK, ByteReader

Kind = Literal["BIGINT", "DOUBLE", "VARCHAR"]
_SOURCE: Final = Path(__file__).with_name("cells.c")
_BLOCK: Final = 1 << 20
# what cells.c says of a column, and the order in which it counts
_FILLED, _NOT_WHOLE, _NOT_PLAIN = 1, 2, 4
_COUNTS: Final = 7


class CountedRows(NamedTuple):
    """Rows without the header, the line end, whether cells are quoted or hold line breaks, their spelling."""

    rows: int
    line_end: str
    quoted: bool
    broken: bool
    spelled: tuple[int, ...]


def library() -> Path:
    """Return where the compiled source lies, if it does; its name tells of which source it was made."""
    return _SOURCE.with_name(f"cells-{crc32(_SOURCE.read_bytes()):08x}.so")


@cache
def functions() -> dict[str, Any] | None:
    """Return the compiled functions, if there are any."""
    return compiled_functions(library(), "CSV files with quotes are read more slowly")


def count_rows(reader: ByteReader, delimiter: str, width: int) -> CountedRows | None:
    """Return what is known about a file after one pass, None if a row of it is in doubt."""
    compiled = functions()
    if compiled is None:
        return None
    rows = _Rows(compiled["look_at_rows"], delimiter, width)
    rest, first, cores = b"", True, min(usable_cores(), 4)
    blocks = _blocks(reader)
    while several := list(islice(blocks, cores)):
        texts = []
        for block in several:
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                continue
            texts.append(rest + block[:cut])
            rest = block[cut:]
        if texts and first:
            header, end, after = texts[0].removeprefix(MARK).partition(b"\n")
            texts[0], first = after, False
            if not rows.begin(header + end):
                return None
        left = rows.add([text for text in texts if text])
        rest = b"" if left is None else left + rest
        # what has no end here is looked at again with what follows it; a row may be only so long
        if left is None or len(rest) > LONGEST + cores * _BLOCK:
            return None
    if rest and not rows.end(rest, first):
        return None
    return rows.found()


class _Rows:
    """What is found in the rows looked at so far."""

    def __init__(self, look: Any, delimiter: str, width: int) -> None:
        self._look, self._delimiter, self._width = look, ord(delimiter), width
        self._stops = stops(self._delimiter)
        self._columns, self._counts = np.zeros(width, np.uint8), np.zeros(_COUNTS, np.uint64)

    def begin(self, header: bytes) -> bool:
        """Look at the header, which is one line that is not empty."""
        used, _, counts = self._looked_at(header)
        self._counts += counts
        return used == len(header) and int(counts[0]) == 1 and header.strip(b"\r\n") != b""

    def add(self, texts: list[bytes]) -> bytes | None:
        """Look at rows; return those from the first that has no end, None if one is in doubt."""
        found = together([partial(self._looked_at, text) for text in texts]) if texts else []
        for place, (used, columns, counts) in enumerate(found):
            if counts[-1]:
                return None
            self._columns |= columns
            self._counts += counts
            # the next text was taken to begin with a row, which is right only if this one ends with one
            if used < len(texts[place]):
                return b"".join([texts[place][used:], *texts[place + 1 :]])
        return b""

    def end(self, rest: bytes, first: bool) -> bool:
        """Look at a last line that nothing ends."""
        if rest[-1:] == b"\r":
            return False
        whole = rest + (b"\r\n" if self._counts[3] else b"\n")
        return self.begin(whole.removeprefix(MARK)) if first else self.add([whole]) == b""

    def found(self) -> CountedRows | None:
        """Return what was found, None if line ends are mixed or there is no header."""
        rows, _, plain, packed, quoted, broken, _ = self._counts.tolist()
        if not rows or (plain and packed):
            return None
        spelled = tuple(self._columns.tolist())
        return CountedRows(rows - 1, "\r\n" if packed else "\n", quoted > 0, broken > 0, spelled)

    def _looked_at(self, text: bytes) -> tuple[int, Any, Any]:
        columns, counts = np.zeros(self._width, np.uint8), np.zeros(_COUNTS, np.uint64)
        places = columns.ctypes.data, counts.ctypes.data
        used = self._look(text, len(text), self._delimiter, self._stops, self._width, *places)
        if not text.isascii() and not _is_utf8(text[:used]):
            counts[-1] += 1
        return used, columns, counts


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class Lines(NamedTuple):
    """Rows of CSV or JSON that stand as they are: their text, where each begins and ends, their scores."""

    text: bytes
    spans: NDArray[np.uint64]
    scores: NDArray[np.float64]
    # the rows whose cell is no number that is read here, and what it holds
    doubts: list[tuple[int, str]]


def read_score_cells(text: bytes, width: int, place: int) -> Lines | None:
    """Return the rows of a text with commas alone, and their scores; None if in doubt, or without C."""
    compiled = functions()
    if compiled is None:
        return None
    if text[-1:] != b"\n":
        text += b"\n"
    most = text.count(b"\n")
    scores, spans, doubts = np.empty(most), np.empty((most, 2), np.uint64), np.empty((most, 3), np.uint64)
    count = np.zeros(1, np.uint64)
    arrays = (one.ctypes.data for one in (scores, spans, doubts, count))
    rows = compiled["read_score_cells"](text, len(text), ord(","), width, place, *arrays)
    if rows > most:
        return None
    unsure = [
        (row, text[start:end].decode("utf-8", "surrogateescape"))
        for row, start, end in doubts[: int(count[0])].tolist()
    ]
    return Lines(text, spans[:rows], scores[:rows], unsure)


def read_score_objects(text: bytes, names: list[bytes], place: int) -> Lines | None:
    """Return the rows of JSON lines that all have these names, and their scores; None if in doubt."""
    compiled = functions()
    if compiled is None:
        return None
    if text[-1:] != b"\n":
        text += b"\n"
    most, places = text.count(b"\n"), np.cumsum([0, *map(len, names)], dtype=np.uint64)
    scores, spans = np.empty(most), np.empty((most, 2), np.uint64)
    arrays = scores.ctypes.data, spans.ctypes.data
    written = b"".join(names), places.ctypes.data, len(names), place
    rows = compiled["read_score_objects"](text, len(text), *written, *arrays)
    return None if rows > most else Lines(text, spans[:rows], scores[:rows], [])


def with_endings(lines: Lines, codes: NDArray[np.uint8], endings: list[bytes]) -> memoryview:
    """Return every row with the ending of its code behind it."""
    compiled = functions()
    assert compiled is not None  # or there were no lines
    places = np.cumsum([0, *map(len, endings)], dtype=np.uint64)
    room = np.empty(len(lines.text) + codes.size * max(map(len, endings)), np.uint8)
    texts, codes = b"".join(endings), np.ascontiguousarray(codes)
    used = compiled["write_endings"](
        lines.text,
        lines.spans.ctypes.data,
        codes.ctypes.data,
        codes.size,
        texts,
        places.ctypes.data,
        room.ctypes.data,
    )
    return room[:used].data


def kind_of(spelled: int) -> Kind:
    """Return what a column is whose cells are spelled so: numbers, where there are some and all are."""
    if not spelled & _FILLED or (spelled & _NOT_WHOLE and spelled & _NOT_PLAIN):
        return "VARCHAR"
    return "DOUBLE" if spelled & _NOT_WHOLE else "BIGINT"


def _blocks(reader: ByteReader) -> Iterator[bytes]:
    """Yield the bytes of a file, about a million at a time."""
    pieces: list[bytes] = []
    size = 0
    while piece := reader.read1(_BLOCK):
        pieces.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)
