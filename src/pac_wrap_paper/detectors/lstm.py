"""The two LSTM detectors of the paper: one rebuilds windows of a series, the other predicts its next steps.

Both do so badly where the series is unusual. torch is optional, and loads on first use. Windows have the
shape (time, window, column): an LSTM reads that order fastest.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from math import inf, isfinite
from os import PathLike, fspath
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pac_wrap import InputError, MissingExtraError
from pac_wrap.base.arguments import as_array, check_choice, check_count, is_number
from pac_wrap.base.files import whole_file
from pac_wrap_paper.detectors import random_generator

Floats = NDArray[np.float64]
Starts = NDArray[np.int64]
Target = int | Sequence[int] | None
EpochProgress = Callable[[int, int, float, float | None], object]
Loss = Callable[[Any], Any]
_FARTHEST: Final = 1e15  # squares of more would leave single precision, in which the networks compute
_LONGEST_GRADIENT: Final = 1.0  # recurrent gradients explode now and then
_TOGETHER: Final = 256  # windows scored at once: few enough for the processor's cache
_FORMAT: Final = "pac-wrap LSTM detector"
_VERSION: Final = 1
_COUNTS: Final = (
    *("length", "hidden", "layers", "epochs", "patience", "batch_size"),
    *("windows_per_epoch", "stride", "threads"),
)


def import_torch() -> Any:
    """Return the module torch; one sentence says how to get it where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            'torch is not installed; run pip install "pac-wrap-ad[deep]", or make deep'
        ) from error
    return torch


def as_series(X: Any) -> Floats:
    """Return X as a float64 array of shape (steps, columns); a one-dimensional series is one column."""
    array = as_array(X, "X")
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"X must be one series of shape (steps, columns), got shape {array.shape};"
            " fit and score one series at a time"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"X must hold real numbers, got dtype {array.dtype}; convert them first, for example with"
            " .astype(float)"
        )
    series = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~np.isfinite(series)
    if bad.any():
        step, column = (int(place) for place in np.argwhere(bad)[0])
        kind = "NaN" if np.isnan(series[step, column]) else "infinity"
        raise InputError(
            f"X must hold finite numbers only, got {int(bad.sum()):,} NaN or infinite of {series.size:,},"
            f" the first ({kind}) at step {step}, column {column}; fill the gaps, or cut the series there"
        )
    return series


@dataclass(frozen=True)
class Scaling:
    """The centre and the spread of each column of a training series."""

    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, series: Floats, *, standardise: bool) -> Self:
        """Return the mean and standard deviation of each column; constant columns get a spread of 1."""
        columns = series.shape[1]
        if not standardise:
            return cls(np.zeros(columns), np.ones(columns))
        with np.errstate(over="ignore", invalid="ignore"):
            centre, spread = series.mean(axis=0), series.std(axis=0)
        # rounding gives some constant columns a tiny standard deviation
        spread[(series == series[0]).all(axis=0) | (spread == 0.0)] = 1.0
        if not np.isfinite(spread).all():
            column = int(np.argmin(np.isfinite(spread)))
            raise InputError(
                "the columns of X must have a finite standard deviation, got"
                f" {spread[column]} in column {column}; divide that column by a large number"
            )
        return cls(centre, spread)

    def apply(self, series: Floats) -> NDArray[np.float32]:
        """Return (series - centre) / spread in single precision."""
        with np.errstate(over="ignore"):
            scaled = (series - self.centre) / self.spread
        return np.clip(scaled, -_FARTHEST, _FARTHEST).astype(np.float32)


def split_starts(steps: int, window: int, stride: int, validation: float) -> tuple[Starts, Starts]:
    """Return where the windows of the first part start, and those of the last part, kept for validation.

    No window crosses from one part into the other.
    """

    def shorter(steps: int) -> int:
        kept = round(steps * validation)
        return min(steps - kept, kept if validation else steps)

    if shorter(steps) < window:
        least = int((window - 1) / min(1.0 - validation, validation or 1.0))
        needed = next(number for number in count(least) if shorter(number) >= window)
        share = f" and validation = {validation:g}" if validation else ""
        raise InputError(
            f"fit needs at least {needed:,} steps for windows of {window:,}{share}, got {steps:,};"
            " give more steps, or shorten length"
        )
    kept = round(steps * validation)
    training = np.arange(0, steps - kept - window + 1, stride, dtype=np.int64)
    held_out = np.arange(steps - kept, steps - window + 1, dtype=np.int64) if kept else training[:0]
    return training, held_out


