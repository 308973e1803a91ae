"""Weights: who survives, that no division matters, intervals against their rule, and refusals."""

from dataclasses import replace
from itertools import pairwise
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pac_wrap import (
    Certificate,
    CertificateError,
    Guarantee,
    InputError,
    LabelNoise,
    TotalVariation,
    calibrate,
)
from pac_wrap.method.robust.weights import Draws, Weighting, survivors
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.ranks.kernels import digest
from pac_wrap.tails.bounds import cdf_at_most
from support.examples import examples
from support.resealed import tampered
from support.strategies import refusal

RANDOM = np.random.default_rng(0)
NORMAL, ANOMALOUS = RANDOM.normal(size=400), RANDOM.normal(4, 1, size=300)
WEIGHTS = np.minimum(np.exp(NORMAL), 3.0)
NONE = np.empty(0)


def philox(key: tuple[int, int], block: int) -> list[int]:
    """Return the four numbers of a block of Philox4x64-10, as Salmon et al. (2011) define it."""
    mask, counter, (k0, k1) = 2**64 - 1, [block, 0, 0, 0], key
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * counter[0], 0xCA5A826395121157 * counter[2]
        counter = [second >> 64 ^ counter[1] ^ k0, second & mask, first >> 64 ^ counter[3] ^ k1, first & mask]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return counter


def test_numbers_are_those_of_philox_however_they_are_asked_for() -> None:
    for side in range(2):
        low, high = np.random.SeedSequence([7, side]).generate_state(2, np.uint64).tolist()
        raw = [number for block in (1, 2, 3) for number in philox((low, high), block)]
        expected = [(number >> 11) * 2.0**-53 for number in raw]
        assert Draws(1.0, 7).numbers(side, 12).tolist() == expected
        draws = Draws(1.0, 7)
        parts = [draws.numbers(side, size) for size in (1, 0, 5, 6)]
        assert np.concatenate(parts).tolist() == expected
        draws.restart()
        assert draws.numbers(side, 2).tolist() == expected[:2]


def test_a_point_survives_with_the_chance_of_its_weight() -> None:
    weights = np.where(np.arange(100_000) < 50_000, 0.5, 2.0)
    kept = Draws(2.0, 0).kept(np.zeros(100_000, dtype=bool), weights)
    # six standard deviations
    assert kept[:50_000].mean() == pytest.approx(0.25, abs=0.012)
    assert kept[50_000:].all()


@pytest.mark.parametrize("bound", [1e-290, 0.1, 1.0, np.nextafter(1.0, 2.0), 1e290])
def test_a_weight_of_the_bound_always_survives(bound: float) -> None:
    largest = 1.0 - 2.0**-53
    assert largest * bound < bound
    assert Draws(bound, 0).kept(np.zeros(1000, dtype=bool), np.full(1000, bound)).all()
    assert "scale the weights" in refusal(lambda: Draws(5e-324, 0))


def test_a_weight_of_nothing_never_survives_and_equal_ends_are_a_weight() -> None:
    weights = np.where(NORMAL > 1.0, 0.0, WEIGHTS)
    made = calibrate(NORMAL, ANOMALOUS, normal_weights=weights, weight_bound=3, seed=1)
    alone = calibrate(NORMAL[weights > 0.0], ANOMALOUS)
    assert made.fpr.n <= alone.fpr.n
    assert made.thresholds.alarm_from is not None
    assert made.thresholds.alarm_from <= nextafter(1.0, inf)
    pair = calibrate(NORMAL, ANOMALOUS, normal_weights=(weights, weights), weight_bound=3, seed=1)
    assert pair.weighting is not None
    assert replace(pair, weighting=made.weighting) == made


def test_the_place_of_a_point_in_its_class_decides_and_nothing_else() -> None:
    mask = RANDOM.random(700) < 0.4
    weights = np.append(WEIGHTS, RANDOM.random(300))
    draws, parts = Draws(3.0, 5), Draws(3.0, 5)
    whole = draws.kept(mask, weights)
    cuts = [0, 1, 1, 250, 700]
    pieces = [parts.kept(mask[a:b], weights[a:b]) for a, b in pairwise(cuts)]
    assert (np.concatenate(pieces) == whole).all()
    sizes = int((~mask).sum()), int(mask.sum())
    assert parts.weighting == draws.weighting == Weighting(3.0, 5, *sizes, digests=(digest(NONE),) * 2)
    normals = Draws(3.0, 5).kept(np.zeros(int((~mask).sum()), dtype=bool), weights[~mask])
    assert (normals == whole[~mask]).all()


def test_the_seed_is_recorded_and_decides() -> None:
    first = calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3, seed=7)
    assert first == calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3, seed=7)
    assert first.fpr.n < 400
    assert first.weighting == Weighting(3.0, 7, 400, None, digests=(digest(NORMAL), digest(ANOMALOUS)))
    told = "normal points drawn from 400 by weights up to 3, seed 7 chosen by the user"
    assert f"{told}: it must not have been tried before" in " ".join(str(first).split())
    other = calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3, seed=8)
    assert other.fpr.digest != first.fpr.digest


