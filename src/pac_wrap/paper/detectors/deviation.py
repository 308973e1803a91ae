"""The arithmetic of a deviation network: one hidden layer, its loss and gradient, and RMSprop."""

from dataclasses import dataclass
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """Return a flat vector of Glorot-uniform weights and zero biases.

    >>> initial_parameters(3, 2, np.random.default_rng(0)).shape
    (11,)
    """
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
    """Return the score of each row, and what the hidden units gave.

    >>> two = Parameters(np.eye(2), np.zeros(2), np.array([1.0, 10.0]), np.array([0.5]))
    >>> forward(two, np.array([[3.0, -1.0], [0.0, 2.0]]))[0]
    array([ 3.5, 20.5])
    """
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
    """Return the gradient, scaled down to a Euclidean norm of `limit` if it is longer.

    >>> clip_norm(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> clip_norm(np.array([0.3, 0.4]))
    array([0.3, 0.4])
    """
    norm = float(np.sqrt(np.vdot(gradient, gradient)))
    if norm == inf:  # no direction is left: NaN lets the loss tell, where zero would stop training in silence
        return np.full_like(gradient, nan)
    return gradient * (limit / norm) if norm > limit else gradient


def rmsprop_step(
    flat: Floats, gradient: Floats, squares: Floats, learning_rate: float, decay: float = 0.9
) -> None:
    """Move `flat` one step downhill, in place; `squares` is the running mean of the squared gradients.

    >>> flat, squares = np.array([1.0]), np.array([0.0])
    >>> rmsprop_step(flat, np.array([2.0]), squares, learning_rate=0.1)
    >>> flat.round(4), squares
    (array([0.6838]), array([0.4]))
    """
    squares *= decay
    squares += (1.0 - decay) * gradient * gradient
    flat -= learning_rate * gradient / (np.sqrt(squares) + 1e-7)
