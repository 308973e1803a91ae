import numpy as np

from pac_wrap.ranks.kernels import Plain, as_digest, digest, hashes, together


def test_hashes() -> None:
    assert int(hashes(np.array([1.0, 2.0])).sum()) == Plain().mix(np.array([1.0, 2.0]))


def test_together() -> None:
    assert (together([lambda: 1, lambda: 2])) == ([1, 2])


def test_digest() -> None:
    assert (digest(np.array([1.0]))) == ("e1fd6e07fee8ad53")
    assert digest(np.array([1.0, 2.0, 2.0])) == digest(np.array([2.0, 1.0, 2.0]))


def test_as_digest() -> None:
    assert (as_digest(255)) == ("00000000000000ff")
