"""Weights of labelled points, in one array and in chunks: the certificate of the two classes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import Certificate, Guarantee, LabelNoise, calibrate, calibrate_chunks, calibrate_labelled
from pac_wrap.method.strategies.looks import Looks
from support.examples import examples
from support.slow import slow_but
from support.strategies import refusal

RANDOM = np.random.default_rng(1)
LABELS = (RANDOM.random(1200) < 0.3).astype(int)
SCORES = RANDOM.normal(3.0 * LABELS).round(1)
WEIGHTS = np.minimum(np.exp(SCORES / 2), 4.0)
BOUND: dict[str, Any] = {"weight_bound": 4.0}


def of_classes(scores: Any, **options: Any) -> Certificate:
    mask = LABELS == 1
    options |= {"normal_weights": WEIGHTS[~mask], "anomalous_weights": WEIGHTS[mask]} | BOUND
    made: Certificate = calibrate(scores[~mask], scores[mask], **options)
    return made


@pytest.mark.parametrize("kind", slow_but(1, [np.float32, np.float64]))
@pytest.mark.parametrize("overlap", ["abstain", "raise", "hold_fnr", "algorithm1"])
def test_every_entrance_gives_the_same_certificate(overlap: str, kind: type) -> None:
    scores: Any = SCORES.astype(kind)
    expected = of_classes(scores, overlap=overlap, seed=3)
    assert expected.weighting is not None
    assert expected.fpr.n + expected.fnr.n < expected.weighting.normal  # type: ignore[operator]  # it has one
    labelled = calibrate_labelled(scores, LABELS, overlap=overlap, weights=WEIGHTS, seed=3, **BOUND)
    assert labelled.to_json() == expected.to_json()
    for size in (13, 97, 5000):
        chunks = [
            (scores[a : a + size], LABELS[a : a + size], WEIGHTS[a : a + size])
            for a in range(0, scores.size, size)
        ]
        found = calibrate_chunks(partial(list, chunks), overlap=overlap, seed=3, **BOUND)
        assert found.to_json() == expected.to_json()


@settings(max_examples=examples(25))
@given(cuts=st.lists(st.integers(0, 1200), max_size=6), seed=st.integers(0, 2**63 - 1))
def test_no_division_into_chunks_changes_anything(cuts: list[int], seed: int) -> None:
    edges = [0, *sorted(cuts), 1200]
    chunks = [(SCORES[a:b], LABELS[a:b], WEIGHTS[a:b]) for a, b in pairwise(edges)]
    assert calibrate_chunks(lambda: chunks, seed=seed, **BOUND) == of_classes(SCORES, seed=seed)


def test_without_a_seed_all_passes_over_the_chunks_draw_the_same() -> None:
    found = calibrate_chunks(lambda: [(SCORES, LABELS, WEIGHTS)], **BOUND)
    assert found.weighting is not None
    assert not found.weighting.chosen
    again = of_classes(SCORES, seed=found.weighting.seed)
    assert replace(again, weighting=found.weighting) == found


def test_intervals_go_with_labelled_points_too() -> None:
    pair = 0.9 * WEIGHTS, WEIGHTS
    mask = LABELS == 1
    expected = calibrate(
        SCORES[~mask],
        SCORES[mask],
        seed=0,
        normal_weights=(pair[0][~mask], pair[1][~mask]),
        anomalous_weights=(pair[0][mask], pair[1][mask]),
        **BOUND,
    )
    assert calibrate_labelled(SCORES, LABELS, weights=pair, seed=0, **BOUND) == expected


def test_a_class_whose_weight_is_the_bound_is_kept_whole() -> None:
    weights = np.where(LABELS == 1, 4.0, WEIGHTS)
    made = calibrate_labelled(SCORES, LABELS, weights=weights, **BOUND)
    assert made.fnr.n == LABELS.sum()
    assert made.fpr.n < (LABELS == 0).sum()


def chunked(*rest: Any, **options: Any) -> Callable[[], Certificate]:
    return lambda: calibrate_chunks(lambda: [(SCORES, LABELS, *rest)], **(BOUND | options))


def labelled(weights: Any = WEIGHTS, **options: Any) -> Callable[[], Certificate]:
    return lambda: calibrate_labelled(SCORES, LABELS, weights=weights, **(BOUND | options))


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        (chunked(), "chunk 0 must be a triple of scores, labels and weights"),
        (chunked(WEIGHTS, weight_bound=None), "chunk 0 must be a pair of scores and labels"),
        (chunked(WEIGHTS[1:]), "weights of chunk 0 must have one weight for each of 1,200 scores, got 1,199"),
        (chunked(2 * WEIGHTS), "weights of chunk 0 must lie between 0 and weight_bound = 4, got 8.0"),
        (chunked(-WEIGHTS), "weights of chunk 0 must lie between 0 and weight_bound = 4, got -4.0"),
        (chunked(np.nan * WEIGHTS), "weights of chunk 0"),
        (chunked(WEIGHTS, weight_bound=0), "weight_bound must be a number above 0"),
        (chunked(WEIGHTS, seed=-1), "seed must be a whole number"),
        (chunked(WEIGHTS, overlap=Looks()), "looked at only once"),
        (labelled(WEIGHTS[1:]), "weights must have one weight for each of 1,200 scores, got 1,199"),
        (labelled((WEIGHTS, WEIGHTS[1:])), "weights must have one weight for each"),
        (labelled((WEIGHTS,) * 3), "a pair of lower and upper weights, got 3"),
        (labelled(2 * WEIGHTS), "between 0 and weight_bound = 4, got 8.0"),
        (labelled(weight_bound=None), "weights need a bound"),
        (labelled(None), "weight_bound is for weights; give weights too"),
        (labelled(None, weight_bound=None, seed=1), "seed is for weights; give weights too"),
        (chunked(weight_bound=None, seed=1), "seed is for weights; give weight_bound and weights too"),
        (labelled(guarantee=Guarantee(label_noise=LabelNoise(0.01))), "change the share of wrong labels"),
    ],
)
def test_what_is_wrong_is_said_with_its_name(calibration: Callable[[], Certificate], words: str) -> None:
    assert words in refusal(calibration)
