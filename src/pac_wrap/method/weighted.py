"""Certificates of points that are drawn by their weights."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certify import check_weighted, weighted
from pac_wrap.method.request import Request, certify_classes
from pac_wrap.method.robust.weights import Draws, Weights, as_weights, survivors


def certify_weighted(
    request: Request,
    scores: tuple[ArrayLike, ArrayLike],
    weights: tuple[Weights | None, Weights | None],
    bound: float | None,
    seed: int | None,
) -> Certificate:
    """Return the certificate of the points of each class that survive a draw by their weights, if any."""
    given = weights[0] is not None, weights[1] is not None
    draws = Draws(bound, seed, given)
    intervals = any(isinstance(one, tuple) for one in weights)
    check_weighted(request, given)
    if intervals and request.overlap.single:
        raise InputError(
            f'intervals of weights go with overlap="abstain" only, got "{request.overlap.word}"; what they'
            " prove is not proved for others"
        )
    if intervals:  # how many points count depends on their scores
        request = request.fixed
    kept: list[NDArray[Any]] = []
    promises = request.guarantee.fpr, request.guarantee.fnr
    for side, name in enumerate(("normal", "anomalous")):
        values, weight = as_array(scores[side], name), weights[side]
        draws.see(side, as_scores(values, name))
        if weight is not None:
            low, high = as_weights(weight, f"{name}_weights", values.size, draws.bound)
            numbers = draws.numbers(side, values.size) * draws.bound
            values = survivors(values, (numbers < low, numbers < high), promises[side], high=side == 0)
        kept.append(values)
    return weighted(certify_classes(request, kept[0], kept[1]), draws, intervals)


def of_classes(weights: Weights, mask: NDArray[np.bool_]) -> tuple[Weights, Weights]:
    """Return the weights of normal and of anomalous points, or pairs of lower and upper ones."""
    if isinstance(weights, tuple):
        low, high = zip(*(of_classes(one, mask) for one in weights), strict=True)
        return low, high
    values = as_array(weights, "weights")
    if values.size != mask.size:
        raise InputError(
            f"weights must have one weight for each of {mask.size:,} scores, got {values.size:,}"
        )
    return values[~mask], values[mask]