def evenly(starts: Starts, most: int) -> Starts:
    """Return at most `most` of the starts, evenly spaced."""
    if starts.size <= most:
        return starts
    return starts[np.linspace(0, starts.size - 1, most).round().astype(np.int64)]


def smoothed(errors: Floats, span: float) -> Floats:
    """Return the exponentially weighted mean of each error and all before it; a span of 1 changes nothing.

    The error of k steps ago weighs (1 - 2 / (span + 1))^k, and the weights of each mean sum to one, as in
    pandas' `ewm(span=span).mean()`.
    """
    keep = 1.0 - 2.0 / (span + 1.0)
    sums = lfilter([1.0], [1.0, -keep], errors)
    weights = lfilter([1.0], [1.0, -keep], np.ones_like(errors))
    return np.asarray(sums / weights, dtype=np.float64)


def target_columns(target: Target, columns: int) -> list[int]:
    """Return the target columns of a series with this number of columns; None stands for all of them."""
    if target is None:
        return list(range(columns))
    chosen = [int(column) for column in as_array(target, "target").reshape(-1)]
    if max(chosen) >= columns:
        raise InputError(
            f"target must name columns of X, 0 to {columns - 1}, got {max(chosen)}; count them from 0"
        )
    return chosen


def as_device(name: str) -> Any:
    """Return the torch device of a name; "auto" is a CUDA device if there is one, else the processor."""
    torch = import_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f'device must be "auto" or a device torch can use here, got {name!r} ({reason}); try device="cpu"'
        ) from error
    return device


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block, and as many as before after it."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def network_of(columns: int, hidden: int, layers: int, outputs: int, *, decoder: bool) -> Any:
    """Return the layers of an encoder-decoder, or of a forecaster, which has no decoder; not initialised."""
    nn = import_torch().nn

    def empty(kind: Any, *sizes: int) -> Any:
        # made on the device "meta", a layer draws no weights from torch's global generator
        return kind(*sizes, device="meta", dtype=import_torch().float32).to_empty(device="cpu")

    parts = {"encoder": empty(nn.LSTM, columns, hidden, layers)}
    if decoder:
        parts["decoder"] = empty(nn.LSTM, hidden, hidden, layers)
    return nn.ModuleDict(parts | {"output": empty(nn.Linear, hidden, outputs)})


def reconstruct(network: Any, windows: Any, steps: int) -> Any:
    """Return the last `steps` steps of each window as the decoder rebuilds them, the latest first.

    The decoder starts from the last state of the encoder and reads the encoder's last output at every step.
    It is never shown the true values (no teacher forcing): with them it could copy an anomaly instead of
    rebuilding what is usual.
    """
    code, state = network["encoder"](windows)
    rebuilt, _ = network["decoder"](code[-1:].expand(steps, -1, -1), state)
    return network["output"](rebuilt)


def initialise(network: Any, seed: int) -> None:
    """Draw the weights as torch would, from a generator of our own; the global one is not touched."""
    torch = import_torch()
    generator = torch.Generator().manual_seed(seed)
    for layer in network.values():
        fan = layer.hidden_size if isinstance(layer, torch.nn.LSTM) else layer.in_features
        for parameter in layer.parameters():
            torch.nn.init.uniform_(parameter, -(fan**-0.5), fan**-0.5, generator=generator)


def gather(series: Any, starts: Any, length: int) -> Any:
    """Return the windows of a series that begin at the given steps."""
    steps = import_torch().arange(length, device=series.device)[:, None] + starts[None, :]
    return series[steps]


