"""Rows of X, whatever holds them: taking some, splitting them by class, telling whether two are the same."""

from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError

Indices = NDArray[np.intp]
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


def take_rows(X: Any, rows: Indices) -> Any:
    """Return the given rows of an array, frame, sparse matrix or list, in the same kind of container."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


def split_rows(
    anomalous: NDArray[np.bool_],
    share: float,
    random: np.random.RandomState,
    *,
    keep_anomalies: bool,
) -> tuple[Indices, Indices]:
    """Return the rows to train on and those to calibrate on, `share` of each class.

    With `keep_anomalies` every anomaly calibrates: a detector trained on normal rows has no use for them.
    Either part empty is refused.
    """
    train, held_out = [], []
    for rows in (np.flatnonzero(~anomalous), np.flatnonzero(anomalous)):
        shuffled = random.permutation(rows)
        whole = keep_anomalies and rows.size > 0 and bool(anomalous[rows[0]])
        size = rows.size if whole else round(share * rows.size)
        held_out.append(shuffled[:size])
        train.append(shuffled[size:])
    if not sum(rows.size for rows in train) or not sum(rows.size for rows in held_out):
        raise InputError(
            f"fit needs rows to train on ({'normal ones' if keep_anomalies else 'of both classes'})"
            f" and rows to calibrate on, got n_samples = {anomalous.size},"
            f" {np.count_nonzero(anomalous)} of them anomalous; add rows or change calibration_size"
        )
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(held_out))


def row_digests(X: Any, *, single: bool = False) -> NDArray[np.uint64]:
    """Return a number per row, the same for equal rows: the sum over columns of a hash that is 0 for 0.

    With `single`, floats are rounded to single precision first: the digest that a float32 copy would have.
    """
    if hasattr(X, "tocoo"):
        entries = X.tocoo(copy=True)
        entries.sum_duplicates()
        digests = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(digests, entries.coords[0], _mix(entries.data, entries.coords[1], single))
        return digests
    hashes = (_mix(column, np.array([position]), single) for position, column in enumerate(_columns(X)))
    return reduce(np.add, hashes)


def _columns(X: Any) -> Iterator[NDArray[Any]]:
    if hasattr(X, "columns"):
        for position in range(X.shape[1]):
            yield np.asarray(X.iloc[:, position] if hasattr(X, "iloc") else X[:, position])
    else:
        array = np.asarray(X)
        yield from array.reshape(array.shape[0], -1).T


def _mix(column: NDArray[Any], position: NDArray[Any], single: bool) -> NDArray[np.uint64]:
    if column.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            column = column.astype(np.float64)
    if single and column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            column = column.astype(np.float32)
    if column.dtype.kind in "biuf":
        bits = (column.astype(np.float64) + 0.0).view(np.uint64)
    else:
        bits = _text_bits(column)
    salt: NDArray[np.uint64] = (position.astype(np.uint64) * np.uint64(2) + np.uint64(1)) * _ODD
    mixed: NDArray[np.uint64] = (bits ^ (bits >> np.uint64(32))) * salt
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _text_bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    texts, inverse = np.unique(column.astype(str), return_inverse=True)
    hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts]
    return np.array(hashes, dtype=np.uint64)[inverse]
