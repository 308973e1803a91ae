"""The passes over scores in NumPy, for where no C compiler was found; chunks stay in the cache."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.floats import Bits, Doubles, Floats, bits_of

Codes = NDArray[np.int8]

# a chunk and two buffers of this many doubles stay in the second-level cache
CHUNK: Final = 1 << 16
MODULUS: Final = 1 << 64
# sign, exponent and four more bits: sixteen ranges between a number and its double
BITS: Final = 16
# xxhash64 of eight bytes: its primes, and what it starts with for seed 42
FIRST: Final = 0x9E3779B185EBCA87
SECOND: Final = 0xC2B2AE3D27D4EB4F
THIRD: Final = 0x165667B19E3779F9
FOURTH: Final = 0x85EBCA77C2B2AE63
START: Final = 42 + 0x27D4EB2F165667C5 + 8


class Inside(NamedTuple):
    """The scores in [low, high], unless they were only to be looked at, and how many lie on either side.

    `nan` says whether there was one; `hash_sum` is the sum of hashes that the digest shows.
    """

    below: int
    above: int
    scores: Floats
    nan: bool
    hash_sum: int


class Plain:
    """The passes over scores, as methods."""

    def codes(
        self,
        scores: NDArray[Any],
        low: np.floating,
        high: np.floating,
        choice: tuple[int, int, int],
        out: Codes,
    ) -> bool:
        """Write a code for scores up to `low`, up to `high` and above; return whether none is NaN.

        NaN gets a code too, which means nothing.
        """
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
        """Return what lies in [low, high], and kept if asked for, with all that one pass can count."""
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
                mixer.add(chunk)
        return Inside(below, above, np.concatenate(inside), nan, mixer.total)

    def count(self, scores: Floats, bound: np.floating) -> int:
        """Return how many scores are less than a bound."""
        chunks = (scores[start : start + CHUNK] for start in range(0, scores.size, CHUNK))
        return sum(int(np.count_nonzero(chunk < bound)) for chunk in chunks)

    def mix(self, scores: Floats) -> int:
        """Return the sum that a digest shows: the hashes of the scores, modulo 2^64."""
        mixer = _Mixer(min(scores.size, CHUNK))
        for start in range(0, scores.size, CHUNK):
            mixer.add(scores[start : start + CHUNK])
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
            mixer.add_bits(bits)
        return mixer.total

    def divide(self, scores: Doubles, marks: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Return the scores without and those with a mark."""
        # by position: mixed marks make a mask several times as slow
        return scores[np.flatnonzero(~marks)], scores[np.flatnonzero(marks)]


def hashes(scores: Doubles) -> Bits:
    """Return the hash of each score; a digest is the sum of those of a class, modulo 2^64.

    >>> int(hashes(np.array([1.0, 2.0])).sum()) == Plain().mix(np.array([1.0, 2.0]))
    True
    """
    found = np.empty(scores.size, dtype=np.uint64)
    mixer = _Mixer(min(scores.size, CHUNK))
    for start in range(0, scores.size, CHUNK):
        bits = mixer.bits(scores[start : start + CHUNK])
        mixer.mix(bits)
        found[start : start + bits.size] = bits
    return found


class _Mixer:
    """Sums up the hashes of scores, chunk by chunk, in two buffers.

    A score's hash is xxhash64 of the eight bytes of the double, seed 42: what Spark's SQL function gives.
    """

    def __init__(self, largest: int) -> None:
        self.total = 0
        self._values = np.empty(largest)
        self._spare = np.empty(largest, dtype=np.uint64)

    def add(self, chunk: Floats) -> None:
        """Add a chunk, float64 or float32, that is no larger than `largest`."""
        self.add_bits(self.bits(chunk))

    def bits(self, chunk: Floats) -> Bits:
        """Return the bits of a chunk, which stay valid until the next one."""
        return bits_of(chunk, self._values[: chunk.size])

    def add_bits(self, bits: Bits) -> None:
        """Add bits, which are overwritten."""
        self.mix(bits)
        self.total = (self.total + int(bits.sum())) % MODULUS

    def mix(self, bits: Bits) -> None:
        """Overwrite bits with their hashes."""
        bits *= np.uint64(SECOND)
        self._turn(bits, 31)
        bits *= np.uint64(FIRST)
        bits ^= np.uint64(START)
        self._turn(bits, 27)
        bits *= np.uint64(FIRST)
        bits += np.uint64(FOURTH)
        self._fold(bits, 33)
        bits *= np.uint64(SECOND)
        self._fold(bits, 29)
        bits *= np.uint64(THIRD)
        self._fold(bits, 32)

    def _turn(self, bits: Bits, by: int) -> None:
        """Move bits up, those that fall off coming in below."""
        upper = np.left_shift(bits, np.uint64(by), out=self._spare[: bits.size])
        bits >>= np.uint64(64 - by)
        bits |= upper

    def _fold(self, bits: Bits, by: int) -> None:
        """Fold the upper bits onto the lower ones."""
        bits ^= np.right_shift(bits, np.uint64(by), out=self._spare[: bits.size])