def mean_loss(loss_of: Loss, starts: Starts, batch_size: int) -> float:
    """Return the mean loss over windows, without training on them."""
    torch = import_torch()
    with torch.inference_mode():
        batches = torch.as_tensor(starts).split(batch_size)
        return sum(float(loss_of(batch)) * len(batch) for batch in batches) / starts.size


def _epoch(network: Any, loss_of: Loss, optimiser: Any, order: Starts, batch_size: int) -> float:
    torch = import_torch()
    total = 0.0
    with torch.enable_grad():
        for batch in torch.as_tensor(order).split(batch_size):
            optimiser.zero_grad()
            loss = loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _LONGEST_GRADIENT)
            optimiser.step()
            total += float(loss.detach()) * len(batch)
    return total / order.size


class SequenceDetector(BaseEstimator, ABC):
    """A recurrent network that scores the steps of a series; what it learns is left to its subclasses."""

    network_: Any
    scaling_: Scaling
    n_features_in_: int
    warm_up_: int
    loss_curve_: list[float]
    validation_curve_: list[float]
    best_epoch_: int
    _own_counts: tuple[str, ...]

    def fit(self, X: Any, y: object = None) -> Self:
        """Train on one series of shape (steps, columns) that is mostly normal, and return the detector."""
        torch = import_torch()
        self._check_parameters()
        series = as_series(X)
        targets = target_columns(self.target, series.shape[1])
        window = self.length + self._ahead
        training, validation = split_starts(len(series), window, self.stride, self.validation)
        # as many as the share says, so that validation costs no more than its share of training
        validation = evenly(validation, max(1, int(self.windows_per_epoch * self.validation)))
        device = as_device(self.device)
        random = random_generator(self.random_state)
        scaling = Scaling.of(series, standardise=self.scale)
        with at_most_threads(self.threads):
            network = self._network(series.shape[1], len(targets))
            initialise(network, int(random.integers(2**63)))
            network.to(device)
            values = torch.as_tensor(scaling.apply(series), device=device)

            def loss_of(starts: Any) -> Any:
                return self._loss(network, gather(values, starts.to(device), window), targets)

            self._train(network, loss_of, training, validation, random)
        self.network_, self.scaling_, self.n_features_in_ = network, scaling, series.shape[1]
        self.warm_up_ = window - 1
        return self

    def _train(
        self, network: Any, loss_of: Loss, training: Starts, validation: Starts, random: np.random.Generator
    ) -> None:
        """Train a network in place; `loss_of(starts)` is the mean loss of some windows.

        The weights of the epoch with the least validation loss are kept, or those of the last epoch if there
        is no validation part.
        """
        optimiser = import_torch().optim.Adam(network.parameters(), lr=self.learning_rate)
        losses: list[float] = []
        held_out_losses: list[float] = []
        least, best, best_epoch = inf, None, 0
        for epoch in range(1, self.epochs + 1):
            order = random.permutation(training)[: self.windows_per_epoch]
            losses.append(_epoch(network, loss_of, optimiser, order, self.batch_size))
            held_out = mean_loss(loss_of, validation, self.batch_size) if validation.size else None
            latest = losses[-1] if held_out is None else held_out
            if not isfinite(latest):
                raise InputError(
                    f"the loss must stay finite, got {latest} in epoch {epoch}; lower learning_rate,"
                    " or let scale=True standardise the columns"
                )
            if held_out is not None:
                held_out_losses.append(held_out)
            if held_out is None or held_out < least:
                least, best_epoch = latest, epoch
                best = {name: value.clone() for name, value in network.state_dict().items()}
            if self.progress is not None:
                self.progress(epoch, self.epochs, losses[-1], held_out)
            if epoch - best_epoch >= self.patience:
                break
        network.load_state_dict(best)
        self.loss_curve_, self.validation_curve_, self.best_epoch_ = losses, held_out_losses, best_epoch

    def decision_function(self, X: Any) -> Floats:
        """Return one score per step, higher for a more anomalous step.

        A score depends on its own step and those before it, never on later ones. The first `warm_up_` steps
        have too short a past: their scores are NaN, so leave them out before calibrating. X is one series
        with the columns of `fit`, longer than the warm-up.
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
            # a forecast of what follows the last step can be compared with nothing
            count = len(series) - self.length + (0 if self._ahead else 1)
            outputs = [
                self._output(network, gather(values, batch, self.length), targets)
                for batch in torch.arange(count, device=device).split(_TOGETHER)
            ]
            scores[self.warm_up_ :] = self._errors(torch.cat(outputs), values[:, targets])
        return scores

    def score_samples(self, X: Any) -> Floats:
        """Return the negative of `decision_function`: lower is more anomalous, as in scikit-learn."""
        return -self.decision_function(X)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trained detector to a file, whole or not at all; it holds numbers only, no code."""
        check_is_fitted(self, "network_")
        parameters = {name: value for name, value in self.get_params().items() if name != "progress"}
        if not isinstance(self.random_state, (int, np.integer)):
            parameters["random_state"] = None  # a generator has moved on, so it would repeat nothing
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "detector": type(self).__name__,
            "parameters": parameters,
            "loss_curve": self.loss_curve_,
            "validation_curve": self.validation_curve_,
            "best_epoch": self.best_epoch_,
        }
        # JSON does not know the numbers of NumPy, and ranges
        text = json.dumps(header, default=lambda value: np.asarray(value).tolist())
        contents: dict[str, Any] = {"header": np.array(text)}
        for name, value in self.network_.state_dict().items():
            contents[f"weight.{name}"] = value.cpu().numpy()
        contents |= {"centre": self.scaling_.centre, "spread": self.scaling_.spread}
        with whole_file(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **contents)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the detector that `save` wrote; it gives the same scores."""
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
            detector.warm_up_ = detector.length + detector._ahead - 1
            detector.loss_curve_ = list(header["loss_curve"])
            detector.validation_curve_ = list(header["validation_curve"])
            detector.best_epoch_ = int(header["best_epoch"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise _not_a_detector(path, "its parts do not fit together") from error
        return detector

    def _check_parameters(self) -> None:
        """Refuse parameters that break a rule."""
        for name in (*_COUNTS, *self._own_counts):
            if check_count(name, getattr(self, name)) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.target is not None:
            array = as_array(self.target, "target")
            if array.dtype.kind not in "iu" or array.ndim > 1 or array.size == 0 or array.min() < 0:
                raise InputError(
                    f"target must be a column number or a list of them, counted from 0, got {self.target!r};"
                    " None stands for all columns"
                )
        check_choice("scale", self.scale, (True, False))
        if not isinstance(self.device, str):
            raise InputError(f'device must be a name such as "auto", "cpu" or "cuda:0", got {self.device!r}')
        if not is_number(self.validation) or not 0.0 <= self.validation < 1.0:
            raise InputError(
                f"validation must be a share from 0 to less than 1, got {self.validation!r};"
                " write a fifth as 0.2, or 0 to train on the whole series"
            )
        rate = self.learning_rate
        if not is_number(rate) or not isfinite(rate) or rate <= 0:
            raise InputError(f"learning_rate must be a finite number, more than 0, got {rate!r}")

    @property
    def _ahead(self) -> int:
        """How many steps after a window are predicted from it."""
        return 0

    @abstractmethod
    def _network(self, columns: int, targets: int) -> Any:
        """Return the layers for series with this number of columns, some of them targets."""

    @abstractmethod
    def _loss(self, network: Any, windows: Any, targets: list[int]) -> Any:
        """Return the mean loss of training windows."""

    @abstractmethod
    def _output(self, network: Any, windows: Any, targets: list[int]) -> Any:
        """Return the part of each window that scores need, of shape (window, ...)."""

    @abstractmethod
    def _errors(self, outputs: Any, values: Any) -> Floats:
        """Return the scores of all steps after the warm-up; `values` are the target columns, scaled."""


def _read_archive(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
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


class LSTMEncoderDecoder(SequenceDetector):
    """An LSTM encoder-decoder (Malhotra and others, 2016), trained on a mostly normal series.

    The encoder reads a window of `length` steps, the decoder rebuilds it from the last state, the latest
    step first and without being shown the true values. The score of a step is the mean squared error, over
    the target columns, of that step as rebuilt from the window that ends there: it uses no later step.
    With `recent` above 1, the errors of that many steps at the end of the window are averaged: less noise, a
    little delay.

    Parameters
    ----------
    length, recent : int
        Steps of a window, and the steps at its end, at most `length`, whose errors make the score.
    target : int, sequence of int or None
        The columns that are rebuilt and scored, counted from 0; None stands for all. Leave out those that are
        only read, such as commands: standardised, a rare command has errors that drown all others.
    hidden, layers : int
        Units of each layer (the bottleneck: with too many, anomalies are rebuilt as well), and layers of the
        encoder and of the decoder.
    epochs, patience : int
        Training takes at most `epochs` rounds and stops after `patience` rounds without less validation loss;
        the best weights are kept.
    batch_size, learning_rate : int, float
        Windows per step, and the step size of Adam.
    windows_per_epoch, stride : int
        The most windows, drawn afresh, that one epoch uses, and the steps from one start to the next.
    validation, scale : float, bool
        Share of the series, at its end, that is kept for early stopping (0 trains on all of it), and whether
        each column is standardised by the mean and standard deviation of the training series.
    device, threads : str, int
        A device of torch ("auto" is a CUDA device if there is one, else the processor), and its threads;
        networks this small are fastest with one.
    random_state : int, RandomState, Generator or None
        Fixes the initial weights and the batches. torch's global state is neither used nor changed.
    progress : callable or None
        Called after each epoch with the epochs done, all epochs, the loss and the validation loss (or None).

    Attributes
    ----------
    warm_up_ : how many steps at the start of a series score NaN, having no past: length - 1
    loss_curve_, validation_curve_ : the mean squared error of each epoch on the two parts of the series
    best_epoch_ : the epoch, counted from 1, whose weights were kept
    network_, scaling_, n_features_in_ : the trained layers, the scales of the columns and their number

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(600.0) / 5.0)
    >>> detector = LSTMEncoderDecoder(length=20, epochs=10, random_state=0).fit(series)  # doctest: +SKIP
    >>> series[500] += 3.0
    >>> int(np.nanargmax(detector.decision_function(series)))  # doctest: +SKIP
    500
    """

    _own_counts = ("recent",)

    def __init__(
        self,
        *,
        length: int = 50,
        target: Target = None,
        recent: int = 1,
        hidden: int = 32,
        layers: int = 1,
        epochs: int = 40,
        patience: int = 5,
        batch_size: int = 32,
        learning_rate: float = 0.005,
        windows_per_epoch: int = 10_000,
        stride: int = 1,
        validation: float = 0.2,
        scale: bool = True,
        device: str = "auto",
        threads: int = 1,
        random_state: Any = None,
        progress: EpochProgress | None = None,
    ) -> None:
        self.length, self.target, self.recent = length, target, recent
        self.hidden, self.layers, self.epochs, self.patience = hidden, layers, epochs, patience
        self.batch_size, self.learning_rate, self.stride = batch_size, learning_rate, stride
        self.windows_per_epoch, self.validation, self.scale = windows_per_epoch, validation, scale
        self.device, self.threads, self.random_state, self.progress = device, threads, random_state, progress

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.recent > self.length:
            raise InputError(f"recent must be at most length = {self.length}, got {self.recent}")

    def _network(self, columns: int, targets: int) -> Any:
        return network_of(columns, self.hidden, self.layers, targets, decoder=True)

    def _loss(self, network: Any, windows: Any, targets: list[int]) -> Any:
        return (reconstruct(network, windows, self.length) - windows[:, :, targets].flip(0)).square().mean()

    def _output(self, network: Any, windows: Any, targets: list[int]) -> Any:
        true = windows[-self.recent :, :, targets].flip(0)
        errors = reconstruct(network, windows, self.recent) - true
        return errors.square().double().mean(dim=(0, 2))

    def _errors(self, outputs: Any, values: Any) -> Floats:
        return np.asarray(outputs.cpu().numpy())


class LSTMForecaster(SequenceDetector):
    """An LSTM forecaster of telemetry (Hundman and others, 2018), trained on a mostly normal series.

    The network reads the last `length` steps of all columns, commands included, and predicts the next
    `horizon` steps of the target columns. The score of a step is the absolute error of its prediction,
    averaged over the target columns and smoothed by an exponentially weighted moving average over the steps
    before it: it uses no later step. With a horizon of several steps, a step is predicted that many times,
    and the mean of these predictions counts.

    Parameters
    ----------
    length, horizon : int
        Steps of the past that a prediction is made from, and steps ahead that are predicted from it.
    target : int, sequence of int or None
        The columns that are predicted, counted from 0; None stands for all.
    smoothing : float
        Span of the moving average, in steps: an error of k steps ago weighs (1 - 2 / (smoothing + 1))^k. With
        1 nothing is smoothed.
    hidden, layers : int
        Units of each layer, and layers.
    epochs, patience, batch_size, learning_rate, windows_per_epoch, stride, validation
        How it is trained: as for `LSTMEncoderDecoder`.
    scale, device, threads, random_state, progress
        As for `LSTMEncoderDecoder`.

    Attributes
    ----------
    warm_up_ : how many steps at the start of a series score NaN, having no past: length + horizon - 1
        The others are those of `LSTMEncoderDecoder`.

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(600.0) / 5.0)
    >>> detector = LSTMForecaster(length=20, smoothing=1, epochs=10, random_state=0)
    >>> _ = detector.fit(series)  # doctest: +SKIP
    >>> series[500] += 3.0
    >>> int(np.nanargmax(detector.decision_function(series)))  # doctest: +SKIP
    500
    """

    _own_counts = ("horizon",)

    def __init__(
        self,
        *,
        length: int = 100,
        horizon: int = 1,
        target: Target = 0,
        smoothing: float = 105,
        hidden: int = 80,
        layers: int = 2,
        epochs: int = 35,
        patience: int = 10,
        batch_size: int = 64,
        learning_rate: float = 0.001,
        windows_per_epoch: int = 2_500,
        stride: int = 1,
        validation: float = 0.2,
        scale: bool = True,
        device: str = "auto",
        threads: int = 1,
        random_state: Any = None,
        progress: EpochProgress | None = None,
    ) -> None:
        self.length, self.horizon, self.target, self.smoothing = length, horizon, target, smoothing
        self.hidden, self.layers, self.epochs, self.patience = hidden, layers, epochs, patience
        self.batch_size, self.learning_rate, self.stride = batch_size, learning_rate, stride
        self.windows_per_epoch, self.validation, self.scale = windows_per_epoch, validation, scale
        self.device, self.threads, self.random_state, self.progress = device, threads, random_state, progress

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_number(self.smoothing) or not isfinite(self.smoothing) or self.smoothing < 1:
            raise InputError(
                f"smoothing must be a finite number of steps, 1 or more, got {self.smoothing!r};"
                " with 1 nothing is smoothed"
            )

    @property
    def _ahead(self) -> int:
        return self.horizon

    def _network(self, columns: int, targets: int) -> Any:
        return network_of(columns, self.hidden, self.layers, self.horizon * targets, decoder=False)

    def _loss(self, network: Any, windows: Any, targets: list[int]) -> Any:
        coming = windows[self.length :, :, targets].transpose(0, 1)
        return (self._output(network, windows[: self.length], targets) - coming).square().mean()

    def _output(self, network: Any, windows: Any, targets: list[int]) -> Any:
        code, _ = network["encoder"](windows)
        return network["output"](code[-1]).unflatten(1, (self.horizon, -1))

    def _errors(self, outputs: Any, values: Any) -> Floats:
        scored = len(values) - self.warm_up_
        # row s predicts the steps s + length, s + length + 1, ...: one step is met along a diagonal
        ahead = range(self.horizon)
        predicted = sum(outputs[self.horizon - 1 - h :][:scored, h] for h in ahead) / self.horizon
        errors = (predicted - values[self.warm_up_ :]).abs().double().mean(dim=1)
        return smoothed(errors.cpu().numpy(), self.smoothing)