def test_without_a_seed_the_system_draws_one_that_is_recorded_and_verified() -> None:
    made = [calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3) for _ in range(5)]
    seeds = [one.weighting.seed for one in made if one.weighting is not None]
    # two of them agree with a chance of 10 in 2^53
    assert len(set(seeds)) == 5
    read = Certificate.from_json(made[0].to_json())
    assert read.weighting is not None
    assert not read.weighting.chosen
    told = " ".join(str(read).split())
    assert f"seed {seeds[0]} drawn by the system" in told
    assert "tried before" not in told
    assert read.verify(NORMAL, ANOMALOUS, normal_weights=WEIGHTS)
    same = calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3, seed=seeds[0])
    assert replace(same, weighting=read.weighting) == read


def test_the_anomalous_draw_does_not_depend_on_the_normal_points() -> None:
    weights = np.linspace(0.1, 1, ANOMALOUS.size)
    found = [
        calibrate(normal, ANOMALOUS, anomalous_weights=weights, weight_bound=1, seed=0).fnr.digest
        for normal in (NORMAL, NORMAL[:10])
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("pair", [False, True])
def test_it_is_saved_read_and_verified_with_its_weights_only(pair: bool) -> None:
    weights: Any = (0.9 * WEIGHTS, WEIGHTS) if pair else WEIGHTS
    made = calibrate(NORMAL, ANOMALOUS, normal_weights=weights, weight_bound=3)
    read = Certificate.from_json(made.to_json())
    assert read == made
    assert read.weighting is not None
    assert read.weighting.intervals is pair
    verified = read.verify(NORMAL, ANOMALOUS, normal_weights=weights)
    assert verified
    assert "these scores, labels and weights, in this order, give" in str(verified)
    turned: Any = tuple(one[::-1] for one in weights) if pair else weights[::-1]
    other = read.verify(NORMAL[::-1], ANOMALOUS, normal_weights=turned)
    assert not other
    assert "points in their order, which must be that of calibration" in str(other)
    assert not read.verify(NORMAL, ANOMALOUS, normal_weights=np.ones(400))
    assert "were drawn by weights; give normal_weights" in refusal(lambda: read.verify(NORMAL, ANOMALOUS))
    plain = calibrate(NORMAL, ANOMALOUS)
    assert "have no weights; remove anomalous_weights" in refusal(
        lambda: plain.verify(NORMAL, ANOMALOUS, anomalous_weights=np.ones(300))
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"normal": 10}, "cannot survive of 10"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"bound": 0.0}, "weight_bound must be a number above 0"),
        ({"normal": None}, "must weight at least one class"),
        ({"digests": ["0" * 16]}, "digests of both classes, or none, got 1"),
        ({"digests": ["0" * 16, "x"]}, "'x' is not a digest of anomalous scores"),
        ({"digests": ["0" * 16, "1" * 16]}, "all anomalous scores survived, but their digest differs"),
    ],
)
def test_a_weighting_that_contradicts_itself_is_not_believed(change: dict[str, Any], words: str) -> None:
    made = calibrate(NORMAL, ANOMALOUS, normal_weights=WEIGHTS, weight_bound=3)
    with pytest.raises(CertificateError, match=words):
        Certificate.from_json(tampered(made, {f"weighting.{name}": value for name, value in change.items()}))


def test_intervals_go_with_abstaining_only() -> None:
    pair = 0.9 * WEIGHTS, WEIGHTS
    for overlap in ("raise", "hold_fnr", "algorithm1"):
        with pytest.raises(InputError, match='need overlap="abstain"'):
            calibrate(NORMAL, ANOMALOUS, overlap=overlap, normal_weights=pair, weight_bound=3)
    made = calibrate(NORMAL, ANOMALOUS - 3, normal_weights=pair, weight_bound=3)
    assert not made.rule.single
    assert "weights are known up to intervals" in refusal(lambda: made.precision(0.1))
    exact = calibrate(NORMAL, ANOMALOUS - 3, normal_weights=WEIGHTS, weight_bound=3)
    assert exact.precision(0.1).low > 0.0


def first_accepted(scores: Any, low: Any, high: Any, rate: float, delta: float, *, fpr: bool) -> float | None:
    """Return the threshold nearest to the other class that the rule of eq. (79) accepts, trying all."""
    best = None
    edges = [nextafter(one, inf) if fpr else one for one in scores]
    for threshold in (*edges, inf if fpr else -inf):
        # inf is never reached
        wrong = (scores >= threshold) & (threshold < inf) if fpr else scores < threshold
        errors, others = int((wrong & high).sum()), int((~wrong & low).sum())
        accepted = cdf_at_most(errors, errors + others, rate, delta) and errors + others > errors
        if accepted and (best is None or (threshold < best if fpr else threshold > best)):
            best = threshold
    return best


