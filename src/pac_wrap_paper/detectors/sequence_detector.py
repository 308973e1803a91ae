"""What both LSTM detectors share: training, scoring, and the file of plain numbers they are saved in."""

import json
from abc import ABC, abstractmethod
from os import PathLike, fspath
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pac_wrap.base.arguments import Scores
from pac_wrap.base.files import whole_file
from pac_wrap.errors import InputError
from pac_wrap_paper.detectors import random_generator
from pac_wrap_paper.detectors.lstm_network import (
    Schedule,
    as_device,
    at_most_threads,
    gather,
    import_torch,
    initialise,
    train,
)
from pac_wrap_paper.detectors.lstm_series import Scaling, as_series, evenly, split_starts, target_columns

_TOGETHER: Final = 256  # windows scored at once: few enough for the processor's cache
_FORMAT: Final = "pac-wrap LSTM detector"
_VERSION: Final = 1
_Arrays = dict[str, NDArray[Any]]


class SequenceDetector(BaseEstimator, ABC):
    """A recurrent network that scores the steps of a series; what it learns is left to its subclasses."""

    network_: Any
    scaling_: Scaling
    n_features_in_: int
    warm_up_: int
    loss_curve_: list[float]
    validation_curve_: list[float]
    best_epoch_: int

    def fit(self, X: Any, y: object = None) -> Self:
        """Train on one series that is mostly normal, and return the detector.

        Parameters
        ----------
        X : array-like of shape (steps, columns)
            One series; a one-dimensional one is one column.
        y : ignored

        Raises
        ------
        InputError
            If a parameter breaks a rule, or the series is too short or not finite.
        """
        torch = import_torch()
        self._check_parameters()
        series = as_series(X)
        targets = target_columns(self.target, series.shape[1])
        window = self._window_length()
        training, validation = split_starts(len(series), window, self.stride, self.validation)
        # as many as the share says, so that validation costs no more than its share of training
        validation = evenly(validation, max(1, int(self.windows_per_epoch * self.validation)))
        device = as_device(self.device)
        random = random_generator(self.random_state)
        scaling = Scaling.of(series, standardise=self.scale)
        schedule = Schedule(
            self.epochs, self.patience, self.batch_size, self.windows_per_epoch, self.learning_rate
        )
        with at_most_threads(self.threads):
            network = self._network(series.shape[1], len(targets))
            initialise(network, int(random.integers(2**63)))
            network.to(device)
            values = torch.as_tensor(scaling.apply(series), device=device)

            def loss_of(starts: Any) -> Any:
                return self._loss(network, gather(values, starts.to(device), window), targets)

            history = train(network, loss_of, training, validation, schedule, random, self.progress)
        self.network_, self.scaling_, self.n_features_in_ = network, scaling, series.shape[1]
        self.warm_up_ = self._warm_up()
        self.loss_curve_, self.validation_curve_ = history.training, history.validation
        self.best_epoch_ = history.best_epoch
        return self

    def decision_function(self, X: Any) -> Scores:
        """Return one score per step, higher for what is more anomalous.

        A score depends on its own step and those before it, never on later ones. The first `warm_up_` steps
        have too short a past: their scores are NaN, so leave them out before calibrating.

        Parameters
        ----------
        X : array-like of shape (steps, columns)
            One series with the columns of `fit`, longer than the warm-up.

        Raises
        ------
        InputError
            If the series has other columns, or is too short for a single score.
        """
        check_is_fitted(self, "network_")
        torch = import_torch()
        series = as_series(X)
        if series.shape[1] != self.n_features_in_:
            raise InputError(
                f"X must have as many columns as in fit, {self.n_features_in_}, got {series.shape[1]};"
                " pass the same columns in the same order"
            )
        if len(series) <= self.warm_up_:
            raise InputError(
                f"X must have more than {self.warm_up_:,} steps for one of them to be scored, got"
                f" {len(series):,}; put earlier steps before them"
            )
        device = as_device(self.device)
        targets = target_columns(self.target, self.n_features_in_)
        scores = np.full(len(series), np.nan)
        with at_most_threads(self.threads), torch.inference_mode():
            values = torch.as_tensor(self.scaling_.apply(series), device=device)
            network = self.network_.to(device)
            starts = torch.arange(self._scored_windows(len(series)), device=device)
            outputs = [
                self._output(network, gather(values, batch, self.length), targets)
                for batch in starts.split(_TOGETHER)
            ]
            scores[self.warm_up_ :] = self._errors(torch.cat(outputs), values[:, targets])
        return scores

    def score_samples(self, X: Any) -> Scores:
        """Return the negative of `decision_function`: lower is more anomalous, as in scikit-learn."""
        return -self.decision_function(X)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trained detector to a file, whole or not at all; it holds numbers only, no code.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        check_is_fitted(self, "network_")
        parameters = {name: value for name, value in self.get_params().items() if name != "progress"}
        if not isinstance(self.random_state, (int, np.integer)):
            parameters["random_state"] = None  # a generator has moved on, so it would repeat nothing
        header = {
            "detector": type(self).__name__,
            "parameters": parameters,
            "loss_curve": self.loss_curve_,
            "validation_curve": self.validation_curve_,
            "best_epoch": self.best_epoch_,
        }
        weights = {
            f"weight.{name}": value.cpu().numpy() for name, value in self.network_.state_dict().items()
        }
        scaling = {"centre": self.scaling_.centre, "spread": self.scaling_.spread}
        _write_archive(path, header, weights | scaling)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the detector that `save` wrote; it gives the same scores.

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, or holds a detector of another class.
        """
        torch = import_torch()
        header, arrays = _read_archive(path)
        if header.get("detector") != cls.__name__:
            raise InputError(
                f"the file must hold a detector of the class {cls.__name__}, got"
                f" {header.get('detector')}; load it with that class"
            )
        try:
            detector = cls(**header["parameters"])
            detector._check_parameters()
            detector.scaling_ = Scaling(arrays.pop("centre"), arrays.pop("spread"))
            detector.n_features_in_ = len(detector.scaling_.centre)
            if detector.scaling_.spread.shape != (detector.n_features_in_,):
                raise ValueError("each column needs one spread")
            targets = target_columns(detector.target, detector.n_features_in_)
            detector.network_ = detector._network(detector.n_features_in_, len(targets))
            weights = {name.removeprefix("weight."): torch.tensor(value) for name, value in arrays.items()}
            detector.network_.load_state_dict(weights)
            detector.warm_up_ = detector._warm_up()
            detector.loss_curve_ = list(header["loss_curve"])
            detector.validation_curve_ = list(header["validation_curve"])
            detector.best_epoch_ = int(header["best_epoch"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise _not_a_detector(path, "its parts do not fit together") from error
        return detector

    @abstractmethod
    def _network(self, columns: int, targets: int) -> Any:
        """Return the layers for series of so many columns, some of them targets."""

    @abstractmethod
    def _window_length(self) -> int:
        """Return the steps of a training window."""

    @abstractmethod
    def _warm_up(self) -> int:
        """Return how many steps at the start of a series have no score."""

    @abstractmethod
    def _scored_windows(self, steps: int) -> int:
        """Return how many windows of a series are needed to score it; they start at its first steps."""

    @abstractmethod
    def _loss(self, network: Any, windows: Any, targets: list[int]) -> Any:
        """Return the mean loss of training windows."""

    @abstractmethod
    def _output(self, network: Any, windows: Any, targets: list[int]) -> Any:
        """Return what is needed of each window to score steps, of shape (window, ...)."""

    @abstractmethod
    def _errors(self, outputs: Any, values: Any) -> Scores:
        """Return the scores of all steps after the warm-up; `values` are the target columns, scaled."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that break a rule."""


