"""LSTMForecaster: a network that predicts the next steps of a series, badly where they are unusual."""

from math import isfinite
from typing import Any

import numpy as np

from pac_wrap.base.arguments import Scores, is_number
from pac_wrap.errors import InputError
from pac_wrap.paper.detectors.lstm import SequenceDetector
from pac_wrap.paper.detectors.lstm_network import EpochProgress, forecast, forecaster
from pac_wrap.paper.detectors.lstm_series import Target, check_parameters


class LSTMForecaster(SequenceDetector):
    """An LSTM forecaster of telemetry (Hundman and others, 2018), trained on a mostly normal series.

    The network reads the last `length` steps of all columns, commands included, and predicts the next
    `horizon` steps of the target columns. The score of a step is the absolute error of its prediction,
    averaged over the target columns and smoothed by an exponentially weighted moving average over the steps
    before it: it uses no later step. With a horizon of several steps, a step is predicted that many times,
    and the mean of these predictions counts.

    Parameters
    ----------
    length : int
        Steps of the past that a prediction is made from.
    horizon : int
        Steps ahead that are predicted from each past.
    target : int, sequence of int or None
        The columns that are predicted, counted from 0; None stands for all.
    smoothing : float
        Span of the moving average, in steps: an error of k steps ago weighs (1 - 2 / (smoothing + 1))^k. With
        1 nothing is smoothed.
    hidden, layers : int
        Units of each layer, and layers.
    epochs, patience : int
        Training takes at most `epochs` rounds and stops after `patience` rounds without less validation loss;
        the best weights are kept.
    batch_size, learning_rate : int, float
        Windows per step, and the step size of Adam.
    windows_per_epoch : int
        At most this many windows, drawn afresh, are used in one epoch, which bounds the time of long series.
    stride : int
        Training windows start this many steps apart.
    validation : float
        Share of the series, at its end, that is kept for early stopping; 0 trains on all of it.
    scale : bool
        Whether each column is standardised by the mean and standard deviation of the training series.
    device : str
        A device of torch; "auto" is a CUDA device if there is one, else the processor.
    threads : int
        Threads of torch while it trains and scores; networks this small are fastest with one.
    random_state : int, RandomState, Generator or None
        Fixes the initial weights and the batches. torch's global state is neither used nor changed.
    progress : callable or None
        Called after each epoch with the epochs done, all epochs, the loss and the validation loss (or None).

    Attributes
    ----------
    warm_up_ : how many steps at the start of a series score NaN, having no past: length + horizon - 1
    loss_curve_, validation_curve_ : the mean squared error of each epoch on the two parts of the series
    best_epoch_ : the epoch, counted from 1, whose weights were kept
    network_, scaling_, n_features_in_ : the trained layers, the scales of the columns and their number

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
        self.length = length
        self.horizon = horizon
        self.target = target
        self.smoothing = smoothing
        self.hidden = hidden
        self.layers = layers
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.windows_per_epoch = windows_per_epoch
        self.stride = stride
        self.validation = validation
        self.scale = scale
        self.device = device
        self.threads = threads
        self.random_state = random_state
        self.progress = progress

    def _network(self, columns: int, targets: int) -> Any:
        return forecaster(columns, self.hidden, self.layers, self.horizon * targets)

    def _window_length(self) -> int:
        return self.length + self.horizon

    def _warm_up(self) -> int:
        return self.length + self.horizon - 1

    def _scored_windows(self, steps: int) -> int:
        return steps - self.length

    def _loss(self, network: Any, windows: Any, targets: list[int]) -> Any:
        coming = windows[self.length :, :, targets].transpose(0, 1)
        return (self._output(network, windows[: self.length], targets) - coming).square().mean()

    def _output(self, network: Any, windows: Any, targets: list[int]) -> Any:
        return forecast(network, windows).unflatten(1, (self.horizon, -1))

    def _errors(self, outputs: Any, values: Any) -> Scores:
        scored = len(values) - self.warm_up_
        # row s predicts the steps s + length, s + length + 1, ...: one step is met along a diagonal
        ahead = range(self.horizon)
        predicted = sum(outputs[self.horizon - 1 - h :][:scored, h] for h in ahead) / self.horizon
        errors = (predicted - values[self.warm_up_ :]).abs().double().mean(dim=1)
        return smoothed(errors.cpu().numpy(), self.smoothing)

    def _check_parameters(self) -> None:
        check_parameters(self, ["horizon"])
        if not is_number(self.smoothing) or not isfinite(self.smoothing) or self.smoothing < 1:
            raise InputError(
                f"smoothing must be a finite number of steps, 1 or more, got {self.smoothing!r};"
                " with 1 nothing is smoothed"
            )


def smoothed(errors: Scores, span: float) -> Scores:
    """Return the exponentially weighted mean of each error and all before it; a span of 1 changes nothing.

    The error of k steps ago weighs (1 - 2 / (span + 1))^k, and the weights of each mean sum to one, as in
    pandas' `ewm(span=span).mean()`.

    >>> smoothed(np.array([0.0, 0.0, 3.0, 0.0]), span=3).round(3)
    array([0.   , 0.   , 1.714, 0.8  ])
    """
    from scipy.signal import lfilter

    keep = 1.0 - 2.0 / (span + 1.0)
    sums = lfilter([1.0], [1.0, -keep], errors)
    weights = lfilter([1.0], [1.0, -keep], np.ones_like(errors))
    means: Scores = np.asarray(sums / weights, dtype=np.float64)
    return means
