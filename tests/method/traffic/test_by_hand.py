"""Certificates of generated traffic are those that the equations of the theory give, counted by hand."""

import sys
from math import inf, nan
from typing import Any, Final

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, Reviews, calibrate_traffic
from support.slow import slow_but
from support.traffic_by_hand import Made, by_hand

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")
OPTIONS: Final = {
    "alarms": "max_alarms",
    "false alarms": "max_false_alarms",
    "FPR": "max_fpr",
    "precision": "min_precision",
    "FNR": "max_fnr",
}
WANTED: Final = (0.35, 0.5, 0.3, 0.3, 0.4)
EXTREME: Final = [-inf, -sys.float_info.max, 0.0, -0.0, 5e-324, 1.0, sys.float_info.max, inf]


def scores_of(rng: np.random.Generator, n: int) -> Any:
    """Return scores without ties, with many, at the ends of the doubles, or equal; some are missing."""
    kinds: list[Any] = [
        lambda: rng.normal(size=n),
        lambda: np.round(2.0 * rng.normal(size=n)) / 2.0,
        lambda: rng.choice(EXTREME, n),
        lambda: np.full(n, rng.choice(EXTREME)),
    ]
    scores = kinds[rng.integers(len(kinds))]()
    scores[rng.random(n) < rng.choice([0.0, 0.1])] = nan
    scores[rng.random(n) < rng.choice([0.0, 0.1])] = inf
    return scores


def drawn(rng: np.random.Generator, score_type: str) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """Return scores and reviews, what is promised of them, and what is given beside them."""
    n = int(rng.integers(1, rng.choice([4, 12, 40, 110])))
    with np.errstate(over="ignore"):
        scores = scores_of(rng, n).astype(score_type)
    seen = scores > rng.normal() if rng.random() < 0.4 else rng.random(n) < rng.random()
    reviews = np.where(seen & ~np.isnan(scores), rng.random(n) < rng.choice([0.1, 0.5, 0.9, 1.0]), nan)
    promised = dict.fromkeys((name for name, p in zip(OPTIONS, WANTED, strict=True) if rng.random() < p))
    if set(promised) <= {"FNR"}:
        promised["false alarms"] = None
    said: dict[str, Any] = {name: float(rng.choice([0.02, 0.1, 0.25, 0.5, 0.7, 0.9])) for name in promised}
    said |= {name: float(rng.choice([0.05, 0.1, 0.25, 0.5])) for name in ("delta", "delta_fnr")}
    if "FPR" in said:
        said["max_anomalies"] = float(rng.choice([0.05, 0.3]))
    beside: dict[str, Any] = {}
    if "FNR" in said and rng.random() < 0.5:
        said["audits"] = float(rng.choice([0.3, 0.6]))
        beside["audits"] = rng.random(n) < said["audits"]
        scores[np.isnan(scores)] = -inf
        both = beside["audits"] & (rng.random(n) < 0.7)
        return scores, np.where(both, rng.random(n) < 0.5, reviews), said, beside
    if "FNR" in said:
        anomalous = np.round(rng.normal(1.0, 1.5, rng.integers(0, 40)), rng.integers(0, 3))
        anomalous[rng.random(anomalous.size) < 0.1] = rng.choice([-inf, inf])
        beside = {"anomalous": anomalous.astype(score_type), "independent": bool(rng.integers(2))}
    if rng.random() < 0.3:
        said["mistaken"] = float(rng.choice([0.1, 0.3]))
    if rng.random() < 0.3 and "precision" not in said:
        said["rate"] = float(rng.choice([0.25, 0.5, 0.8]))
    return scores, reviews, said, beside


def asked_of(said: dict[str, Any]) -> Guarantee:
    """Return the guarantee that says so."""
    of_reviews = {
        name: said[name] for name in ("rate", "mistaken", "max_anomalies", "audits") if name in said
    }
    limits = {OPTIONS[name]: said[name] for name in OPTIONS if name in said}
    deltas = {"delta_fpr": said["delta"], "delta_fnr": said["delta_fnr"]}
    return Guarantee(**limits, **deltas, reviews=Reviews(**of_reviews) if of_reviews else None)


