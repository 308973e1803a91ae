"""Rows of X: taking some, and telling whether something was trained on them."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import bits_of
from pac_wrap.base.text import listed
from pac_wrap.detectors.scores import handed_on
from pac_wrap.errors import InputError, OverlapWarning

Indices = NDArray[np.intp]
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
# where scikit-learn, PyOD and those who follow their templates keep rows, and scores, of the training data
_ROWS: Final = ("X_", "_fit_X", "X_fit_", "X_train_", "X_train", "support_vectors_", "subset")
_SCORES: Final = ("decision_scores_", "dist_")


def take_rows(X: Any, rows: Indices) -> Any:
    """Return the given rows of an array, frame, sparse matrix or list, in the same kind of container."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


def collected(X: Any) -> Any:
    """Return rows that can be taken: a LazyFrame of Polars is computed, a table of Arrow becomes pandas'."""
    lazy = type(X).__name__ == "LazyFrame" and type(X).__module__.partition(".")[0] == "polars"
    arrow = hasattr(X, "column_names") and hasattr(X, "to_pandas")
    return X.collect() if lazy else X.to_pandas() if arrow else X


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; None if there are none, or some are no texts."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def check_names(seen: list[str], X: Any) -> None:
    """Refuse a data frame whose columns are not those that were seen, in the same order.

    >>> import pandas as pd
    >>> check_names(["a", "b"], pd.DataFrame({"b": [1], "a": [2]}))
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: the feature names should match those that were passed during fit, but X has \
them in another order; pass its columns in the order a, b
    """
    names = names_of(X)
    if names is None or names == seen:
        return
    lost, new = (
        [one for one in ones if one not in others] for ones, others in ((seen, names), (names, seen))
    )
    wrong = [f"{verb} {listed(ones)}" for verb, ones in (("lacks", lost), ("adds", new)) if ones]
    raise InputError(
        "the feature names should match those that were passed during fit, but X"
        f" {' and '.join(wrong) or 'has them in another order'}; pass its columns in the order {listed(seen)}"
    )


@dataclass(frozen=True)
class TrainingRows:
    """What is remembered of the rows a detector was trained on: their digests, as they are and in float32."""

    exact: NDArray[np.uint64]
    single: NDArray[np.uint64]
    columns: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the digests of the rows of X."""
        columns = tuple(getattr(X, "columns", ()))
        return cls(np.unique(row_digests(X)), np.unique(row_digests(X, single=True)), columns)

    def count_in(self, X: Any) -> int:
        """Return how many rows of X are training rows, the float32 copy of one, or what one is a copy of.

        Rows that are merely close are not the same: float32 cannot tell seconds of one minute apart. Columns
        in another order, or more of them, change no row.
        """
        columns = tuple(getattr(X, "columns", ()))
        if columns != self.columns and self.columns and set(self.columns) <= set(columns):
            X = X[list(self.columns)]
        exact = row_digests(X)
        copies = np.isin(exact, self.single) | np.isin(row_digests(X, single=True), self.exact)
        return int(np.count_nonzero(np.isin(exact, self.exact) | copies))


def repeated_rows(training: TrainingRows, X: Any) -> tuple[str, ...]:
    """Return the note on rows of X that equal training rows though the data were divided at random.

    Records that happen to be equal are draws like any others, so nothing is wrong with them; whether one
    record was entered twice, only its owner knows.

    >>> repeated_rows(TrainingRows.of(np.array([[1.0], [2.0]])), np.array([[2.0], [3.0]]))[0][:48]
    '1 of 2 calibration rows equal a training row: no'
    """
    count, of = training.count_in(X), _shape(X)[0]
    if not count:
        return ()
    return (
        f"{count:,} of {of:,} calibration rows equal a training row: no harm if future rows repeat as often,"
        " but if records were entered twice, the rates are worse than promised",
    )


def warn_of_training_rows(
    training: TrainingRows | None, detector: Any, X: Any, scores: Scores, *, held_out: bool = False
) -> None:
    """Warn of calibration rows, or of held-out ones, that the detector was trained on.

    Here, or elsewhere if it still holds them.
    """
    if training is not None:
        count, where = training.count_in(X), "are also in the training data"
    else:
        count, where = _known_to(detector, X, scores), "are known to the detector from its training"
    if count:
        kind = "held-out" if held_out else "calibration"
        harm = (
            "they show too little error: measure"
            if held_out
            else "the promise does not hold for them: calibrate"
        )
        warnings.warn(
            f"{count:,} {kind} rows {where}; if they are the same records {harm} on rows the detector has not"
            " seen",
            OverlapWarning,
            stacklevel=4,
        )


def _known_to(detector: Any, X: Any, scores: Scores) -> int:
    """Return how many rows of X a detector holds, as rows or by their scores, from a training elsewhere.

    Neighbours, kernel densities, support vector machines and Gaussian processes keep training rows, in a
    pipeline as its last step sees them; PyOD's detectors and robust covariances keep training scores. A
    forest or a network keeps nothing that could be seen.
    """
    core, rows = _inside(detector, X)
    counts = [0]
    for one in _detectors_in(core):
        for kept in _kept_rows(one):
            if len(kept.shape) == 2 and kept.shape[0] and kept.shape[1:] == _shape(rows)[1:]:
                counts.append(TrainingRows.of(kept).count_in(rows))
        counts.extend(_known_scores(vars(one).get(name), scores) for name in _SCORES)
    return max(counts)


def _inside(detector: Any, X: Any) -> tuple[Any, Any]:
    """Return the last estimator of pipelines, searches and frozen ones, and the rows as it sees them."""
    while (inner := handed_on(detector)) is not None:
        if len(getattr(detector, "steps", ())) > 1:
            X = detector[:-1].transform(X)
        detector = inner
    return detector, X


def _detectors_in(core: Any, seen: frozenset[int] = frozenset()) -> Iterator[Any]:
    """Yield a detector and those it holds as attributes: PyOD's wrap others."""
    if hasattr(core, "fit") and hasattr(core, "__dict__") and id(core) not in seen:
        yield core
        for value in vars(core).values():
            yield from _detectors_in(value, seen | {id(core)})


def _kept_rows(one: Any) -> Iterator[Any]:
    for name, value in vars(one).items():
        if name in _ROWS and hasattr(value, "shape"):
            yield value
        elif hasattr(value, "get_arrays"):  # scikit-learn's trees of neighbours
            yield np.asarray(value.get_arrays()[0])


def _shape(rows: Any) -> tuple[int, ...]:
    return rows.shape if hasattr(rows, "shape") else np.shape(rows)


def _known_scores(kept: Any, scores: Scores) -> int:
    """Return the number of scores if all are among those kept, and too many differ for that to be chance."""
    if kept is None or np.ndim(kept) != 1:
        return 0
    values, counts = np.unique(scores.astype(np.float32), return_counts=True)
    if values.size < 2 or 2 * values.size < scores.size:
        return 0
    known, times = np.unique(np.asarray(kept, dtype=np.float32), return_counts=True)
    found = np.searchsorted(known, values).clip(max=known.size - 1)
    return scores.size if np.all((known[found] == values) & (counts <= times[found])) else 0


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
    bits = bits_of(column, np.empty(column.shape)) if column.dtype.kind in "biuf" else _text_bits(column)
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