def _write_archive(path: str | PathLike[str], header: dict[str, Any], arrays: _Arrays) -> None:
    """Write a header of plain values and named arrays to path, whole or not at all."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION} | header, default=_plain)
    contents: Any = {"header": np.array(text)} | arrays
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **contents)


def _read_archive(path: str | PathLike[str]) -> tuple[dict[str, Any], _Arrays]:
    """Return the header and the arrays of a file; a foreign or damaged one is refused."""
    try:
        # opened here, since np.load leaves a broken archive open
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        known = header["format"] == _FORMAT
        version = header["version"]
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read {fspath(path)}: {reason}; check the path") from error
    except Exception as error:  # a damaged archive makes its reader raise nearly anything
        raise _not_a_detector(path, "it is damaged, or of another kind") from error
    if not known:
        raise _not_a_detector(path, "it is of another kind")
    if version != _VERSION:
        raise _not_a_detector(path, f"it has version {version!r}, but this program reads {_VERSION}")
    return header, arrays


def _not_a_detector(path: str | PathLike[str], reason: str) -> InputError:
    """Return the error for a file that cannot be used."""
    return InputError(
        f"{fspath(path)} holds no detector that can be loaded: {reason}; save the detector again"
    )


def _plain(value: Any) -> Any:
    """Return what JSON does not know, such as numbers of NumPy and ranges, as plain numbers."""
    return np.asarray(value).tolist()
