"""Images of digits as anomalies: some digits are normal, some are anomalous, the rest is left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.errors import InputError

Part = tuple[NDArray[np.float32], NDArray[np.int64]]


def check_digits(normal: Sequence[int], anomalous: Sequence[int]) -> None:
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


def select_digits(
    name: str, parts: tuple[Part, Part], normal: Sequence[int], anomalous: Sequence[int]
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
