"""Looking as labels come: one delta covers all looks, and is used up where the scores are at their worst."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pac_wrap import Guarantee, LabelUntil
from pac_wrap.method.rule import alarm_from
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.tails.levels import first_success, look_budgets
from statistical.claims import assert_at_most, assert_power, assert_rate

pytestmark = pytest.mark.slow

LOOKS = Looks(every=5, up_to=100)
ASKED = Guarantee(0.2, 0.2, 0.1, 0.1)


def ever(rate: float, delta: float | None = None) -> float:
    """Return the chance that some look at labels with this rate of errors is within its budget."""
    promise = ASKED.promises[0]
    local = LOOKS.local(promise) if delta is None else delta
    return float(first_success(rate, LOOKS.looks, look_budgets(promise.ceiling, local, LOOKS.looks)).sum())


def run(normal: np.ndarray, anomalous: np.ndarray, **options: float) -> LabelUntil:
    """Return what labels in this order come to, the anomalies first."""
    until = LabelUntil(ASKED, LOOKS.every, LOOKS.up_to, **options)
    until.add(anomalous, np.ones(anomalous.size, dtype=int))
    if not until.done:
        until.add(normal, np.zeros(normal.size, dtype=int))
    return until


def test_the_worst_scores_use_up_the_whole_delta() -> None:
    # every anomaly lies where a little more than a fifth of the normal scores begins: any success is false
    trials, edge = 800, 1.0 - (0.2 + 1e-9)
    rng = np.random.default_rng(61)
    broken = 0
    for _ in range(trials):
        until = run(rng.random(100), np.full(100, edge))
        assert until.done
        certificate = until.certificate
        assert certificate is not None
        broken += until.success
        assert not until.success or 1.0 - certificate.rule.anomaly_from > 0.2
    assert 0.088 < ever(0.2) <= 0.1
    assert_rate(broken, trials, ever(0.2 + 1e-9))
    # budgets of the full delta at each look would have been seen
    assert ever(0.2, 0.1) > 0.23
    assert_power(trials, ever(0.2), ever(0.2, 0.1))
    assert_power(trials, ever(0.2), 0.023)


@pytest.mark.parametrize(("distance", "digits"), [(1.5, 9), (2.0, 0)], ids=["continuous", "ties"])
def test_both_ceilings_hold_at_whatever_look_it_ends(distance: float, digits: int) -> None:
    trials, rng = 450, np.random.default_rng(62)
    population = np.sort(np.round(rng.normal(0.0, 1.0, 20_001), digits))
    false_alarms = misses = 0
    for _ in range(trials):
        until = LabelUntil(ASKED, LOOKS.every, LOOKS.up_to)
        labels = rng.random(400) < 0.5
        scores = rng.choice(population, 400)
        until.add(np.where(labels, distance - scores, scores), labels.astype(int))
        certificate = until.certificate
        assert certificate is not None
        false_alarms += np.mean(certificate.verdicts(population) == 1) > 0.2
        misses += np.mean(certificate.verdicts(distance - population) == 0) > 0.2
    assert_at_most(false_alarms, trials, 0.1)
    assert_at_most(misses, trials, 0.1)
    assert_power(trials, 0.1, 0.24, at_most=True)


@pytest.mark.parametrize("rate", [0.2 + 1e-9, 0.1])
def test_a_threshold_that_is_given_succeeds_as_often_as_the_walk_says(rate: float) -> None:
    trials, rng = 800, np.random.default_rng(63)
    successes = early = 0
    for _ in range(trials):
        until = run((rng.random(100) < rate).astype(float), np.ones(100), threshold=0.5)
        successes += until.success
        early += until.success and until.labels.normal <= 50
    promise = ASKED.promises[0]
    budgets = look_budgets(0.2, LOOKS.local(promise), LOOKS.looks)
    chances = first_success(rate, LOOKS.looks, budgets)
    assert_rate(successes, trials, float(chances.sum()))
    assert_rate(early, trials, float(chances[:10].sum()))
    assert_power(trials, float(chances.sum()), 0.25 * float(chances.sum()))


def test_labels_until_a_rate_of_two_percent_is_certified() -> None:
    trials, rng = 700, np.random.default_rng(64)
    stopped = []
    for _ in range(trials):
        until = LabelUntil(Guarantee(max_fpr=0.05, max_fnr=None), threshold=0.5)
        until.add((rng.random(2000) < 0.02).astype(float), np.zeros(2000, dtype=int))
        stopped.append(until.labels.normal)
    chances = first_success(0.02, range(20, 2001, 20), look_budgets(0.05, 0.0074044621, range(20, 2001, 20)))
    before, median = float(chances[:11].sum()), float(chances[:12].sum())
    assert before < 0.5 <= median
    assert_rate(sum(one <= 240 for one in stopped), trials, median)
    assert_power(trials, median, median - 0.16)


def test_every_order_of_a_tiny_population() -> None:
    # normal scores 1, 2, 3, 4 with equal chances, a ceiling of .4: a threshold of 3 or less breaks it, so the
    # walk counts scores of 3 and 4; the anomalies stand at 3
    asked, looks = Guarantee(0.4, 0.4, 0.3, 0.3), Looks(every=2, up_to=6)
    promise = asked.promises[0]
    budgets = look_budgets(0.4, looks.local(promise), looks.looks)
    some = kept = Fraction(0)
    for normal in product((1.0, 2.0, 3.0, 4.0), repeat=6):
        scores, weight = np.array(normal), Fraction(1, 4**6)
        thresholds = [
            alarm_from(scores[:n], None if budget < 0 else budget)
            for n, budget in zip(looks.looks, budgets, strict=True)
        ]
        some += weight * (min(thresholds) <= 3.0)
        until = LabelUntil(asked, looks.every, looks.up_to)
        until.add(np.append(np.full(6, 3.0), scores), np.append(np.ones(6), np.zeros(6)))
        certificate = until.certificate
        assert certificate is not None
        kept += weight * (certificate.rule.anomaly_from <= 3.0)
    # exactly the walk, and no more than what the ceiling itself would give
    assert float(some) == pytest.approx(first_success(0.5, looks.looks, budgets).sum())
    assert Fraction(0) < kept == some
    assert first_success(0.5, looks.looks, budgets).sum() <= first_success(0.4, looks.looks, budgets).sum()
    assert first_success(0.4, looks.looks, budgets).sum() <= 0.3
