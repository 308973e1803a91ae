"""SMD: 38 measurements of each of the machines of an internet company, over five weeks.

The file has the labels of 28 machines and the series of 19. What is not there is not made up: `machines`
lists the machines that can be loaded, `missing` those that cannot.
"""

import re
from typing import Final
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.series import join, open_archive, read_member
from pac_wrap.errors import DataError, InputError

_FOLDER: Final = "OmniAnomaly-master/ServerMachineDataset/"
_SERIES: Final = ("train", "test")
_LABELS: Final = "test_label"


def machines() -> tuple[str, ...]:
    """Return the machines whose series are in the file, machine-1-2 before machine-1-10."""
    with open_archive("smd") as archive:
        return _divide(archive)[0]


def missing() -> tuple[str, ...]:
    """Return the machines that have labels in the file but no series."""
    with open_archive("smd") as archive:
        return _divide(archive)[1]


def load(machine: str) -> Dataset:
    """Return the training steps of a machine and then its test steps; only those can be anomalies."""
    with open_archive("smd") as archive:
        present, absent = _divide(archive)
        if machine not in present:
            raise _refusal(machine, present, absent)
        train, test = (_numbers(archive, part, machine) for part in _SERIES)
        labels = _numbers(archive, _LABELS, machine)
    if labels.shape[1] != 1 or not np.isin(labels, (0, 1)).all():
        raise DataError(
            f"the labels of {machine!r} must be one column of 0 and 1, got the shape {labels.shape} and"
            f" values from {labels.min():g} to {labels.max():g}; load another machine of smd"
        )
    return join("smd", machine, train, test, labels[:, 0].astype(np.int8))


def _divide(archive: ZipFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the machines with labels and both series, and those with labels alone."""
    held = {part: _names(archive, part) for part in (*_SERIES, _LABELS)}
    present = held["train"] & held["test"] & held[_LABELS]
    in_order = sorted(held[_LABELS], key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    absent = tuple(name for name in in_order if name not in present)
    return tuple(name for name in in_order if name in present), absent


def _names(archive: ZipFile, part: str) -> set[str]:
    start = f"{_FOLDER}{part}/"
    members = (member.removeprefix(start) for member in archive.namelist() if member.startswith(start))
    return {member.removesuffix(".txt") for member in members if member.endswith(".txt")}


def _numbers(archive: ZipFile, part: str, machine: str) -> NDArray[np.float32]:
    lines = read_member(archive, f"{_FOLDER}{part}/{machine}.txt").decode().splitlines()
    try:
        return np.loadtxt(lines, dtype=np.float32, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(
            f"{part}/{machine}.txt must hold numbers, as many in each line, but does not: {error};"
            " load another machine of smd"
        ) from error


def _refusal(machine: str, present: tuple[str, ...], absent: tuple[str, ...]) -> DataError | InputError:
    """Return the refusal of a machine whose series are not in the file, or that there is none of."""
    listed = f"the machines with series are {', '.join(present)}"
    if machine in absent:
        return DataError(
            f"the series of {machine!r} are not in the file of smd, only its labels are; load another one:"
            f" {listed}"
        )
    return InputError(f"there is no machine {machine!r} in smd; {listed}")
