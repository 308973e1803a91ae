"""The passes over scores: in C, or in NumPy if no C compiler was found.

C is called through ctypes, so that the build needs no Python headers, and no lock is held meanwhile.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.floats import Bits, Doubles, Floats, bits_of, flushes
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.ranks.compiled import HASH_NUMBERS, Functions, load_sealed

T = TypeVar("T")
Array = NDArray[Any]
Codes = NDArray[np.int8]
Choice = tuple[int, int, int]

# a chunk and two buffers of this many doubles stay in the second-level cache
CHUNK: Final = 1 << 16
MODULUS: Final = 1 << 64
# sign, exponent and four more bits: sixteen ranges between a number and its double
BITS: Final = 16
_FIRST, _SECOND, _THIRD, _FOURTH, _START = map(np.uint64, HASH_NUMBERS)


class Inside(NamedTuple):
    """The numbers of scores below and above [low, high], those inside if wanted, and the sum of hashes."""

    below: int
    above: int
    scores: Floats
    nan: bool
    hash_sum: int


class Plain:
    """The passes over scores in NumPy; chunks stay in the cache."""

    def codes(self, scores: Array, low: np.floating, high: np.floating, choice: Choice, out: Codes) -> bool:
        """Write a code for scores up to `low`, up to `high` and above; return whether no score is NaN."""
        below, between, above = choice
        sound = True
        buffers = np.empty((2, min(scores.size, CHUNK)), dtype=bool)
        # a signalling NaN would otherwise warn
        with np.errstate(invalid="ignore"):
            for start in range(0, scores.size, CHUNK):
                chunk, found = scores[start : start + CHUNK], out[start : start + CHUNK]
                within, spare = buffers[:, : chunk.size]
                beyond_low = np.greater(chunk, low, out=found.view(bool))
                np.less_equal(chunk, high, out=within)
                # neither holds for NaN, and one of them for every other score
                sound &= bool(np.logical_or(beyond_low, within, out=spare).all())
                if between != above:
                    middle = np.logical_and(beyond_low, within, out=within).view(np.int8)
                    np.multiply(middle, np.int8(between - above), out=middle)
                if above - below != 1:
                    np.multiply(found, np.int8(above - below), out=found)
                if between != above:
                    np.add(found, middle, out=found)
                if below:
                    np.add(found, np.int8(below), out=found)
        return sound

    def bracket(self, scores: Floats, low: np.floating, high: np.floating, *, keep: bool) -> Inside:
        """Return the counts of one pass around [low, high], with the scores inside if `keep`."""
        below, above, nan, mixer = 0, 0, False, _Mixer(min(scores.size, CHUNK))
        inside = [np.empty(0, dtype=scores.dtype)]
        lower, upper = np.empty((2, min(scores.size, CHUNK)), dtype=bool)
        with np.errstate(invalid="ignore"):
            for start in range(0, scores.size, CHUNK):
                chunk = scores[start : start + CHUNK]
                less, more = lower[: chunk.size], upper[: chunk.size]
                np.less(chunk, low, out=less)
                np.greater(chunk, high, out=more)
                below += int(np.count_nonzero(less))
                above += int(np.count_nonzero(more))
                # neither: inside, or NaN
                found = chunk[np.equal(less, more, out=more)]
                nan |= bool(np.isnan(found).any())
                if keep:
                    inside.append(found)
                mixer.add(mixer.bits(chunk))
        return Inside(below, above, np.concatenate(inside), nan, mixer.total)

    def count(self, scores: Floats, bound: np.floating) -> int:
        """Return how many scores are less than a bound."""
        chunks = (scores[start : start + CHUNK] for start in range(0, scores.size, CHUNK))
        return sum(int(np.count_nonzero(chunk < bound)) for chunk in chunks)

    def mix(self, scores: Floats) -> int:
        """Return the sum behind a digest: the hashes of the scores, modulo 2^64."""
        mixer = _Mixer(min(scores.size, CHUNK))
        for start in range(0, scores.size, CHUNK):
            mixer.add(mixer.bits(scores[start : start + CHUNK]))
        return mixer.total

    def count_leading(self, scores: Doubles, counts: NDArray[np.int64]) -> int:
        """Add each score to the counter of its 16 leading bits; return the sum for the digest."""
        mixer = _Mixer(min(scores.size, CHUNK))
        for start in range(0, scores.size, CHUNK):
            bits = mixer.bits(scores[start : start + CHUNK])
            leading = (bits >> np.uint64(64 - BITS)).view(np.int64)
            first = int(leading.min())
            found = np.bincount(leading - first)
            counts[first : first + found.size] += found
            mixer.add(bits)
        return mixer.total

    def divide(self, scores: Doubles, marks: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Return the scores without and those with a mark."""
        # by position, since mixed marks make a mask several times slower
        return scores[np.flatnonzero(~marks)], scores[np.flatnonzero(marks)]