def check_same(made: Certificate, scores: Any, hand: Made) -> None:
    """Check each threshold and number of points, the rule with its verdicts and alarms, the confidence."""
    asked = [one for one in made.clauses if one.asked is not None]
    assert {one.asked.name: one.threshold for one in asked if one.asked} == hand.thresholds
    assert {one.asked.name: one.n for one in asked if one.asked} == hand.points
    low, high = hand.rule
    if made.score_type == "float64":
        assert (made.rule.normal_below, made.rule.anomaly_from) == hand.rule
    wide = scores.astype(np.float64)
    normal = (wide < low) | (low == inf)
    verdicts = np.where((wide >= high) & (high < inf), 1, np.where(normal & ~np.isnan(wide), 0, -1))
    assert made.verdicts(scores).tolist() == verdicts.tolist()
    assert made.traffic is not None
    assert (made.traffic.alarms, made.traffic.right, made.traffic.wrong) == hand.alarms
    assert made.confidence == pytest.approx(float(hand.confidence), abs=1e-9)


@pytest.mark.parametrize(("seed", "count"), slow_but(1, [(0, 100), (1, 1000), (2, 1000)], several=True))
@pytest.mark.parametrize("score_type", ["float64", "float32", "float16"])
def test_generated_traffic_is_certified_as_the_equations_say(score_type: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    kept = dict.fromkeys(("alarms", "false alarms", "FPR", "wrong alarms", "FNR"), 0)
    for _ in range(count):
        scores, reviews, said, beside = drawn(rng, score_type)
        made = calibrate_traffic(scores, reviews, asked_of(said), **beside)
        given = {name: getattr(one, "tolist", lambda one=one: one)() for name, one in beside.items()}
        check_same(made, scores, by_hand(scores.tolist(), reviews.tolist(), said, **given))
        assert Certificate.from_json(made.to_json()) == made
        beside.pop("independent", None)
        assert made.verify(scores, reviews=reviews, **beside)
        for one in made.promises:
            kept[one.name] += 1
    assert min(kept.values()) > 0


def test_precision_counts_points_without_a_score_last() -> None:
    asked = Guarantee(min_precision=0.25, delta_fpr=0.1)
    for missing in (nan, -inf):
        made = calibrate_traffic([*range(30, 0, -1), *[missing] * 10], [1.0] * 20 + [nan] * 20, asked)
        assert (made.fpr.n, made.traffic and made.traffic.alarms) == (30, 30)


def test_precision_of_scores_that_never_raise_an_alarm_is_not_claimed() -> None:
    """The threshold above the largest double is never reached, not even by inf."""
    scores = [inf] * 40 + [sys.float_info.max] * 40 + [0.0] * 40
    made = calibrate_traffic(scores, [1.0] * 40 + [nan] * 80, Guarantee(min_precision=0.5, delta_fpr=0.1))
    assert (made.rule.anomaly_from, made.fpr.n, made.promises) == (inf, 0, ())
    assert Certificate.from_json(made.to_json()) == made


@pytest.mark.parametrize(("alarms", "false_alarms"), [(0.3, 0.9), (0.9, 0.2)])
def test_precision_lies_above_all_other_thresholds(alarms: float, false_alarms: float) -> None:
    scores, reviews = [*range(300, 0, -1)], [1.0] * 60 + [nan] * 240
    said = {"alarms": alarms, "false alarms": false_alarms, "precision": 0.3, "delta": 0.1, "delta_fnr": 0.1}
    made = calibrate_traffic(scores, reviews, asked_of(said))
    check_same(made, np.array(scores, dtype=float), by_hand(scores, reviews, said))
    others = sorted(one.threshold or 0.0 for one in made.of("normal")[:2])
    precise = made.of("normal")[2].threshold
    assert precise is not None
    assert others[0] < others[1] <= precise < inf
    # a lower rank would be certified, and would break the other promise
    alone = calibrate_traffic(scores, reviews, asked_of({"precision": 0.3, "delta": 0.1, "delta_fnr": 0.1}))
    assert others[0] < (alone.fpr.threshold or 0.0) < others[1]


def test_ranks_at_inf_have_nothing_above_them_so_that_the_tests_of_precision_stop() -> None:
    scores, reviews = [inf] * 60 + [1.0] * 60 + [0.0] * 60, [1.0] * 120 + [nan] * 60
    said = {"precision": 0.5, "delta": 0.1, "delta_fnr": 0.1}
    made = calibrate_traffic(scores, reviews, asked_of(said))
    check_same(made, np.array(scores), by_hand(scores, reviews, said))
    assert (made.fpr.n, made.rule.anomaly_from, made.promises) == (0, inf, ())