@pytest.mark.parametrize("fpr", [True, False])
@settings(max_examples=examples(60))
@given(
    points=st.lists(
        st.tuples(st.sampled_from([-inf, 0.0, 1.0, 2.0, 3.0, inf]), st.sampled_from("nlb")),
        min_size=1,
        max_size=25,
    ),
    rate=st.sampled_from([0.2, 0.4, 0.7]),
)
# no error is accepted, so the outermost point counts by its upper weight
@example(points=[(0.0, "l"), (1.0, "b"), (1.0, "b"), (2.0, "b"), (2.0, "b"), (3.0, "l")], rate=0.4)
def test_intervals_give_the_first_threshold_that_their_rule_accepts(
    fpr: bool, points: list[tuple[float, str]], rate: float
) -> None:
    """n: neither weight keeps the point, l: only the upper one, b: both."""
    scores = np.array([score for score, _ in points])
    low, high = np.array([kind == "b" for _, kind in points]), np.array([kind in "lb" for _, kind in points])
    asked = Guarantee(rate, None, 0.2) if fpr else Guarantee(None, rate, 0.2, 0.2)
    kept = survivors(scores, (low, high), asked.promises[0], high=fpr)
    expected = first_accepted(scores, low, high, rate, 0.2, fpr=fpr)
    if not kept.size:
        assert expected is None or abs(expected) == inf
        return
    found = calibrate(kept, [], asked) if fpr else calibrate([], kept, asked)
    threshold = found.thresholds.alarm_from if fpr else found.thresholds.clear_below
    assert threshold is not None
    if expected is None:
        assert threshold == (inf if fpr else -inf)
        assert found.empty
    else:
        assert threshold == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"normal_weights": WEIGHTS}, "weights need a bound, because"),
        ({"weight_bound": 2.0}, "weight_bound is for weights"),
        ({"seed": 2}, "seed is for weights"),
        ({"normal_weights": WEIGHTS, "weight_bound": 2.0}, r"clip the weights there and use shift"),
        ({"normal_weights": -WEIGHTS, "weight_bound": 3.0}, "must lie between 0 and weight_bound"),
        ({"normal_weights": WEIGHTS[:-1], "weight_bound": 3.0}, "one weight for each of 400 scores, got 399"),
        ({"normal_weights": (WEIGHTS, WEIGHTS / 2), "weight_bound": 3.0}, "no lower weight above the upper"),
        ({"normal_weights": (WEIGHTS,) * 3, "weight_bound": 3.0}, "got 3 arrays"),
        ({"normal_weights": WEIGHTS * np.nan, "weight_bound": 3.0}, "NaN"),
        ({"normal_weights": WEIGHTS, "weight_bound": -1.0}, "weight_bound must be a number above 0"),
        ({"normal_weights": WEIGHTS, "weight_bound": 3.0, "seed": -1}, "seed must be a whole number"),
        ({"normal_weights": WEIGHTS, "weight_bound": 3.0, "overlap": Looks()}, "looked at only once"),
        (
            {
                "normal_weights": WEIGHTS,
                "weight_bound": 3.0,
                "guarantee": Guarantee(label_noise=LabelNoise(0.01)),
            },
            "weights change the share of wrong labels",
        ),
    ],
)
def test_what_promises_nothing_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        calibrate(NORMAL, ANOMALOUS, **options)


def test_kinds_take_no_weights() -> None:
    assert "scores by kind take no weights" in refusal(
        calibrate, NORMAL, {"a": ANOMALOUS}, normal_weights=WEIGHTS, weight_bound=3
    )


def test_weights_that_few_points_exceed_are_clipped_with_room_for_them() -> None:
    asked = Guarantee(shift=(TotalVariation(0.01), None))
    made = calibrate(NORMAL, ANOMALOUS, asked, normal_weights=np.minimum(WEIGHTS, 2.0), weight_bound=2)
    assert made.fpr.budget is not None
    assert made.fpr.budget.rate == pytest.approx(0.04)
    assert len(made.assumptions) == 4


def test_a_calibration_with_intervals_has_the_first_threshold_of_their_rule() -> None:
    """Eq. (79) by trying every threshold, with the numbers of the draw."""
    asked = Guarantee(max_fpr=0.1, max_fnr=None)
    made = calibrate(
        NORMAL, ANOMALOUS, asked, normal_weights=(0.8 * WEIGHTS, WEIGHTS), weight_bound=3, seed=0
    )
    numbers = 3.0 * Draws(3.0, 0).numbers(0, NORMAL.size)
    lower, upper = numbers < 0.8 * WEIGHTS, numbers < WEIGHTS
    for threshold in sorted(nextafter(score, inf) for score in NORMAL.tolist()):
        errors = int((upper & (threshold <= NORMAL)).sum())
        if cdf_at_most(errors, errors + int((lower & (threshold > NORMAL)).sum()), 0.1, 0.05):
            break
    assert made.thresholds.alarm_from == threshold