def hashes(scores: Doubles) -> Bits:
    """Return xxhash64 (seed 42) of each score, 0.0 for -0.0; a digest is the sum of a class, modulo 2^64."""
    found = np.empty(scores.size, dtype=np.uint64)
    mixer = _Mixer(min(scores.size, CHUNK))
    for start in range(0, scores.size, CHUNK):
        bits = mixer.bits(scores[start : start + CHUNK])
        mixer.mix(bits)
        found[start : start + bits.size] = bits
    return found


class _Mixer:
    """Adds up the hashes of scores, chunk by chunk: xxhash64 of the bytes of the double, seed 42."""

    def __init__(self, largest: int) -> None:
        self.total = 0
        self._values = np.empty(largest)
        self._spare = np.empty(largest, dtype=np.uint64)

    def bits(self, chunk: Floats) -> Bits:
        """Return the bits of a chunk, no larger than `largest`, which stay valid until the next one."""
        return bits_of(chunk, self._values[: chunk.size])

    def add(self, bits: Bits) -> None:
        """Add bits, which are overwritten."""
        self.mix(bits)
        self.total = (self.total + int(bits.sum())) % MODULUS

    def mix(self, bits: Bits) -> None:
        bits *= _SECOND
        self._turn(bits, 31)
        bits *= _FIRST
        bits ^= _START
        self._turn(bits, 27)
        bits *= _FIRST
        bits += _FOURTH
        self._fold(bits, 33)
        bits *= _SECOND
        self._fold(bits, 29)
        bits *= _THIRD
        self._fold(bits, 32)

    def _turn(self, bits: Bits, by: int) -> None:
        upper = np.left_shift(bits, np.uint64(by), out=self._spare[: bits.size])
        bits >>= np.uint64(64 - by)
        bits |= upper

    def _fold(self, bits: Bits, by: int) -> None:
        bits ^= np.right_shift(bits, np.uint64(by), out=self._spare[: bits.size])


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def together(actions: Sequence[Callable[[], T]], scores: int | None = None) -> list[T]:
    """Return the results of actions, run in threads unless each has few scores to look at."""
    if len(actions) == 1 or usable_cores() == 1 or (scores is not None and scores <= _MANY):
        return [action() for action in actions]
    # loaded when it is needed: it is not cheap to import
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(actions) - 1) as pool:
        others = [pool.submit(action) for action in actions[1:]]
        return [actions[0](), *(other.result() for other in others)]


# from more scores of each class on, a thread for each pays
_MANY: Final = 1 << 20
_SOURCE: Final = Path(__file__).with_name("kernels.c")
# scores per call; their results are written to a buffer, of which only the beginning is used
_CHUNK: Final = 1 << 18
_DOUBLE: Final[np.dtype[Any]] = np.dtype(np.float64)
_KINDS: Final[tuple[np.dtype[Any], ...]] = _DOUBLE, np.dtype(np.float32)


def library() -> Path:
    """Return the path of the compiled library, if it exists; its name identifies the source."""
    return _SOURCE.with_name(f"kernels-{crc32(_SOURCE.read_bytes()):08x}.so")


