"""USPS: digits of zip codes, 16 x 16 pixels from -1 (white) to 1; by default 0, 6, 9 are normal, 8 is not."""

from collections.abc import Sequence

import numpy as np

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.digits import Part, check_digits, select_digits
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.datasets.store import fetch


def load(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return the images of those digits, the training part first; the pixels are as in the file."""
    check_digits(normal, anomalous)
    train, test = map(_read, ENTRIES["usps"].files)
    return select_digits("usps", (train, test), normal, anomalous)


def _read(file: RemoteFile) -> Part:
    rows = np.loadtxt(fetch(file), dtype=np.float32)
    return rows[:, 1:], rows[:, 0].astype(np.int64)
