"""A stream of bytes as pieces of text in whole lines: as much as there is, without waiting for more."""

import json
from collections.abc import Iterator
from typing import Final, Protocol

from pac_wrap.errors import InputError
from pac_wrap.sources import EMPTY_INPUT, PARQUET

_CHUNK: Final = 1 << 18
LONGEST: Final = 1 << 21
_MARK: Final = b"\xef\xbb\xbf"
_UNREADABLE: Final = {
    b"\x1f\x8b": "packed by gzip; unpack it first, for example with gunzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first, for example with unzstd",
    b"\xff\xfe": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
}


class Source(Protocol):
    """Where bytes come from."""

    def read1(self, size: int, /) -> bytes:
        """Return what there is, at most `size` bytes, waiting only if there is nothing; empty at the end."""


def read_start(source: Source) -> bytes:
    """Return the bytes of a source up to its first line with content, and what came with them."""
    start = b""
    while chunk := source.read1(_CHUNK):
        start += chunk
        if b"\n" in _content(start) or start[:4] == PARQUET or len(start) > LONGEST:
            break
    return start


def is_streamed(start: bytes) -> bool:
    """Return whether a table that starts so can be decided line by line: CSV and JSON lines can.

    Parquet, a JSON array and JSON objects that span lines have to be read whole.
    """
    for bytes_, what in _UNREADABLE.items():
        if start.startswith(bytes_):
            raise InputError(f"standard input is {what}")
    content = _content(start)
    if not content:
        raise InputError(EMPTY_INPUT)
    if content[:1] in (b"{", b"["):
        return is_json_line(start)
    return start[:4] != PARQUET


def is_json_line(start: bytes) -> bool:
    """Return whether the first line with content is a JSON object."""
    line = _content(start).split(b"\n", 1)[0]
    try:
        return line[:1] == b"{" and isinstance(json.loads(line.decode("utf-8", "surrogateescape")), dict)
    except (ValueError, RecursionError):
        return False


def whole_lines(source: Source, start: bytes) -> Iterator[str]:
    """Yield text that ends with a line's end, the last piece perhaps without one.

    Bytes that are no UTF-8 become surrogates, so that writing gives them back.
    """
    waiting, chunk = bytearray(), start.removeprefix(_MARK)
    while chunk:
        cut = chunk.rfind(b"\n") + 1
        waiting += chunk[:cut] if cut else chunk
        if cut:
            yield waiting.decode("utf-8", "surrogateescape")
            waiting = bytearray(chunk[cut:])
        if len(waiting) > LONGEST:
            raise too_long()
        chunk = source.read1(_CHUNK)
    if waiting:
        yield waiting.decode("utf-8", "surrogateescape")


def too_long() -> InputError:
    """Return the refusal of a row that does not end."""
    return InputError(
        f"a row is longer than {LONGEST:,} bytes; look for a quote that is never closed"
        " or a line that is never ended"
    )


def _content(start: bytes) -> bytes:
    return start.removeprefix(_MARK).lstrip()
