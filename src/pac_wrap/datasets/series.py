"""Data sets of many series: members of one archive, read one at a time and put together."""

from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.store import fetch
from pac_wrap.errors import DataError


def open_archive(name: str) -> ZipFile:
    """Return the archive of a data set, opened after its hash was checked."""
    (file,) = ENTRIES[name].files
    return ZipFile(fetch(file))


def read_member(archive: ZipFile, member: str) -> bytes:
    """Return what a member of an archive holds, unpacked in memory."""
    try:
        return archive.read(member)
    except KeyError:
        raise DataError(
            f"{archive.filename} must hold {member}, but does not; load another series of it"
        ) from None


def join(
    name: str, part: str, train: NDArray[np.floating], test: NDArray[np.floating], y: NDArray[np.int8]
) -> Dataset:
    """Return a training and a test series as one data set, if they fit together and all values are finite."""
    shapes = train.shape, test.shape, y.shape
    if [train.ndim, test.ndim] != [2, 2] or train.shape[1] != test.shape[1] or y.shape != test.shape[:1]:
        raise DataError(
            f"the training series, the test series and the labels of {part!r} must fit together, got the"
            f" shapes {', '.join(map(str, shapes))}; load another series of {name}"
        )
    X = np.concatenate([train, test], dtype=np.float32, casting="same_kind")
    if not np.isfinite(X).all():
        raise DataError(
            f"the values of {part!r} must be finite, but {np.count_nonzero(~np.isfinite(X)):,} of {X.size:,}"
            f" are not; load another series of {name}"
        )
    entry = ENTRIES[name]
    labels = np.concatenate([np.zeros(len(train), np.int8), y])
    return Dataset(X, labels, f"{name}/{part}", entry.source, entry.licence, entry.citation, len(train))
