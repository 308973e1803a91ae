"""What a stream of bytes holds, by its start: whether it can be decided line by line."""

import json
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.sources import EMPTY_INPUT, PARQUET, is_json
from pac_wrap.textlines import CHUNK, LONGEST, MARK, Source

_UNREADABLE: Final = {
    b"\x1f\x8b": "packed by gzip; unpack it first, for example with gunzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first, for example with unzstd",
    b"\xff\xfe": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
}


def read_start(source: Source) -> bytes:
    """Return the bytes of a source up to its first line with content, and what came with them."""
    start = b""
    while chunk := source.read1(CHUNK):
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
    if not _content(start):
        raise InputError(EMPTY_INPUT)
    if is_json(start):
        return is_json_line(start)
    return start[:4] != PARQUET


def is_json_line(start: bytes) -> bool:
    """Return whether the first line with content is a JSON object."""
    line = _content(start).split(b"\n", 1)[0]
    try:
        return line[:1] == b"{" and isinstance(json.loads(line.decode("utf-8", "surrogateescape")), dict)
    except (ValueError, RecursionError):
        return False


def _content(start: bytes) -> bytes:
    return start.removeprefix(MARK).lstrip()
