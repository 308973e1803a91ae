"""Images of digits as anomalies: some digits are normal, some are anomalous, the rest is left out.

By default 0, 6 and 9 are normal and 8 is anomalous, as in the paper.
"""

import gzip
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.paper.data.dataset import Dataset
from pac_wrap.paper.data.registry import ENTRIES, RemoteFile
from pac_wrap.paper.data.store import fetch

Images = tuple[NDArray[np.float32], NDArray[np.int64]]

_PIXELS: Final = 28 * 28
# an IDX file begins with its kind and the length of each dimension, four bytes each
_IMAGE_HEADER: Final = 16
_LABEL_HEADER: Final = 8


def load_usps(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return digits of zip codes, the training part first: 16 x 16 pixels from -1 (white) to 1."""
    _check_digits(normal, anomalous)
    train, test = map(_read_usps, ENTRIES["usps"].files)
    return _select_digits("usps", (train, test), normal, anomalous)


def load_mnist(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return handwritten digits, the training part first: 28 x 28 pixels from 0 to 1, divided by 255."""
    _check_digits(normal, anomalous)
    train_images, train_labels, test_images, test_labels = ENTRIES["mnist"].files
    parts = _read_mnist(train_images, train_labels), _read_mnist(test_images, test_labels)
    return _select_digits("mnist", parts, normal, anomalous)


def _read_usps(file: RemoteFile) -> Images:
    rows = np.loadtxt(fetch(file), dtype=np.float32)
    return rows[:, 1:], rows[:, 0].astype(np.int64)


def _read_mnist(images: RemoteFile, labels: RemoteFile) -> Images:
    with gzip.open(fetch(images)) as packed:
        pixels = np.frombuffer(packed.read(), dtype=np.uint8, offset=_IMAGE_HEADER)
    with gzip.open(fetch(labels)) as packed:
        digits = np.frombuffer(packed.read(), dtype=np.uint8, offset=_LABEL_HEADER)
    return pixels.reshape(-1, _PIXELS).astype(np.float32) / np.float32(255), digits.astype(np.int64)


def _check_digits(normal: Sequence[int], anomalous: Sequence[int]) -> None:
    """Refuse anything but two groups of digits that share none."""
    for name, digits in (("normal", normal), ("anomalous", anomalous)):
        if isinstance(digits, (int, str)) or not digits or not set(digits) <= set(range(10)):
            raise InputError(
                f"{name} must be one or more digits from 0 to 9, such as (0, 6, 9), got {digits!r}"
            )
    shared = sorted(set(normal) & set(anomalous))
    if shared:
        raise InputError(
            f"a digit must be normal or anomalous, not both, got {shared} in normal and in anomalous;"
            " take it out of one of them"
        )


def _select_digits(
    name: str, parts: tuple[Images, Images], normal: Sequence[int], anomalous: Sequence[int]
) -> Dataset:
    """Return the images of those digits out of a training and a test part, each in the order of its file."""
    kept = [np.isin(digits, [*normal, *anomalous]) for _, digits in parts]
    images, digits = (
        np.concatenate([part[field][rows] for part, rows in zip(parts, kept, strict=True)])
        for field in (0, 1)
    )
    y = np.isin(digits, anomalous).astype(np.int8)
    entry = ENTRIES[name]
    n_train = int(np.count_nonzero(kept[0]))
    return Dataset(images, y, name, entry.source, entry.licence, entry.citation, n_train)
