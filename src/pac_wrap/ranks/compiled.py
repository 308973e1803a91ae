"""The compiled library: its functions, and checks that it is the built one and computes correctly.

It needs nothing but Python: the build, which has neither NumPy nor the rest of the package, runs this file as
a script on the compiled library. So it handles subnormals and zeros itself, as base/floats.py does elsewhere.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import inf, nan
from pathlib import Path
from struct import pack
from threading import Thread
from typing import Any, Final, TypeVar

Functions = dict[str, Any]
T = TypeVar("T")

_SUBNORMAL: Final = 5e-324
_TYPES: Final[dict[str, Any]] = {"float64": ctypes.c_double, "float32": ctypes.c_float}
_PER_TYPE: Final = "codes", "bracket", "count", "mix"
# the vector widths that functions are compiled for, the narrowest first; a processor supports some of them
_VECTORS: Final = "any", "avx2", "avx512"
# every kind of number that a comparison or a hash may get wrong, with ties; 1e-45 is subnormal in float32
_BELOW: Final = -inf, -1.7e308, -1.5, -1.0, -1.0, -0.1, -1e-45, -1e-310, -_SUBNORMAL, -0.0
_CYCLE: Final = (*_BELOW, 0.0, _SUBNORMAL, 1e-310, 1e-45, 0.1, 0.5, 0.5, 1.0, 3.0, 1.7e308, inf, inf)
# scores in the test at first use, and at build: more than the widest vectors take; more than a few blocks
_QUICK: Final = 151
_THOROUGH: Final = 1571
_CODES: Final = 0, -1, 1
# xxhash64 of eight bytes: four of its primes, and what it starts with for seed 42
_PRIMES: Final = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
HASH_NUMBERS: Final = *_PRIMES, 42 + 0x27D4EB2F165667C5 + 8
_ALL: Final = (1 << 64) - 1


def seal_of(library: Path) -> Path:
    """Return the file beside a library that holds its SHA-256, as `sha256sum` writes it."""
    return library.with_name(f"{library.name}.sha256")


def seal(library: Path) -> str:
    """Return the content of the file beside a library."""
    return f"{sha256(library.read_bytes()).hexdigest()}  {library.name}\n"


def load_sealed(library: Path) -> Functions:
    """Return the functions of the library that was built; for any other library it raises `OSError`."""
    # another library is never loaded, since loading alone may crash
    sealed = seal_of(library)
    if not library.exists():
        for other in library.parent.glob(f"{library.name.partition('-')[0]}-*"):
            raise OSError(
                f"{other.name} was compiled from another source; {library.name} would be the right one"
            )
        raise FileNotFoundError(f"{library.name} does not exist")
    if not sealed.exists():
        raise OSError(f"{library.name} has no {sealed.name} beside it")
    if sealed.read_text(encoding="ascii", errors="replace") != seal(library):
        raise OSError(f"{library.name} is not the file whose SHA-256 is in {sealed.name}")
    return load(library)


def load(library: Path, size: int = _QUICK) -> Functions:
    """Return the functions of a library that passes its test on `size` scores, or raise `OSError`."""
    found: list[Functions | OSError] = []

    def attempt() -> None:
        try:
            found.append(_load(library, size))
        except OSError as error:
            found.append(error)

    # a library built with -ffast-math changes the arithmetic of the thread that loads it, and of no other
    thread = Thread(target=attempt)
    thread.start()
    thread.join()
    (outcome,) = found
    if isinstance(outcome, OSError):
        raise outcome
    return outcome


def _load(library: Path, size: int) -> Functions:
    flushed = _SUBNORMAL == 0.0
    compiled = ctypes.CDLL(str(library.absolute()))
    if (_SUBNORMAL == 0.0) != flushed:
        raise OSError(
            f"{library.name} makes the processor flush subnormal numbers; it was built for fast math"
        )
    cells = library.name.startswith("cells-")
    try:
        here = _VECTORS[: 1 if cells else 1 + compiled.vectors()]
        kinds = [_declared_cells(compiled)] if cells else [_declared(compiled, vectors) for vectors in here]
    except AttributeError as error:
        raise OSError(f"{library.name} lacks a function: {error}") from None
    # the narrower vectors are for other processors, so they are tested only at build
    for functions in kinds if size == _THOROUGH else kinds[-1:]:
        for wrong in _wrong_cells(functions) if cells else _wrong(functions, size):
            raise OSError(f"{library.name} fails its test: {wrong} gives a different result from Python")
    return kinds[-1]


def _declared_cells(compiled: ctypes.CDLL) -> Functions:
    pointer, text, size, byte = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint8
    arguments: dict[str, list[Any]] = {
        "look_at_rows": [text, size, byte, text, size, pointer, pointer],
        "read_score_cells": [text, size, byte, size, size, pointer, pointer, pointer, pointer],
        "read_score_objects": [text, size, text, pointer, size, size, pointer, pointer],
        "write_endings": [text, pointer, pointer, size, text, pointer, pointer],
    }
    functions = {name: getattr(compiled, name) for name in arguments}
    for name, function in functions.items():
        function.restype, function.argtypes = size, arguments[name]
    return functions


def stops(delimiter: int) -> bytes:
    """Return a 1 for each byte at which a cell of a CSV stops that has no quotes, for `look_at_rows`."""
    return bytes(byte in (0, 10, 13, 34, delimiter) for byte in range(256))


# lines of three cells, what the columns then have, what is counted, and the bytes that were looked at
_LINES: Final = (
    (b'1,2.5,"a"\n-0,-1e5,\n\n"7",,\n', (1, 3, 7), (3, 1, 4, 0, 2, 0, 0), 26),
    (b'12,"x ""y"", z",01\r\n\r\n1,"a\nb",+5\r\n', (1, 7, 7), (2, 1, 0, 3, 2, 1, 0), 34),
    (b'1e400,1234567890123456789,0.\n1,2,"\n', (7, 7, 7), (1, 0, 1, 0, 0, 0, 0), 29),
    *(
        (b"1,2,3\n" + row, (1, 1, 1), (1, 0, 1, 0, 0, 0, 1), 6)
        for row in (b"1,2\n", b"1,2,3,\n", b"\r,,\n", b',,5"\n', b'"1"2,,\n', b"\0,,\n", b'"\0",,\n')
    ),
)


# cells that are read as numbers, of all kinds: few digits and many, ties to even, exponents; and others
_NUMBERS: Final = (
    *("0", "-0.0", "1", "-12.50", "+.5e1", "5.", "1E3", "0.1", "-0.30000000000000004", "9007199254740993"),
    *("9007199254740992.5", "9007199254740993.5", "1.7976931348623157e-8", "9999999999999999999", "3e-27"),
)
_OTHERS: Final = (
    *("", "nan", "inf", "1_0", " 1", "1e", ".", "-", "0x1", "1e400", "12345678901234567890", "1e-28"),
)
_NO_OBJECTS: Final = tuple(
    b'{"a":%s}\n' % rest
    for rest in (
        *(b"1", b'1,"s":01', b'1,"s":1.', b'1,"s":"1"', b'1,"s":1e', b'1,"s":tru', b'[1],"s":1'),
        *(b'"\\n","s":1', b'1,"t":1', b'1,"s":1,"u":1', b'1,"s":1}', b'"x\ty","s":1'),
        *(b'NaN,"s":1', b'+1,"s":1', b'1 "s":1'),
    )
)


def _wrong_cells(functions: Functions) -> Iterator[str]:
    """Yield the name of each function that misreads some test rows."""
    for text, has, counted, size in _LINES:
        columns, counts = (ctypes.c_uint8 * 3)(), (ctypes.c_uint64 * 7)()
        used = functions["look_at_rows"](text, len(text), ord(","), stops(ord(",")), 3, columns, counts)
        if (used, tuple(counts), tuple(columns)) != (size, counted, has):
            yield "look_at_rows"
    cells = (*_NUMBERS, *_OTHERS)
    lines, size = "".join(f"a,{cell},\n\n" for cell in cells).encode(), len(cells)
    scores, spans = (ctypes.c_double * size)(), (ctypes.c_uint64 * (2 * size))()
    doubts, count = (ctypes.c_uint64 * (3 * size))(), (ctypes.c_uint64 * 1)()
    rows = functions["read_score_cells"](lines, len(lines), ord(","), 3, 1, scores, spans, doubts, count)
    unsure = [lines[doubts[3 * at + 1] : doubts[3 * at + 2]].decode() for at in range(count[0])]
    found = [scores[at].hex() for at in range(len(_NUMBERS))]
    if rows != size or found != [float(cell).hex() for cell in _NUMBERS] or unsure != list(_OTHERS):
        yield "read_score_cells"
    if functions["read_score_cells"](b"1\n1,2\n", 6, ord(","), 1, 0, scores, spans, doubts, count) <= size:
        yield "read_score_cells"
    lines, names = b'{"a": "x", "s":1.5}\n\n{"a":true, "s": null}\n', (ctypes.c_uint64 * 3)(0, 3, 6)
    shape = b'"a""s"', names, 2, 1
    rows = functions["read_score_objects"](lines, len(lines), *shape, scores, spans)
    if (rows, scores[0], scores[1] != scores[1], spans[:4]) != (2, 1.5, True, [0, 18, 21, 41]):
        yield "read_score_objects"
    for line in _NO_OBJECTS:
        if functions["read_score_objects"](line, len(line), *shape, scores, spans) <= size:
            yield "read_score_objects"
    lines, out = b"1,2,3,4,5,6\n\n7\n", (ctypes.c_char * 40)()
    spans, places = (ctypes.c_uint64 * 4)(0, 11, 13, 14), (ctypes.c_uint64 * 3)(0, 2, 13)
    used = functions["write_endings"](lines, spans, bytes([1, 0]), 2, b',\n,0,1,"{0}"\n', places, out)
    if bytes(out)[:used] != b'1,2,3,4,5,6,0,1,"{0}"\n7,\n':
        yield "write_endings"


def _declared(compiled: ctypes.CDLL, vectors: str) -> Functions:
    pointer, size, code = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int8
    alike: dict[str, tuple[Any, ...]] = {
        "count_leading": (ctypes.c_uint64, pointer, size, pointer),
        "divide": (None, pointer, pointer, size, pointer, pointer),
    }
    signatures = dict(alike)
    for kind, score in _TYPES.items():
        signatures |= {
            f"codes_{kind}": (ctypes.c_int, pointer, size, score, score, code, code, code, pointer),
            f"bracket_{kind}": (size, pointer, size, score, score, pointer, pointer),
            f"count_{kind}": (size, pointer, size, score),
            f"mix_{kind}": (ctypes.c_uint64, pointer, size),
        }
    functions = {}
    for name, (result, *arguments) in signatures.items():
        functions[name] = getattr(compiled, name if name in alike else f"{name}_{vectors}")
        functions[name].restype, functions[name].argtypes = result, arguments
    return functions


def _wrong(functions: Functions, size: int) -> Iterator[str]:
    """Yield the name of each function whose result differs from plain Python's."""
    low, high = -1.0, 0.5
    for kind, score in _TYPES.items():
        codes, bracket, count, mix = (functions[f"{name}_{kind}"] for name in _PER_TYPE)
        for cycle in (_CYCLE, (*_CYCLE, nan)):
            array = (score * size)(*_tiled(cycle, size))
            # read back, since they were rounded to their type
            scores: list[float] = array[: len(cycle)]
            expected = _tiled([_CODES[(value > low) + (value > high)] for value in scores], size)
            below = sum(_tiled([value < low for value in scores], size))
            above = sum(_tiled([value > high for value in scores], size))
            inside = _picked(array, _tiled([not (value < low or value > high) for value in scores], size))
            hashed = sum(_tiled([_hash(value) for value in scores], size)) & _ALL

            found = (ctypes.c_int8 * size)()
            sound = codes(array, size, low, high, *_CODES, found)
            if bool(sound) != (nan not in cycle) or (sound and found[:] != expected):
                yield f"codes_{kind}"
            room, sums = (score * size)(), (ctypes.c_uint64 * 3)()
            kept = bracket(array, size, low, high, room, sums)
            width = ctypes.sizeof(score)
            if sums[:] != [below, above, hashed] or bytes(room)[: kept * width] != inside:
                yield f"bracket_{kind}"
            if count(array, size, low) != below:
                yield f"count_{kind}"
            if mix(array, size) != hashed:
                yield f"mix_{kind}"

    array = (_TYPES["float64"] * size)(*_tiled(_CYCLE, size))
    counts, leading = (ctypes.c_int64 * (1 << 16))(), Counter(_bits(value) >> 48 for value in array)
    total = functions["count_leading"](array, size, counts)
    if total != functions["mix_float64"](array, size) or any(counts[one] != leading[one] for one in leading):
        yield "count_leading"

    marks = [place % 3 == 0 for place in range(size)]
    expected_pair = _picked(array, [not mark for mark in marks]), _picked(array, marks)
    # each buffer can hold all scores and one more, so that a wrong count does no harm
    rooms = [(ctypes.c_char * (8 * size + 8))() for _ in expected_pair]
    functions["divide"](array, (ctypes.c_uint8 * size)(*marks), size, *rooms)
    if any(bytes(room)[: len(one)] != one for room, one in zip(rooms, expected_pair, strict=True)):
        yield "divide"


