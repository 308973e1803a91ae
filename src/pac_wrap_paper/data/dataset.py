"""A data set in memory, how the paper divides it, and the synthetic ones that it draws."""

from dataclasses import dataclass
from math import floor
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap import InputError
from pac_wrap.base.arguments import as_anomaly_mask, check_choice, check_count, check_rate

RowNumbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows X (float32, two-dimensional) and labels y (int8, 1 for an anomaly) with their origin.

    If the original comes as a training and a test part, the first `n_train` rows are its training part.

    >>> tiny = Dataset(np.zeros((4, 2), np.float32), np.array([0, 0, 0, 1], np.int8), "tiny", "", "", "")
    >>> tiny
    Dataset('tiny': 4 x 2, 1 anomaly, 25 %)
    >>> tiny.n_anomalies
    1
    """

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    name: str
    source: str
    licence: str
    citation: str
    n_train: int | None = None

    @property
    def n_anomalies(self) -> int:
        """The number of anomalies."""
        return int(np.count_nonzero(self.y))

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self._size()})"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self._size()}"]
        if self.n_train is not None:
            lines.append(f"the first {self.n_train:,} rows are the training part")
        lines += [f"source: {self.source}", f"licence: {self.licence}", f"cite: {self.citation}"]
        return "\n".join(lines)

    def _size(self) -> str:
        rows, columns = self.X.shape
        plural = "anomaly" if self.n_anomalies == 1 else "anomalies"
        share = 100 * self.n_anomalies / rows if rows else 0.0
        return f"{rows:,} x {columns:,}, {self.n_anomalies:,} {plural}, {share:.3g} %"


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of three disjoint parts, in ascending order, and the labels that training may see.

    `labels` has one entry per training row: 1 for a known anomaly, 0 for an unlabelled row.
    """

    train: RowNumbers
    calibration: RowNumbers
    test: RowNumbers
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

    "split": the share `train` of either class is set apart for training, the rest is held out. Training
    uses all normals among them, `known` labelled anomalies, and as many unlabelled anomalies as make up
    `contamination` of the unlabelled rows; further anomalies are dropped, since they belong to no held-out
    part. "hold_out": training uses normals only, the share `train` of all rows; everything else is held out,
    and `known` and `contamination` must be 0. Of each class held out, the share `calibration` calibrates.

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
        if known or contamination:
            raise InputError(
                'with anomalies="hold_out" only normals are trained on: known and contamination must be 0,'
                f" got {known!r} and {contamination!r}"
            )
        trained, supply = round(train * mask.size), 0
    else:
        trained, supply = round(train * normal.size), round(train * anomalous.size)
    if not trained:
        raise InputError(
            f"no normal row would be trained on, got train = {train!r} of {mask.size:,} rows; raise it"
        )
    # unlabelled anomalies; the last bit of a quotient must not decide: 98 normals and 2 % are 2
    hidden = floor(min(trained, normal.size) * contamination / (1 - contamination) + 1e-9)
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


def _divide(normal: RowNumbers, anomalous: RowNumbers, calibration: float) -> tuple[RowNumbers, RowNumbers]:
    """Return the calibration and the test part of what is held out; either must have both classes."""
    sizes = [round(calibration * rows.size) for rows in (normal, anomalous)]
    for name, rows, size in zip(("normals", "anomalies"), (normal, anomalous), sizes, strict=True):
        if not 0 < size < rows.size:
            raise InputError(
                f"calibration and test need at least one of the {name} each, but {rows.size:,} are held out"
                f" and {size:,} of them would calibrate; pass more rows, or change train or calibration"
            )
    calibrating = np.concatenate([normal[: sizes[0]], anomalous[: sizes[1]]])
    testing = np.concatenate([normal[sizes[0] :], anomalous[sizes[1] :]])
    return np.sort(calibrating), np.sort(testing)


def two_gaussians(
    n_normal: int,
    n_anomalous: int,
    random: np.random.Generator,
    *,
    sigma: float = 1.0,
    margin: float = 5.0,
    dimension: int = 6,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return rows X and labels y of two clusters with the same covariance sigma^2 I.

    The paper asks for "a margin of 5" between the classes and leaves its unit open. Here the means lie
    `margin` standard deviations apart, along the diagonal, so that sigma changes the scale and nothing else.
    """
    y = np.repeat(np.array([0, 1], dtype=np.int8), [n_normal, n_anomalous])
    X = random.normal(0.0, sigma, (y.size, dimension))
    X[n_normal:] += margin * sigma / np.sqrt(dimension)
    return X, y


def shifted_gaussians(
    n: int,
    gamma: float,
    random: np.random.Generator,
    *,
    sigma: float = 2.0,
    distance: float = 3.0,
    dimension: int = 5,
) -> NDArray[np.float64]:
    """Return n rows of N(gamma mu_normal + (1 - gamma) mu_anomalous, sigma^2 I).

    mu_normal is 0 and mu_anomalous is `distance` in every coordinate: gamma = 1 gives normal points,
    gamma = 0 anomalies, and anything between them points that have moved from one towards the other.
    """
    return random.normal((1.0 - gamma) * distance, sigma, (n, dimension))
