"""Certificates of points that are drawn by their weights, in memory or read in passes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_anomaly_mask, as_array, as_scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.request import Request, certify_classes
from pac_wrap.method.robust.weights import Draws, Weights, as_weights, survivors
from pac_wrap.method.sampling import OF_DRAWS, assumed
from pac_wrap.ranks.auc import Pair
from pac_wrap.ranks.memory import Rank, Ranked
from pac_wrap.ranks.passes import ChunkReader


@dataclass(frozen=True, slots=True)
class WeightedRequest:
    """What is asked of the points that survive a draw by their weights; whoever reads them draws."""

    request: Request
    draws: Draws

    def __post_init__(self) -> None:
        _check(self.request, self.draws.weighted)

    @property
    def anomaly_label(self) -> object:
        """The label that marks an anomaly."""
        return self.request.anomaly_label

    @property
    def label_text(self) -> str | None:
        """The same as a file has it."""
        return self.request.label_text

    def ranks(self, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks that may be asked for."""
        yield from self.request.ranks(sizes)

    def with_usual_labels(self) -> "WeightedRequest":
        """Return the same for labels 0 and 1."""
        return replace(self, request=self.request.with_usual_labels())

    def certify(self, normal: Ranked, anomalous: Ranked, score_type: ScoreType) -> Certificate:
        """Return the certificate of the survivors of each class."""
        return _weighted(self.request.certify(normal, anomalous, score_type), self.draws)


def weighted_by(request: Request, bound: float | None, seed: int | None) -> Request | WeightedRequest:
    """Return what is asked of points that are drawn if there is a bound of their weights."""
    if bound is None and seed is not None:
        raise InputError("seed is for weights; give weight_bound and weights too, or leave it out")
    return request if bound is None else WeightedRequest(request, Draws(bound, seed))


class WeightedChunks(ChunkReader):
    """Runs passes over chunks of scores, labels and weights, of which the survivors of the draw are seen."""

    chunk = (3, "triple", "of scores, labels and weights")

    def __init__(
        self, chunks: Callable[[], Iterable[tuple[ArrayLike, ...]]], anomaly_label: object, draws: Draws
    ) -> None:
        super().__init__(chunks, anomaly_label)
        self._draws = draws

    def _pairs(self) -> Iterator[Pair]:
        self._draws.restart()
        yield from super()._pairs()

    def _split(self, number: int, scores: ArrayLike, labels: ArrayLike, *rest: ArrayLike) -> Pair:
        normal, anomalous = super()._split(number, scores, labels)
        name, size = f"weights of chunk {number}", normal.size + anomalous.size
        weights, _ = as_weights(as_array(rest[0], name), name, size, self._draws.bound)
        for side, points in enumerate((normal, anomalous)):
            self._draws.see(side, points)
        mask = as_anomaly_mask(labels, self._anomaly_label)
        kept = self._draws.kept(mask, weights)
        return normal[kept[~mask]], anomalous[kept[mask]]


def certify_weighted(
    request: Request,
    scores: tuple[ArrayLike, ArrayLike],
    weights: tuple[Weights | None, Weights | None],
    bound: float | None,
    seed: int | None,
) -> Certificate:
    """Return the certificate of the points of each class that survive a draw by their weights, if any."""
    weighted = weights[0] is not None, weights[1] is not None
    draws = Draws(bound, seed, weighted)
    intervals = any(isinstance(one, tuple) for one in weights)
    _check(request, weighted)
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
        values, given = as_array(scores[side], name), weights[side]
        draws.see(side, as_scores(values, name))
        if given is not None:
            low, high = as_weights(given, f"{name}_weights", values.size, draws.bound)
            numbers = draws.numbers(side, values.size) * draws.bound
            values = survivors(values, (numbers < low, numbers < high), promises[side], high=side == 0)
        kept.append(values)
    return _weighted(certify_classes(request, kept[0], kept[1]), draws, intervals)


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


def _check(request: Request, weighted: tuple[bool, bool]) -> None:
    """Refuse what nothing is proved for together with weights."""
    if request.overlap.given or not request.overlap.fixed_sizes:
        raise InputError("weights go with labels that are looked at once; calibrate with another overlap")
    noise = request.guarantee.label_noise or (None, None)
    if any(one and wrong is not None for one, wrong in zip(weighted, noise, strict=True)):
        raise InputError(
            "weights change the share of wrong labels, so label_noise has no meaning for a class that has"
            " them; leave one of the two out"
        )


def _weighted(made: Certificate, draws: Draws, intervals: bool = False) -> Certificate:
    """Return a certificate of survivors that says what they survived."""
    assumptions = assumed(OF_DRAWS, weights=True, **made.guarantee.rooms)
    return replace(made, assumptions=assumptions, weighting=replace(draws.weighting, intervals=intervals))