def _tiled(cycle: Sequence[T], size: int) -> list[T]:
    return (list(cycle) * (size // len(cycle) + 1))[:size]


def _picked(array: Any, wanted: Sequence[bool]) -> bytes:
    """Return the bytes of some elements; as numbers, subnormal ones may be flushed."""
    raw, width = bytes(array), ctypes.sizeof(array._type_)
    return b"".join(raw[place * width : (place + 1) * width] for place, one in enumerate(wanted) if one)


def _bits(score: float) -> int:
    bits = int.from_bytes(pack("<d", score), "little")
    return 0 if bits == 1 << 63 else bits


def _hash(score: float) -> int:
    """Return xxhash64 of the eight bytes of a double, seed 42."""
    first, second, third, fourth, start = HASH_NUMBERS
    value = start ^ (_turned(_bits(score) * second & _ALL, 31) * first & _ALL)
    value = (_turned(value, 27) * first + fourth) & _ALL
    value = ((value ^ value >> 33) * second) & _ALL
    value = ((value ^ value >> 29) * third) & _ALL
    return value ^ value >> 32


def _turned(bits: int, by: int) -> int:
    return (bits << by | bits >> (64 - by)) & _ALL


if __name__ == "__main__":
    try:
        load(Path(sys.argv[1]), _THOROUGH)
    except OSError as error:
        sys.exit(str(error))