class Native(Plain):
    """The passes in C; NumPy handles arrays that C cannot walk through."""

    def __init__(self, functions: Functions) -> None:
        self._codes, self._bracket, self._count, self._mix = (
            {kind: functions[f"{name}_{kind}"] for kind in _KINDS}
            for name in ("codes", "bracket", "count", "mix")
        )
        self._count_leading, self._divide = functions["count_leading"], functions["divide"]

    def codes(self, scores: Array, low: np.floating, high: np.floating, choice: Choice, out: Codes) -> bool:
        if not _walkable(scores):
            return super().codes(scores, low, high, choice, out)
        call = self._codes[scores.dtype]
        return bool(call(_at(scores), scores.size, low, high, *choice, _at(out)))

    def bracket(self, scores: Floats, low: np.floating, high: np.floating, *, keep: bool) -> Inside:
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
        below, above, hash_sum = sums.tolist()
        return Inside(below, above, np.concatenate(inside), nan, hash_sum)

    def count(self, scores: Floats, bound: np.floating) -> int:
        if not _walkable(scores):
            return super().count(scores, bound)
        return int(self._count[scores.dtype](_at(scores), scores.size, bound))

    def mix(self, scores: Floats) -> int:
        if not _walkable(scores) or _flushed(scores):
            return super().mix(scores)
        return int(self._mix[scores.dtype](_at(scores), scores.size))

    def count_leading(self, scores: Doubles, counts: NDArray[np.int64]) -> int:
        if not _walkable(scores, np.float64):
            return super().count_leading(scores, counts)
        return int(self._count_leading(_at(scores), scores.size, _at(counts)))

    def divide(self, scores: Doubles, marks: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        sound = _walkable(scores, np.float64) and _walkable(marks, np.bool_)
        if not sound or marks.size != scores.size:
            return super().divide(scores, marks)
        marked = int(np.count_nonzero(marks))
        # one more, since a score is written to both before its mark is read
        pair = np.empty(scores.size - marked + 1), np.empty(marked + 1)
        self._divide(_at(scores), _at(marks), scores.size, _at(pair[0]), _at(pair[1]))
        return pair[0][:-1], pair[1][:-1]


def _walkable(array: Array, *kinds: Any) -> bool:
    """Return whether an array has one of these types, or any type of scores in C, and is contiguous."""
    return array.dtype in (kinds or _KINDS) and array.flags.c_contiguous and array.flags.aligned


def _flushed(scores: Floats) -> bool:
    """Return whether some scores may lose their bits as C widens them for their hash."""
    return scores.dtype != _DOUBLE and flushes()


def _at(array: Array) -> int:
    return array.ctypes.data


@cache
def kernels() -> Plain:
    """Return the fastest available kernels, or those that PAC_WRAP_KERNELS names: native or plain."""
    functions = compiled_functions(library(), "NumPy does the same more slowly")
    return Plain() if functions is None else Native(functions)


def compiled_functions(path: Path, otherwise: str) -> Functions | None:
    """Return the functions of a library, None if it is absent or unwanted; then `otherwise` happens."""
    wanted = os.environ.get("PAC_WRAP_KERNELS", "")
    if wanted not in ("", "native", "plain"):
        raise InputError(
            f"PAC_WRAP_KERNELS must be native or plain, got {wanted!r}; unset it to use the fastest"
        )
    if wanted == "plain":
        return None
    try:
        return load_sealed(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
        if wanted:
            raise InputError(
                f"PAC_WRAP_KERNELS is native, but the library cannot be loaded: {error};"
                " install again where there is a C compiler, or unset it"
            ) from error
        # a library that was never compiled needs no warning
        if not isinstance(error, FileNotFoundError):
            warnings.warn(
                f"the compiled kernels cannot be used, so {otherwise}: {error};"
                " install the package again, or set PAC_WRAP_KERNELS=plain",
                PACWrapWarning,
                stacklevel=2,
            )
    return None


def digest(scores: Floats) -> str:
    """Return 16 hex digits that depend on the scores, not on their order; sums merge (decision 17)."""
    return as_digest(kernels().mix(scores))


def as_digest(hash_sum: int) -> str:
    """Return the digest of a sum of hashes."""
    return f"{hash_sum % MODULUS:016x}"
