"""MNIST: handwritten digits, 28 x 28 pixels from 0 to 1; by default 0, 6, 9 are normal, 8 is not."""

import gzip
from collections.abc import Sequence
from typing import Final

import numpy as np

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.digits import Part, check_digits, select_digits
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.datasets.store import fetch

_PIXELS: Final = 28 * 28
# an IDX file begins with its kind and the length of each dimension, four bytes each
_IMAGE_HEADER: Final = 16
_LABEL_HEADER: Final = 8


def load(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return the images of those digits, the training part first; the pixels are divided by 255."""
    check_digits(normal, anomalous)
    train_images, train_labels, test_images, test_labels = ENTRIES["mnist"].files
    parts = _read(train_images, train_labels), _read(test_images, test_labels)
    return select_digits("mnist", parts, normal, anomalous)


def _read(images: RemoteFile, labels: RemoteFile) -> Part:
    with gzip.open(fetch(images)) as packed:
        pixels = np.frombuffer(packed.read(), dtype=np.uint8, offset=_IMAGE_HEADER)
    with gzip.open(fetch(labels)) as packed:
        digits = np.frombuffer(packed.read(), dtype=np.uint8, offset=_LABEL_HEADER)
    return pixels.reshape(-1, _PIXELS).astype(np.float32) / np.float32(255), digits.astype(np.int64)
