"""Data sets of many series, each in one archive: nasa, by channel, and smd, by machine."""

import csv
import json
import re
from collections.abc import Mapping
from io import BytesIO
from typing import Final
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from pac_wrap import DataError, InputError
from pac_wrap_paper.data.dataset import Dataset
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import fetch

_NASA_LABELS: Final = "data/labeled_anomalies.csv"
_SMD_FOLDER: Final = "OmniAnomaly-master/ServerMachineDataset/"
_SMD_SERIES: Final = ("train", "test")
_SMD_LABELS: Final = "test_label"
LabelRows = list[dict[str, str]]


def nasa_channels() -> tuple[str, ...]:
    """Return the channels that have labels, in the order of the label file."""
    with _archive("nasa") as archive:
        return tuple(_nasa_labels(archive))


def load_nasa(channel: str) -> Dataset:
    """Return the training steps of a channel and then its test steps; only those can be anomalies.

    The channels are telemetry of the satellite SMAP (25 columns) and of MSL, the rover on Mars (55 columns).
    Column 0 is the telemetry, which its publishers scaled by the least and the greatest value of the test
    part; the others are the commands that were sent or received. The label file gives the anomalies as
    intervals of the test part, both ends included; an interval that leaves the test part is refused and never
    cut (the file has none). P-2 is in the label file twice, with the intervals 5350 to 6575 and 5300 to
    6420 of one series of 8,209 steps: here a step of either is an anomaly, which makes 1,276. Published
    totals, 193,500 training and 501,346 test steps, leave P-2 out. T-10 has a series but no labels and is
    refused.
    """
    with _archive("nasa") as archive:
        labels = _nasa_labels(archive)
        if channel not in labels:
            raise _unknown_channel(archive, channel, labels)
        train, test = (_nasa_values(archive, part, channel) for part in ("train", "test"))
    return _join("nasa", channel, train, test, _mark(channel, labels[channel], len(test)))


def smd_machines() -> tuple[str, ...]:
    """Return the machines whose series are in the file, machine-1-2 before machine-1-10."""
    with _archive("smd") as archive:
        return _present_and_absent(archive)[0]


def missing_machines() -> tuple[str, ...]:
    """Return the machines that have labels in the file but no series."""
    with _archive("smd") as archive:
        return _present_and_absent(archive)[1]


def load_smd(machine: str) -> Dataset:
    """Return the training steps of a machine and then its test steps; only those can be anomalies.

    There are 38 measurements of each machine of an internet company, over five weeks. The file has the labels
    of 28 machines and the series of 19. What is not there is not made up: `smd_machines` lists the machines
    that can be loaded, `missing_machines` those that cannot.
    """
    with _archive("smd") as archive:
        present, absent = _present_and_absent(archive)
        if machine not in present:
            raise _unknown_machine(machine, present, absent)
        train, test = (_smd_values(archive, part, machine) for part in _SMD_SERIES)
        labels = _smd_values(archive, _SMD_LABELS, machine)
    if labels.shape[1] != 1 or not np.isin(labels, (0, 1)).all():
        raise DataError(
            f"the labels of {machine!r} must be one column of 0 and 1, got the shape {labels.shape} and"
            f" values from {labels.min():g} to {labels.max():g}; load another machine of smd"
        )
    return _join("smd", machine, train, test, labels[:, 0].astype(np.int8))


def _archive(name: str) -> ZipFile:
    """Return the archive of a data set, opened after its hash was checked."""
    (file,) = ENTRIES[name].files
    return ZipFile(fetch(file))


def _read_member(archive: ZipFile, member: str) -> bytes:
    try:
        return archive.read(member)
    except KeyError:
        raise DataError(
            f"{archive.filename} must hold {member}, but does not; load another series of it"
        ) from None


def _join(
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


def _nasa_labels(archive: ZipFile) -> dict[str, LabelRows]:
    """Return the rows of the label file by channel; P-2 has two."""
    text = _read_member(archive, _NASA_LABELS).decode()
    rows: dict[str, LabelRows] = {}
    for row in csv.DictReader(text.splitlines()):
        rows.setdefault(row["chan_id"], []).append(row)
    return rows


def _nasa_values(archive: ZipFile, part: str, channel: str) -> NDArray[np.float64]:
    member = f"data/{part}/{channel}.npy"
    try:
        return np.asarray(np.load(BytesIO(_read_member(archive, member)), allow_pickle=False))
    except ValueError as error:
        raise DataError(f"{member} must hold numbers, but does not: {error}; load another channel") from error


def _mark(channel: str, rows: LabelRows, steps: int) -> NDArray[np.int8]:
    """Return the labels of the test steps: 1 within any interval of any row, both ends included."""
    y = np.zeros(steps, dtype=np.int8)
    for row in rows:
        if int(row["num_values"]) != steps:
            raise DataError(
                f"the labels of {channel!r} must be those of its {steps:,} test steps, got labels of"
                f" {row['num_values']}; load another channel of nasa"
            )
        for first, last in json.loads(row["anomaly_sequences"]):
            if not 0 <= first <= last < steps:
                raise DataError(
                    f"the labels of {channel!r} must lie within its {steps:,} test steps, got an interval"
                    f" from {first} to {last}; load another channel of nasa"
                )
            y[first : last + 1] = 1
    return y


def _unknown_channel(
    archive: ZipFile, channel: str, labels: Mapping[str, LabelRows]
) -> DataError | InputError:
    """Return the refusal of a channel that has no labels, or that does not exist."""
    listed = f"series_names('nasa') lists the {len(labels)} that have labels"
    if f"data/test/{channel}.npy" in archive.namelist():
        return DataError(
            f"the channel {channel!r} of nasa has a series but no labels, so none of its steps is known to be"
            f" normal or anomalous; load another one: {listed}"
        )
    # other names differ in one letter or digit only, so a guess would mislead
    hint = f"did you mean {channel.upper()!r}? " if str(channel).upper() in labels else ""
    return InputError(f"there is no channel {channel!r} in nasa; {hint}{listed}")


def _present_and_absent(archive: ZipFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the machines with labels and both series, and those with labels alone."""
    labelled = _smd_names(archive, _SMD_LABELS)
    present = labelled.intersection(*(_smd_names(archive, part) for part in _SMD_SERIES))
    in_order = sorted(labelled, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    absent = tuple(name for name in in_order if name not in present)
    return tuple(name for name in in_order if name in present), absent


def _smd_names(archive: ZipFile, part: str) -> set[str]:
    start = f"{_SMD_FOLDER}{part}/"
    members = (member.removeprefix(start) for member in archive.namelist() if member.startswith(start))
    return {member.removesuffix(".txt") for member in members if member.endswith(".txt")}


def _smd_values(archive: ZipFile, part: str, machine: str) -> NDArray[np.float32]:
    lines = _read_member(archive, f"{_SMD_FOLDER}{part}/{machine}.txt").decode().splitlines()
    try:
        return np.loadtxt(lines, dtype=np.float32, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(
            f"{part}/{machine}.txt must hold numbers, as many in each line, but does not: {error};"
            " load another machine of smd"
        ) from error


def _unknown_machine(
    machine: str, present: tuple[str, ...], absent: tuple[str, ...]
) -> DataError | InputError:
    """Return the refusal of a machine whose series are not in the file, or that does not exist."""
    listed = f"the machines with series are {', '.join(present)}"
    if machine in absent:
        return DataError(
            f"the series of {machine!r} are not in the file of smd, only its labels are; load another one:"
            f" {listed}"
        )
    return InputError(f"there is no machine {machine!r} in smd; {listed}")
