"""A digest of scores: it depends on every score, not on their order, and digests of parts add up."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

# a chunk and two buffers of this many doubles stay in the second-level cache
CHUNK: Final = 1 << 16
_MODULUS: Final = 1 << 64
# brings sign, exponent and the leading digits down to the last bits, which are zero in round numbers
_DOWN: Final = np.uint64(40)


class Mixer:
    """Sums up the squares of the mixed bits of scores, chunk by chunk, in two buffers used again and again.

    >>> mixer = Mixer()
    >>> mixer.add(np.array([1.0]))
    >>> mixer.add(np.array([2.0, 2.0]))
    >>> mixer.digest == digest(np.array([2.0, 1.0, 2.0]))
    True
    """

    def __init__(self, largest: int = CHUNK) -> None:
        self.total = 0
        self._mixed = np.empty(largest)
        self._spare = np.empty(largest, dtype=np.uint64)

    def add(self, chunk: Floats) -> None:
        """Add a chunk, float64 or float32, that is no larger than `largest`."""
        values, shifted = self._mixed[: chunk.size], self._spare[: chunk.size]
        # adding 0.0 widens float32 and turns -0.0, which compares equal, into 0.0
        np.add(chunk, 0.0, out=values)
        mixed = values.view(np.uint64)
        np.right_shift(mixed, _DOWN, out=shifted)
        np.bitwise_xor(mixed, shifted, out=mixed)
        # the squares: a plain sum would not notice two scores that move towards each other
        self.total = (self.total + int(np.dot(mixed, mixed))) % _MODULUS

    @property
    def digest(self) -> str:
        """The digest of everything added so far."""
        return as_digest(self.total)


def as_digest(total: int) -> str:
    """Return the 16 hex digits of a sum of squares."""
    return f"{total % _MODULUS:016x}"


def digest(scores: Floats) -> str:
    """Return 16 hex digits that depend on the scores but not on their order.

    Guards against mix-ups, not against forgery. Sums of chunks merge, so any engine can compute it.

    >>> digest(np.array([1.0, 2.0, 2.0])) == digest(np.array([2.0, 1.0, 2.0]))
    True
    """
    mixer = Mixer(min(scores.size, CHUNK))
    for start in range(0, scores.size, CHUNK):
        mixer.add(scores[start : start + CHUNK])
    return mixer.digest
