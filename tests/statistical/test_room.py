"""Room for shift and wrong labels, and weights: exact on every small population, and simulated where not."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    KL,
    Algorithm1,
    ChiSquared,
    DensityRatio,
    Guarantee,
    Hold,
    LabelNoise,
    Raise,
    TotalVariation,
    calibrate,
)
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import Promise
from pac_wrap.method.strategies.looks import Looks
from statistical.claims import assert_at_most, assert_power
from statistical.enumeration import PARTS, Answers, Flags, Side, answers, masses
from support.slow import slow_but

ROOMS: list[dict[str, Any]] = [
    {"shift": TotalVariation(0.1)},
    {"shift": DensityRatio(1.5)},
    {"shift": (KL(0.05), ChiSquared(0.1))},
    {"label_noise": LabelNoise(0.2, 0.05)},
    {"shift": (DensityRatio(1.2), None), "label_noise": (None, LabelNoise(0.1, 0.02))},
]
STRATEGIES: list[str | Overlap] = [
    "abstain",
    Raise(highest=0.95),
    Hold("fnr"),
    Hold("fpr"),
    Algorithm1(step=0.15),
    Looks(every=1, up_to=6),
]


def exceeds(answer: Answers, promise: Promise, verdict: int, side: Side) -> Flags:
    """Return whether the worst distribution within the room exceeds a ceiling, per population and samples.

    The worst one is attained: `tests/method/room`. It exceeds the ceiling exactly if the population that
    calibrates exceeds what the ceiling leaves at calibration.
    """
    worst = np.array(
        [
            promise.afterwards(part / PARTS) if part else promise.afterwards(1e-300)
            for part in range(PARTS + 1)
        ]
    )
    return np.asarray(worst[masses(answer.verdicts == verdict)] > answer.ceilings(side) * (1.0 + 1e-12))


def name(one: object) -> str:
    return "+".join(one) if isinstance(one, dict) else str(getattr(one, "word", one))


# every strategy meets every room in the slow run, and one of them in the quick one
PAIRS = [(STRATEGIES[i], ROOMS[(i + j) % 5]) for j in (0, 2, 1, 3, 4) for i in range(6)]


@pytest.mark.parametrize(
    ("overlap", "room"),
    slow_but(6, PAIRS, several=True),
    ids=name,
)
def test_no_strategy_breaks_its_ceilings_more_often_under_the_worst_shift(
    overlap: str | Overlap, room: dict[str, Any]
) -> None:
    asked = Guarantee(0.62, 0.55, 0.32, 0.35, **room)
    answer = answers(4, 2, asked, overlap)
    fpr, fnr = asked.promises
    alarms, misses = exceeds(answer, fpr, 1, "fpr"), exceeds(answer, fnr, 0, "fnr")
    assert answer.worst(answer.count_alarms(alarms)) <= Fraction(0.32)
    assert answer.worst(answer.count_misses(misses)) <= Fraction(0.35)
    # and there is something to break
    certified = answer.read(lambda certificate: not certificate.uncertified)
    assert certified.any()


def test_without_room_the_same_shift_breaks_the_promise() -> None:
    """The test above can fail: certificates without room, judged after the shift, fail too often."""
    plain = answers(4, 3, Guarantee(0.62, 0.55, 0.32, 0.35))
    judged = Guarantee(0.62, 0.55, 0.32, 0.35, shift=DensityRatio(2.5)).promises[0]
    found = plain.worst(plain.count_alarms(exceeds(plain, judged, 1, "fpr")))
    assert found > Fraction(0.32)


def survivors_break(weights: Any, trials: int, n: int, seed: int) -> int:
    """Return how often the FPR under Q exceeds its ceiling: P uniform on (0, 1), Q with density 2x."""
    random = np.random.default_rng(seed)
    asked, broken = Guarantee(0.3, None, 0.2), 0
    for trial in range(trials):
        scores = random.random(n)
        certificate = calibrate(
            scores, [], asked, normal_weights=weights(scores), weight_bound=2.0, seed=trial
        )
        threshold = certificate.thresholds.alarm_from
        assert threshold is not None
        broken += 1.0 - min(1.0, threshold) ** 2 > 0.3
    return broken


@pytest.mark.parametrize(
    "weights",
    [
        pytest.param(lambda x: 2 * x, id="known", marks=pytest.mark.slow),
        pytest.param(lambda x: (1.9 * x, np.minimum(2.0, 2.1 * x)), id="intervals"),
    ],
)
def test_weights_keep_the_ceiling_after_the_shift(weights: Any) -> None:
    trials = 1500
    assert_at_most(survivors_break(weights, trials, 40, 0), trials, 0.2)
    # equal weights are none, and break it: nearly always, as FPR 0.3 under P is 0.51 under Q
    assert_power(trials, 0.2, 0.3, at_most=True)


def break_of_two_weights(trials: int, n: int, weight: float, seed: int | None) -> int:
    """Return how often the FPR under Q, 0.052, is certified as at most 0.05.

    The likely points are errors with a small weight, so what is certified rests on few coins.
    """
    random, share = np.random.default_rng(0), 0.052
    likely = share / (share + weight * (1.0 - share))
    asked, broken = Guarantee(0.05, None), 0
    for _ in range(trials):
        scores = (random.random(n) < likely).astype(float)
        weights = np.where(scores == 1.0, weight, 1.0)
        made = calibrate(scores, [], asked, normal_weights=weights, weight_bound=1.0, seed=seed)
        threshold = made.thresholds.alarm_from
        assert threshold is not None
        broken += threshold <= 1.0
    return broken


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
@pytest.mark.parametrize(("n", "weight"), slow_but(1, [(2635, 0.00316), (2500, 0.004)], several=True))
def test_no_seed_that_everybody_knows_decides_which_points_are_kept(n: int, weight: float) -> None:
    trials = 300
    assert_at_most(break_of_two_weights(trials, n, weight, None), trials, 0.05)
    # a true rate of 0.2 would be seen; the seed 0, for which these two were found, breaks it nearly always
    assert_power(trials, 0.05, 0.2, at_most=True)
    assert break_of_two_weights(trials, n, weight, 0) > 0.9 * trials


def test_without_weights_the_shift_breaks_the_ceiling() -> None:
    trials = 300
    assert survivors_break(lambda x: np.ones_like(x), trials, 40, 1) > 0.5 * trials
