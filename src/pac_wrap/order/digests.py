"""A digest of scores: it depends on every score, not on their order, and digests of parts add up."""

from pac_wrap.kernels import MODULUS, Floats, kernels


def digest(scores: Floats) -> str:
    """Return 16 hex digits that depend on the scores but not on their order.

    The sum, modulo 2^64, of xxhash64 (seed 42) of each score as a double, 0.0 for -0.0. Finds accidents,
    not forgers. Sums of chunks merge, so any engine can compute it (decision 17).

    >>> import numpy as np
    >>> digest(np.array([1.0]))
    'e1fd6e07fee8ad53'
    >>> digest(np.array([1.0, 2.0, 2.0])) == digest(np.array([2.0, 1.0, 2.0]))
    True
    """
    return as_digest(kernels().mix(scores))


def as_digest(mixed: int) -> str:
    """Return the digest that shows a sum of hashes.

    >>> as_digest(255)
    '00000000000000ff'
    """
    return f"{mixed % MODULUS:016x}"
