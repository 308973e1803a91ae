"""How the paper divides a data set: rows to train on, to calibrate with and to test on."""

from dataclasses import dataclass
from math import floor
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_anomaly_mask, check_choice, check_count, check_rate

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of three parts that share none, in ascending order, and what the training part may know.

    `labels` has one entry per training row: 1 for a known anomaly, 0 for an unlabelled row.
    """

    train: Rows
    calibration: Rows
    test: Rows
    labels: NDArray[np.int8]


def semi_supervised_split(
    y: ArrayLike,
    random: np.random.Generator,
    *,
    train: float = 0.8,
    calibration: float = 0.3,
    known: int = 30,
    contamination: float = 0.02,
    anomalies: Literal["split", "hold_out"] = "split",
) -> Split:
    """Return a random division of the rows of y into a training, a calibration and a test part.

    "split": the share `train` of either class is set apart for training, the rest is held out. Trained on
    are all normals among them, `known` labelled anomalies, and so many unlabelled anomalies that they make up
    `contamination` of the unlabelled rows; anomalies beyond these are dropped, for they belong to no held-out
    part. "hold_out": trained on are normals only, the share `train` of all rows; everything else is held out,
    and `known` and `contamination` must be 0. Of either class held out, the share `calibration` calibrates.

    >>> y = np.repeat([0, 1], [900, 100])
    >>> split = semi_supervised_split(y, np.random.default_rng(0), known=10)
    >>> split.train.size, int(y[split.train].sum()), int(split.labels.sum())
    (744, 24, 10)
    >>> np.bincount(y[split.calibration]).tolist(), np.bincount(y[split.test]).tolist()
    ([54, 6], [126, 14])
    """
    check_choice("anomalies", anomalies, ("split", "hold_out"))
    check_rate("train", train)
    check_rate("calibration", calibration)
    check_count("known", known)
    if contamination != 0:
        check_rate("contamination", contamination)
    if not isinstance(random, np.random.Generator):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")
    mask = _mask(y)
    normal, anomalous = (random.permutation(np.flatnonzero(mask == kind)) for kind in (False, True))
    if anomalies == "hold_out":
        _refuse_anomalies(known, contamination)
        trained, supply = round(train * mask.size), 0
    else:
        trained, supply = round(train * normal.size), round(train * anomalous.size)
    if not trained:
        raise InputError(
            f"no normal row would be trained on, got train = {train!r} of {mask.size:,} rows; raise it"
        )
    hidden = _contaminating(min(trained, normal.size), contamination)
    if known + hidden > supply:
        raise InputError(
            f"training on {known:,} known and {hidden:,} unlabelled anomalies needs {known + hidden:,}, but"
            f" the training part has {supply:,} of {anomalous.size:,}; lower known or contamination"
        )
    rows = np.concatenate([normal[:trained], anomalous[: known + hidden]])
    labels = np.repeat(np.array([0, 1, 0], dtype=np.int8), [rows.size - known - hidden, known, hidden])
    calibrating, testing = _divide(normal[trained:], anomalous[supply:], calibration)
    order = np.argsort(rows)
    return Split(rows[order], calibrating, testing, labels[order])


def _mask(y: ArrayLike) -> NDArray[np.bool_]:
    try:
        mask = as_anomaly_mask(y, name="y")
    except InputError as error:
        rule = str(error).split(";")[0]
        raise InputError(f"{rule}; recode them as 0 and 1") from error
    for name, count in (("normal", mask.size - mask.sum()), ("anomalous", mask.sum())):
        if count == 0:
            raise InputError(
                f"y must mark at least one {name} row, got {mask.size:,} rows and none of that class"
            )
    return mask


def _refuse_anomalies(known: int, contamination: float) -> None:
    if known or contamination:
        raise InputError(
            'with anomalies="hold_out" nothing is trained on but normals: known and contamination must be 0,'
            f" got {known!r} and {contamination!r}"
        )


def _contaminating(normals: int, contamination: float) -> int:
    """Return the most anomalies that are at most the share `contamination` of them and the normals."""
    # the last bit of a quotient must not decide: 98 normals and 2 % are 2
    return floor(normals * contamination / (1 - contamination) + 1e-9)


def _divide(normal: Rows, anomalous: Rows, calibration: float) -> tuple[Rows, Rows]:
    """Return the calibration and the test part of what is held out, or refuse if a class misses in one."""
    sizes = [round(calibration * held.size) for held in (normal, anomalous)]
    for name, held, size in zip(("normals", "anomalies"), (normal, anomalous), sizes, strict=True):
        if not 0 < size < held.size:
            raise InputError(
                f"calibration and test need at least one of the {name} each, but {held.size:,} are held out"
                f" and {size:,} of them would calibrate; pass more rows, or change train or calibration"
            )
    calibrating = np.concatenate([normal[: sizes[0]], anomalous[: sizes[1]]])
    testing = np.concatenate([normal[sizes[0] :], anomalous[sizes[1] :]])
    return np.sort(calibrating), np.sort(testing)
