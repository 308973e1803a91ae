"""Certificates of traffic in every format: each promise in its words, each number the one in the file."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, VacuousWarning, calibrate_traffic
from pac_wrap.method.robust.shift_and_noise import Reviews

RNG: Final = np.random.default_rng(0)
ANOMALY: Final = RNG.random(20_000) < 0.01
SCORES: Final = RNG.normal(3.0 * ANOMALY)
REVIEWS: Final = np.where(SCORES > 2.0, ANOMALY, np.nan)  # more than enough
FEW: Final = np.where(SCORES > 3.9, ANOMALY, np.nan)
SOME: Final = np.where(RNG.random(20_000) < 0.01, np.nan, SCORES)
COINS: Final = np.where(RNG.random(20_000) < 0.5, REVIEWS, np.nan)
OTHERS: Final = RNG.normal(3.0, size=500)
PER: Final = "20 per 50,000"


def made(found: Any = REVIEWS, scores: Any = SCORES, anomalous: Any = None, **asked: Any) -> Certificate:
    independent = asked.pop("independent", False)
    return calibrate_traffic(scores, found, Guarantee(**asked), anomalous=anomalous, independent=independent)


CASES: Final[dict[str, Callable[[], Certificate]]] = {
    "alarms": lambda: made(None, max_alarms="100 per 50,000"),
    "a share of alarms, some without scores": lambda: made(None, SOME, max_alarms=0.002),
    "false alarms": lambda: made(max_false_alarms=PER),
    "a share of false alarms": lambda: made(max_false_alarms=0.001),
    "few reviews": lambda: made(FEW, max_false_alarms=0.001),
    "no reviews": lambda: made(None, max_false_alarms=PER),
    "some without scores": lambda: made(
        np.where(np.isnan(SOME), np.nan, REVIEWS), SOME, max_false_alarms=PER
    ),
    "fpr": lambda: made(max_fpr=0.001, reviews=Reviews(max_anomalies=0.02)),
    "precision": lambda: made(min_precision=0.7),
    "no precision": lambda: made(None, min_precision=0.7),
    "all": lambda: made(
        max_alarms="500 per 50,000",
        max_false_alarms="50 per 50,000",
        max_fpr=0.001,
        min_precision=0.6,
        reviews=Reviews(max_anomalies=0.02),
    ),
    "fnr": lambda: made(anomalous=OTHERS, max_false_alarms=PER, max_fnr=0.1),
    "an independent fnr": lambda: made(
        anomalous=OTHERS, independent=True, max_false_alarms="200 per 50,000", max_fnr=0.5
    ),
    "too few for the fnr": lambda: made(anomalous=OTHERS[:10], max_false_alarms=PER, max_fnr=0.1),
    "too few points": lambda: made(REVIEWS[:100], SCORES[:100], max_false_alarms=PER),
    "too few for anything": lambda: made(
        None, SCORES[:100], max_alarms="500 per 50,000", max_false_alarms=PER, min_precision=0.6
    ),
    "coins": lambda: made(COINS, max_false_alarms="50 per 50,000", reviews=Reviews(rate=0.5)),
    "mistaken reviewers": lambda: made(max_false_alarms=PER, reviews=Reviews(mistaken=0.1)),
    "precision and mistaken reviewers": lambda: made(min_precision=0.6, reviews=Reviews(mistaken=0.1)),
    "one score": lambda: made(None, np.zeros(5000), max_false_alarms=0.01),
    "all anomalous": lambda: made(np.r_[np.ones(4999), np.nan], np.arange(5000), max_false_alarms=0.01),
    "infinite scores": lambda: made(
        None, np.r_[np.full(300, np.inf), np.arange(5000)], max_false_alarms=0.01
    ),
}
LACKING: Final = {name for name in CASES if name.startswith(("no precision", "too few"))}


@pytest.fixture(params=CASES)
def certificate(request: pytest.FixtureRequest) -> Certificate:
    if request.param not in LACKING:
        return CASES[request.param]()
    with pytest.warns(VacuousWarning, match="Nothing is promised"):
        return CASES[request.param]()


def test_every_certificate_is_read_again_and_counts_its_alarms(certificate: Certificate) -> None:
    assert Certificate.from_json(certificate.to_json()) == certificate
    seen = certificate.traffic
    assert seen is not None
    for one in certificate.clauses:
        if one.of.label == "alarms" and one.kept:
            assert one.n == seen.alarms
            assert one.errors is not None
            assert seen.alarms - seen.right <= one.errors


def test_without_a_threshold_no_point_raises_an_alarm() -> None:
    certificate = CASES["infinite scores"]()
    assert certificate.traffic is not None
    assert certificate.traffic.alarms == 0
    assert certificate.verdicts([np.inf]).tolist() == [0]


def test_coins_that_drew_nobody_yet_prove_nothing() -> None:
    asked = {"max_false_alarms": "50 per 50,000", "reviews": Reviews(rate=0.5)}
    nobody = made(None, **asked)
    assert nobody.rule.anomaly_from == np.inf
    # of equal scores, one that was reviewed says nothing about the others
    ties = np.repeat(np.arange(2000.0), 10)
    one = np.where(np.arange(20_000) == 19_990, 1.0, np.nan)
    assert made(one, ties, **asked).rule.anomaly_from > ties.max()
