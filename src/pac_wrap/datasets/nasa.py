"""NASA: telemetry of 81 channels of the satellite SMAP (25 columns) and the rover on Mars, MSL (55 columns).

Column 0 is the telemetry, which its publishers scaled by the least and the greatest value of the test part;
the others are the commands that were sent or received. The label file gives the anomalies as intervals of the
test part, both ends included; an interval that leaves the test part is refused and never cut (the file has
none). P-2 stands in the label file twice, with the intervals 5350 to 6575 and 5300 to 6420 of one series of
8,209 steps: here a step of either is an anomaly, which makes 1,276. Published totals, 193,500 training and
501,346 test steps, leave P-2 out. T-10 has a series but no labels and is refused.
"""

import csv
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Final
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.series import join, open_archive, read_member
from pac_wrap.errors import DataError, InputError

_LABELS: Final = "data/labeled_anomalies.csv"
Rows = list[dict[str, str]]


def channels() -> tuple[str, ...]:
    """Return the channels that have labels, in the order of the label file."""
    with open_archive("nasa") as archive:
        return tuple(_labels(archive))


def load(channel: str) -> Dataset:
    """Return the training steps of a channel and then its test steps; only those can be anomalies."""
    with open_archive("nasa") as archive:
        labels = _labels(archive)
        if channel not in labels:
            raise _unknown(archive, channel, labels)
        train, test = (_series(archive, part, channel) for part in ("train", "test"))
    return join("nasa", channel, train, test, _mark(channel, labels[channel], len(test)))


def _labels(archive: ZipFile) -> dict[str, Rows]:
    """Return the rows of the label file by channel; P-2 has two."""
    text = read_member(archive, _LABELS).decode()
    rows: dict[str, Rows] = {}
    for row in csv.DictReader(text.splitlines()):
        rows.setdefault(row["chan_id"], []).append(row)
    return rows


def _series(archive: ZipFile, part: str, channel: str) -> NDArray[np.float64]:
    member = f"data/{part}/{channel}.npy"
    try:
        return np.asarray(np.load(BytesIO(read_member(archive, member)), allow_pickle=False))
    except ValueError as error:
        raise DataError(f"{member} must hold numbers, but does not: {error}; load another channel") from error


def _mark(channel: str, rows: Rows, steps: int) -> NDArray[np.int8]:
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


def _unknown(archive: ZipFile, channel: str, labels: Mapping[str, Rows]) -> DataError | InputError:
    """Return the refusal of a channel that has no labels, or that there is none of."""
    listed = f"nasa.channels() lists the {len(labels)} that have labels"
    if f"data/test/{channel}.npy" in archive.namelist():
        return DataError(
            f"the channel {channel!r} of nasa has a series but no labels, so none of its steps is known to be"
            f" normal or anomalous; load another one: {listed}"
        )
    # other names differ in one letter or digit only, so a guess would mislead
    hint = f"did you mean {channel.upper()!r}? " if str(channel).upper() in labels else ""
    return InputError(f"there is no channel {channel!r} in nasa; {hint}{listed}")
