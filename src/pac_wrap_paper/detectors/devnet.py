"""DevNet: a small network that learns from a few known anomalies among many unlabelled rows."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from pac_wrap import InputError
from pac_wrap.base.arguments import as_class_mask, check_aligned, check_count, is_number
from pac_wrap_paper.detectors import random_generator

Floats = NDArray[np.float64]


class Parameters(NamedTuple):
    """The weights of the network, as views of one flat vector, so that an optimiser sees a single array."""

    hidden_weights: Floats
    hidden_biases: Floats
    output_weights: Floats
    output_bias: Floats


@dataclass(frozen=True)
class Objective:
    """What is minimised: the mean deviation loss plus l2 times the sum of the squared hidden weights.

    A score s deviates by (s - mean) / std from the reference scores. Unlabelled rows lose |deviation|, known
    anomalies max(margin - deviation, 0).
    """

    mean: float
    std: float
    margin: float
    l2: float


def initial_parameters(features: int, hidden: int, random: np.random.Generator) -> Floats:
    """Return a flat vector of Glorot-uniform weights and zero biases."""
    flat = np.zeros(features * hidden + 2 * hidden + 1)
    views = unpack(flat, hidden)
    for weights, fans in ((views.hidden_weights, features + hidden), (views.output_weights, hidden + 1)):
        limit = np.sqrt(6.0 / fans)
        weights[...] = random.uniform(-limit, limit, weights.shape)
    return flat


def unpack(flat: Floats, hidden: int) -> Parameters:
    """Return the parts of a flat vector of parameters, without copying."""
    inner = flat.size - 2 * hidden - 1
    return Parameters(
        flat[:inner].reshape(-1, hidden), flat[inner : inner + hidden], flat[inner + hidden : -1], flat[-1:]
    )


def forward(parameters: Parameters, X: Floats) -> tuple[Floats, Floats]:
    """Return the score of each row, and what the hidden units gave."""
    activations = X @ parameters.hidden_weights
    activations += parameters.hidden_biases
    np.maximum(activations, 0.0, out=activations)
    return activations @ parameters.output_weights + parameters.output_bias, activations


def loss_and_gradient(
    parameters: Parameters, X: Floats, anomalous: NDArray[np.bool_], objective: Objective
) -> tuple[float, Floats]:
    """Return the loss of a batch and its gradient as a flat vector."""
    scores, activations = forward(parameters, X)
    deviations = (scores - objective.mean) / objective.std
    shortfalls = objective.margin - deviations
    losses = np.where(anomalous, np.maximum(shortfalls, 0.0), np.abs(deviations))
    weights = parameters.hidden_weights
    loss = float(losses.mean()) + objective.l2 * float(np.vdot(weights, weights))

    slopes = np.where(anomalous, -1.0 * (shortfalls > 0.0), np.sign(deviations))
    slopes /= len(X) * objective.std
    behind = np.multiply.outer(slopes, parameters.output_weights)
    behind *= activations > 0.0
    gradient = np.empty(sum(part.size for part in parameters))
    parts = unpack(gradient, parameters.hidden_biases.size)
    np.matmul(X.T, behind, out=parts.hidden_weights)
    parts.hidden_weights[...] += 2.0 * objective.l2 * weights
    np.sum(behind, axis=0, out=parts.hidden_biases)
    np.matmul(activations.T, slopes, out=parts.output_weights)
    parts.output_bias[0] = slopes.sum()
    return loss, gradient


def clip_norm(gradient: Floats, limit: float = 1.0) -> Floats:
    """Return the gradient, scaled down to a Euclidean norm of `limit` if it is longer."""
    norm = float(np.sqrt(np.vdot(gradient, gradient)))
    if norm == inf:  # no direction is left: NaN lets the loss tell, where zero would stop training in silence
        return np.full_like(gradient, nan)
    return gradient * (limit / norm) if norm > limit else gradient


def rmsprop_step(
    flat: Floats, gradient: Floats, squares: Floats, learning_rate: float, decay: float = 0.9
) -> None:
    """Move `flat` one step downhill, in place; `squares` is the running mean of the squared gradients."""
    squares *= decay
    squares += (1.0 - decay) * gradient * gradient
    flat -= learning_rate * gradient / (np.sqrt(squares) + 1e-7)


_CHUNK = 8192  # rows scored at a time, so that a large X is never converted as a whole


class DevNet(BaseEstimator):
    """A deviation network (Pang, Shen and van den Hengel, 2019), taught by a few known anomalies.

    The scores of unlabelled rows are drawn towards the mean of standard normal reference scores, those of
    known anomalies to at least `margin` standard deviations above it. Features should have similar scales.

    Parameters
    ----------
    hidden, l2 : int, float
        Units of the hidden layer, and the penalty on its squared weights.
    margin, references : float, int
        By how many standard deviations anomalies are to exceed reference scores, and how many are drawn.
    epochs, batches, batch_size, learning_rate : int, int, int, float
        Training takes `epochs` times `batches` steps of RMSprop. Half of each batch are known anomalies and
        half are unlabelled rows, drawn with replacement.
    random_state : int, RandomState, Generator or None
        Fixes the initial weights, the reference scores and the batches.
    progress : callable or None
        Called after each epoch with the epochs done, all epochs and the mean loss of the epoch.

    Attributes
    ----------
    parameters_ : the weights, as a named tuple
    loss_curve_ : the mean loss of each epoch

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = np.r_[random.normal(0, 1, (500, 3)), random.normal(3, 1, (20, 3))]
    >>> y = np.r_[np.zeros(500), np.ones(20)]
    >>> detector = DevNet(random_state=0).fit(X, y)
    >>> usual, strange = detector.decision_function([[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]])
    >>> bool(strange > usual + 3.0)
    True
    """

    parameters_: Parameters
    loss_curve_: list[float]
    n_features_in_: int

    def __init__(
        self,
        *,
        hidden: int = 20,
        l2: float = 0.01,
        margin: float = 5.0,
        references: int = 5000,
        epochs: int = 50,
        batches: int = 20,
        batch_size: int = 512,
        learning_rate: float = 0.001,
        random_state: Any = None,
        progress: Callable[[int, int, float], object] | None = None,
    ) -> None:
        self.hidden, self.l2, self.margin, self.references = hidden, l2, margin, references
        self.epochs, self.batches, self.batch_size = epochs, batches, batch_size
        self.learning_rate, self.random_state, self.progress = learning_rate, random_state, progress

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train the network on rows with 1 for a known anomaly and 0 for an unlabelled row; return it."""
        self._check_parameters()
        check_aligned("X", X, "y", y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        known = self._known(y)
        random = random_generator(self.random_state)
        reference = random.standard_normal(self.references)
        objective = Objective(float(reference.mean()), float(reference.std()), self.margin, self.l2)
        flat = initial_parameters(X.shape[1], self.hidden, random)
        # a network that overflows is reported below, in words
        with np.errstate(over="ignore", invalid="ignore"):
            self.loss_curve_ = self._train(flat, X, known, objective, random)
        self.parameters_ = unpack(flat, self.hidden)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return one score per row, higher for a more anomalous row."""
        check_is_fitted(self, "parameters_")
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        scores = np.empty(X.shape[0])
        for start in range(0, X.shape[0], _CHUNK):
            rows = slice(start, start + _CHUNK)
            scores[rows] = forward(self.parameters_, _dense(X[rows]))[0]
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        tags.input_tags.sparse = True
        return tags

    def _train(
        self,
        flat: Floats,
        X: Any,
        known: NDArray[np.bool_],
        objective: Objective,
        random: np.random.Generator,
    ) -> list[float]:
        """Return the mean loss of each epoch; `flat` is trained in place."""
        parameters, squares = unpack(flat, self.hidden), np.zeros_like(flat)
        anomalies, unlabelled = np.flatnonzero(known), np.flatnonzero(~known)
        half = self.batch_size // 2
        anomalous = np.arange(self.batch_size) < half
        curve: list[float] = []
        for epoch in range(1, self.epochs + 1):
            first = random.choice(anomalies, (self.batches, half))
            second = random.choice(unlabelled, (self.batches, self.batch_size - half))
            total = 0.0
            for rows in np.hstack([first, second]):
                loss, gradient = loss_and_gradient(parameters, _dense(X[rows]), anomalous, objective)
                rmsprop_step(flat, clip_norm(gradient), squares, self.learning_rate)
                total += loss
            curve.append(total / self.batches)
            if not isfinite(total):
                raise InputError(
                    f"the loss must stay finite, got {total} in epoch {epoch}; scale the features of X,"
                    " for example with StandardScaler, or lower learning_rate"
                )
            if self.progress is not None:
                self.progress(epoch, self.epochs, curve[-1])
        return curve

    def _known(self, y: ArrayLike) -> NDArray[np.bool_]:
        try:
            known = as_class_mask(y)
        except InputError as error:
            raise InputError(
                "y must be 1 for known anomalies and 0 for unlabelled rows, got"
                f" {list(dict.fromkeys(np.asarray(y).tolist()))[:3]}; recode it"
            ) from error
        count = int(np.count_nonzero(known))
        if count == 0 or count == known.size:
            raise InputError(
                "fit needs at least one known anomaly (y = 1) and one unlabelled row (y = 0), got"
                f" n_samples = {known.size}, {count} of them known anomalies; add rows of the other kind"
            )
        return known

    def _check_parameters(self) -> None:
        for name in ("hidden", "references", "epochs", "batches", "batch_size"):
            least = 2 if name in ("references", "batch_size") else 1
            if check_count(name, getattr(self, name)) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("margin", "learning_rate", "l2"):
            value = getattr(self, name)
            if not is_number(value) or not isfinite(value) or value < 0 or (value == 0 and name != "l2"):
                rule = "0 or more" if name == "l2" else "more than 0"
                raise InputError(f"{name} must be a finite number, {rule}, got {value!r}")


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
