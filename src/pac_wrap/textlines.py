"""A stream of bytes as pieces of text in whole lines: as much as there is, without waiting for more."""

from collections.abc import Iterator
from typing import Final, Protocol

from pac_wrap.errors import InputError

CHUNK: Final = 1 << 18
# room for 100,000 cells and more
LONGEST: Final = 1 << 23
MARK: Final = b"\xef\xbb\xbf"


class Source(Protocol):
    """Where bytes come from."""

    def read1(self, size: int, /) -> bytes:
        """Return what there is, at most `size` bytes, waiting only if there is nothing; empty at the end."""


def whole_lines(source: Source, start: bytes) -> Iterator[str]:
    """Yield text that ends with a line's end, the last piece perhaps without one.

    Bytes that are no UTF-8 become surrogates, so that writing gives them back.
    """
    waiting, chunk = bytearray(), start.removeprefix(MARK)
    while chunk:
        cut = chunk.rfind(b"\n") + 1
        waiting += chunk[:cut] if cut else chunk
        if cut:
            yield waiting.decode("utf-8", "surrogateescape")
            waiting = bytearray(chunk[cut:])
        if len(waiting) > LONGEST:
            raise too_long()
        chunk = source.read1(CHUNK)
    if waiting:
        yield waiting.decode("utf-8", "surrogateescape")


def too_long() -> InputError:
    """Return the refusal of a row that does not end."""
    return InputError(
        f"a row is longer than {LONGEST:,} bytes; look for a quote that is never closed"
        " or a line that is never ended"
    )


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
