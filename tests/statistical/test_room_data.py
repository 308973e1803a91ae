"""Thyroid and celeba with a shift, label flips and contamination of known sizes, without and with room.

Scores of rows that trained nothing are the population; calibration draws from it, so every probability is
exact (`exact_violation`), and so is the size of what is injected.
"""

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from pac_wrap import KL, ChiSquared, DensityRatio, Guarantee, LabelNoise, TotalVariation, anomaly_scores
from pac_wrap.validation import exact_violation
from pac_wrap_paper.data import load
from support.datafolder import needs

Scores = NDArray[np.float64]
Pair = tuple[Scores, Scores]
SIZES = 1500, 1500
DELTA = 0.05
CEILING = 0.1


@cache
def population(name: str) -> Pair:
    """Return the scores of both classes, each of 8,000 points that stand for all of its kind."""
    data = load(name)
    random = np.random.default_rng(0)
    normal, anomalous = (np.flatnonzero(data.y == label) for label in (0, 1))
    normal = random.permutation(normal)[:12_000]
    half = normal.size // 2
    forest = IsolationForest(n_estimators=50, random_state=0).fit(data.X[normal[:half]])
    classes = (anomaly_scores(forest, data.X[rows]) for rows in (normal[half:], anomalous))
    low, high = (np.sort(random.choice(scores, 8_000)) for scores in classes)
    return low, high


def worse(scores: Scores, share: float, ratio: float, *, high: bool) -> Scores:
    """Return the population in which the worst `share` of the points is `ratio` times as frequent."""
    ordered = scores if high else scores[::-1]
    cut = round((1 - share) * scores.size)
    bad, good = ordered[cut:], ordered[:cut]
    kept = round((1 - ratio * share) * scores.size)
    return np.append(np.tile(bad, round(ratio)), good[np.linspace(0, cut - 1, kept).astype(int)])


def injected(kind: str, scores: Scores, *, high: bool) -> tuple[Scores, Scores, dict[str, Any]]:
    """Return what calibrates, what comes, and the room for it; `high`: errors are the high scores."""
    if kind in ("ratio", "kl", "chi2", "tv"):
        # what lies in the worst 5 % is as frequent as 10 % were
        p, q = 0.05, 0.1
        rooms: dict[str, Any] = {
            "ratio": DensityRatio(q / p * (1 + 1e-9)),
            "kl": KL(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)) + 1e-9),
            "chi2": ChiSquared((q - p) ** 2 / (p * (1 - p)) + 1e-9),
            "tv": TotalVariation(q - p + 1e-9),
        }
        return scores, worse(scores, p, q / p, high=high), {"shift": rooms[kind]}
    if kind == "flips":
        # the worst 4 % of the class carry the other label
        ordered = scores if high else scores[::-1]
        return ordered[: round(0.96 * scores.size)], scores, {"label_noise": LabelNoise(lost=0.04)}
    # a quarter of what carries the label is of the other class, and none of it is an error
    other = np.full(scores.size // 3, scores.min() - 1 if high else scores.max() + 1)
    return (
        np.append(scores, other),
        scores,
        {"label_noise": LabelNoise(other.size / (scores.size + other.size))},
    )


@pytest.mark.parametrize("name", ["thyroid", "celeba"])
@pytest.mark.parametrize("kind", ["tv", "ratio", "kl", "chi2", "flips", "contamination"])
def test_without_room_the_promise_breaks_and_with_room_it_holds(name: str, kind: str) -> None:
    needs(name)
    drawn, future, rooms = zip(
        *(injected(kind, scores, high=side == 0) for side, scores in enumerate(population(name))), strict=True
    )
    room: dict[str, Any] = {key: tuple(one[key] for one in rooms) for key in rooms[0]}

    def violated(asked: Guarantee) -> tuple[float, float]:
        found = exact_violation(drawn[0], drawn[1], SIZES, asked, future=(future[0], future[1]))
        assert found.fpr is not None
        assert found.fnr is not None
        return found.fpr, found.fnr

    asked = partial(Guarantee, CEILING, CEILING, DELTA, DELTA)
    assert min(violated(asked())) > 0.3
    assert max(violated(asked(**room))) <= DELTA
