"""The watch against a second implementation, from the equations of the theory alone, in 40 digits."""

from collections.abc import Sequence
from itertools import product
from math import comb, inf, nextafter

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import beta

from pac_wrap import (
    Curve,
    Guarantee,
    InputError,
    LabelNoise,
    Monitor,
    TotalVariation,
    calibrate,
    certify_curve,
)
from support.slow import slow_but

ROOT = 2**0.5


def starts(n: int) -> list[tuple[int, mp.mpf]]:
    """Eqs. (82) and (83): where bets are placed, and with which weight."""
    found: list[tuple[int, mp.mpf]] = []
    at = 0
    while at <= n:
        found.append((at, mp.mpf(1) / ((len(found) + 1) * (len(found) + 2))))
        at += max(32, at // 128)
    return found


def rates(e: float) -> list[mp.mpf]:
    """Those that are bet on: in equal steps of the logarithm of the odds up to .95, a factor of 2^.5 each."""
    odds = mp.mpf(e) / (1 - mp.mpf(e))
    steps = max(1, min(24, int(mp.floor(mp.log(19 / odds, ROOT))))) if odds < 19 else 1
    apart = max(mp.mpf(ROOT), mp.root(19 / odds, steps))
    return [odds * apart**step / (1 + odds * apart**step) for step in range(1, steps + 1)]


def started_again(factors: Sequence[Sequence[mp.mpf]]) -> list[mp.mpf]:
    """Eq. (82) without W: the mean over bets, whose factors of all points these are, after each point."""
    n = len(factors[0])
    heights = [mp.mpf(0)] * n
    for bet in factors:
        running: list[tuple[mp.mpf, mp.mpf]] = []
        left, placed = mp.mpf(1), dict(starts(n))
        for point, factor in enumerate(bet):
            if point in placed:
                running.append((placed[point], mp.mpf(1)))
                left -= placed[point]
            running = [(weight, wealth * factor) for weight, wealth in running]
            heights[point] += left + sum(weight * wealth for weight, wealth in running)
    return [height / len(factors) for height in heights]


def wealth_of_rate(labels: Sequence[int], e: float) -> list[mp.mpf]:
    """Eqs. (81) and (82) after each label."""
    limit = mp.mpf(e)
    bets = [[rate / limit if one else (1 - rate) / (1 - limit) for one in labels] for rate in rates(e)]
    powers, others = ([base**i for i in range(len(labels) + 2)] for base in (limit, 1 - limit))
    found = []
    for n, again in enumerate(started_again(bets), start=1):
        k = sum(labels[:n])
        tail = sum(comb(n + 1, i) * powers[i] * others[n + 1 - i] for i in range(k + 1))
        mass = comb(n, k) * powers[k] * others[n - k]
        found.append(tail / ((1 - limit) * (n + 1) * mass) / 2 + again / 2)
    return found


@pytest.mark.parametrize(
    ("ceiling", "rate", "seed"),
    slow_but(
        3,
        [(0.05, 0.2, 2), (0.001, 0.02, 3), (0.96, 0.99, 6), (0.05, 0.05, 1), (0.3, 0.5, 4), (0.9, 0.97, 5)],
        several=True,
    ),
)
def test_wealth_and_alarm_of_a_promise(ceiling: float, rate: float, seed: int) -> None:
    certificate = calibrate(range(5000), range(6000, 6500), Guarantee(max_fpr=ceiling, max_fnr=None))
    labels = (np.random.default_rng(seed).random(140) < rate).astype(int).tolist()
    with mp.workdps(40):
        expected = wealth_of_rate(labels, ceiling)
        first = next((n for n, height in enumerate(expected, start=1) if height >= 20), None)
        monitor = Monitor(certificate, alpha=0.05)
        for n, label in enumerate(labels):
            monitor.update([label], [0])
            assert monitor.watches[0].log_evidence == pytest.approx(float(mp.log(expected[n])), abs=1e-9)
    assert (None if monitor.alarm is None else monitor.alarm.row) == first


def test_bets_are_placed_again_where_the_theory_says() -> None:
    """Eq. (83), also where a 128th of all points is more than 32."""
    certificate = calibrate(range(5000), range(6000, 6500), Guarantee(max_fpr=0.05, max_fnr=None))
    monitor = Monitor(certificate)
    for n in (32, 33, 5_000, 50_000):
        monitor.update(np.zeros(n - monitor.rows, dtype=int), np.zeros(n - monitor.rows))
        watch, placed = monitor.watches[0], [at for at, _ in starts(2 * n) if at < n]
        assert (watch.starts, watch.following) == (len(placed), placed[-1] + max(32, placed[-1] // 128))


def edge(curve: Curve, scores: np.ndarray, level: float, *, normal: bool) -> float:
    """The threshold at which the band of a class keeps a level, from the curve's own bounds."""
    if normal:
        return min(t for t in (nextafter(s, inf) for s in scores.tolist()) if curve.fpr(t) <= level)
    return max(float(t) for t in scores if curve.fnr(float(t)) <= level)


def staked(curve: Curve, low: float, high: float, part: float, scores: np.ndarray) -> list[mp.mpf]:
    """Eq. (91): the factor of each point, which wins between the thresholds and loses outside."""
    a, b = 1 - mp.mpf(curve.fpr(low)), 1 - mp.mpf(curve.fnr(high))
    stake = mp.mpf(part) * min(a / (1 - a), b / (1 - b))
    lost = 1 - stake * (1 - a) / a, 1 - stake * (1 - b) / b
    return [lost[0] if s < low else lost[1] if s >= high else 1 + stake for s in scores]


def test_wealth_of_scores() -> None:
    """Eqs. (90) and (91): every pair of thresholds, every stake."""
    rng = np.random.default_rng(3)
    normal, anomalous = rng.normal(size=800), rng.normal(5, 1, size=700)
    curve, certificate = certify_curve(normal, anomalous), calibrate(normal, anomalous)
    monitor = Monitor(certificate, curve)
    scores = rng.normal(np.where(rng.random(70) < 0.3, 5.0, 0.6))
    levels = (0.01, 0.03, 0.08, 0.2, 0.4)
    lows = [edge(curve, normal, level, normal=True) for level in levels]
    highs = [edge(curve, anomalous, level, normal=False) for level in levels]
    with mp.workdps(40):
        bets = [
            staked(curve, low, high, part, scores)
            for low, high, part in product(lows, highs, (0.5, 0.2, 0.08, 0.03))
            if low < high  # else nothing lies between
        ]
        expected = started_again(bets)
        for n, score in enumerate(scores):
            monitor.update(certificate.verdicts([score]), scores=[score])
            watch = monitor.watches[-1]
            assert watch.name == "scores"
            assert watch.log_evidence == pytest.approx(float(mp.log(expected[n])), abs=1e-9)
    assert watch.delta == pytest.approx(0.1)


def test_what_is_allowed_of_undecided_points() -> None:
    """Eq. (88), with exact bounds from outside."""
    rng = np.random.default_rng(5)
    normal, anomalous = rng.normal(size=900), rng.normal(1.5, 1, size=700)
    asked = Guarantee(max_fpr=0.05, max_fnr=0.08, delta_fpr=0.03, delta_fnr=0.02)
    certificate = calibrate(normal, anomalous, asked)
    watch = next(one for one in Monitor(certificate).watches if one.name == "undecided")
    crossed = int((normal >= certificate.rule.normal_below).sum())
    short = int((anomalous < certificate.rule.anomaly_from).sum())
    bounds = beta.isf(0.03, crossed + 1, 900 - crossed), beta.isf(0.02, short + 1, 700 - short)
    assert watch.ceiling == pytest.approx(max(bounds), abs=1e-9)
    assert watch.delta == pytest.approx(0.03 + 0.02)


def test_labels_that_may_be_wrong_may_show_more_errors_than_there_are() -> None:
    """Eq. (76): .05 of contaminated points, and .02 of the anomalies lost."""
    noise = LabelNoise(0.05), LabelNoise(0.05, 0.02)
    asked = Guarantee(max_fpr=0.05, max_fnr=0.1, label_noise=noise)
    found = Monitor(calibrate(range(1000), range(2000, 3000), asked)).watches
    assert [watch.ceiling for watch in found] == pytest.approx([0.0975, 0.05 + 0.95 * 0.1 / 0.98])


def test_labels_that_may_show_any_share_of_errors_are_not_watched() -> None:
    """Eq. (76) is 1 there."""
    noise = LabelNoise(lost=0.45)
    asked = Guarantee(max_fpr=0.6, max_fnr=0.05, label_noise=(noise, None))
    found = Monitor(calibrate(range(1000), range(2000, 3000), asked)).watches
    assert [(watch.name, watch.alpha) for watch in found] == [("FNR", 0.01)]
    alone = Guarantee(max_fpr=0.6, max_fnr=None, label_noise=noise)
    with pytest.raises(InputError, match="so nothing can be monitored; ask for lower ceilings"):
        Monitor(calibrate(range(1000), range(2000, 3000), alone))


def test_what_is_allowed_of_undecided_points_has_the_room_that_there_is_for_shift() -> None:
    """Eqs. (71) and (88): what either class shows, and the distance besides."""
    rng = np.random.default_rng(5)
    normal, anomalous = rng.normal(size=900), rng.normal(1.5, 1, size=700)
    for shift in ((TotalVariation(0.02), None), (None, TotalVariation(0.02))):
        # the class that may shift is the one of which more is undecided
        ceilings = (0.15, 0.02) if shift[1] is None else (0.05, 0.08)
        certificate = calibrate(normal, anomalous, Guarantee(*ceilings, shift=shift))
        watch = next(one for one in Monitor(certificate).watches if one.name == "undecided")
        crossed = int((normal >= certificate.rule.normal_below).sum())
        short = int((anomalous < certificate.rule.anomaly_from).sum())
        bounds = beta.isf(0.05, crossed + 1, 900 - crossed), beta.isf(0.05, short + 1, 700 - short)
        room = [0.0 if one is None else 0.02 for one in shift]
        assert watch.ceiling == pytest.approx(max(bounds[0] + room[0], bounds[1] + room[1]), abs=1e-9)
