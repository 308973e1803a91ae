"""One batch as a monitor reads it: verdicts, labels that may be missing, scores that may be missing."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    as_anomaly_mask,
    as_array,
    as_scores,
    check_aligned,
    check_same_length,
)
from pac_wrap.base.foreign import LONGEST, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.metrics import as_verdicts

Places = NDArray[np.int64]
# the mark of a row without a label; others are 0 and 1
UNLABELLED: Final = -1


class Batch(NamedTuple):
    """The rows of a batch, and the places of those that count.

    `points` are the rows that are not known to lack a score, `labelled` those of them that have a label, and
    `scores` the scores of all points, None if no scores were given.
    """

    verdicts: NDArray[np.int8]
    points: Places
    labelled: Places
    anomalous: NDArray[np.bool_]
    scores: Scores | None

    @property
    def unscored(self) -> int:
        """How many rows lack a score; certificates speak of points that have one, so they count nowhere."""
        return self.verdicts.size - self.points.size


def read_batch(
    verdicts: ArrayLike, labels: ArrayLike | None, scores: ArrayLike | None, anomaly_label: object
) -> Batch:
    """Return a batch, or refuse what is no verdict, no label or no score."""
    given = as_verdicts(verdicts)
    labelled, anomalous = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    if labels is not None:
        check_aligned("verdicts", verdicts, "labels", labels)
        values = (
            np.asarray(labels, dtype=object) if _is_plain(labels) else as_array(_filled(labels), "labels")
        )
        check_same_length("verdicts", given.size, "labels", values.size)
        labelled = np.flatnonzero(~_missing(values))
        known = values if labelled.size == values.size else values[labelled]
        anomalous = as_anomaly_mask(known, anomaly_label) if labelled.size else anomalous
    if scores is None:
        return Batch(given, np.arange(given.size), labelled, anomalous, None)
    check_aligned("verdicts", verdicts, "scores", scores)
    values = as_array(_filled(scores), "scores")
    check_same_length("verdicts", given.size, "scores", values.size)
    missing = _missing(values)
    counts = ~missing[labelled]
    known = as_scores(values[~missing] if missing.any() else values)
    return Batch(given, np.flatnonzero(~missing), labelled[counts], anomalous[counts], known)


def parts_of(batch: Batch, rows: Sequence[Places]) -> Iterator[Batch]:
    """Yield a batch of each of several choices of the rows of one, without scores."""
    marks = np.full(batch.verdicts.size, UNLABELLED, dtype=np.int8)
    marks[batch.labelled] = batch.anomalous
    counts = np.zeros(batch.verdicts.size, dtype=bool)
    counts[batch.points] = True
    for own in rows:
        labelled = np.flatnonzero(marks[own] != UNLABELLED)
        yield Batch(
            batch.verdicts[own], np.flatnonzero(counts[own]), labelled, marks[own][labelled] == 1, None
        )


def check_id(name: object) -> str:
    """Return the id of a batch, or refuse it."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST:
        raise InputError(f"id must be a text of 1 to {LONGEST} characters, got {quoted(name)}")
    return name


def _is_plain(values: Any) -> bool:
    return isinstance(values, list | tuple)


def _filled(values: Any) -> Any:
    """Return masked values as missing ones."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        given = values.data.astype(object)
        given[np.ma.getmaskarray(values)] = None
        return given
    return values


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array holds None, NaN or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.fromiter((_is_missing(value) for value in values.flat), dtype=bool, count=values.size)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor not
        return True
