"""A ceiling of missed anomalies from audits: the largest certified threshold, its file, the refusals."""

from fractions import Fraction
from functools import partial
from math import inf, nextafter
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from pac_wrap import (
    Certificate,
    Guarantee,
    InputError,
    Reviews,
    VacuousWarning,
    calibrate,
    calibrate_traffic,
)
from pac_wrap.method.calibrate import answered
from pac_wrap.method.promise import Assumption
from pac_wrap.method.source import PassSource
from pac_wrap.method.traffic.calibrate import PARTS, STATES, request_of
from support.resealed import said, tampered

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")
ASKED: Final = Guarantee(max_fnr=0.3, reviews=Reviews(audits=0.3))
Case = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def drawn(seed: int, n: int = 800, rate: float = 0.3, share: float = 0.3, *, rough: int = 1) -> Case:
    """Return scores with ties, reviews of audits and of the top that left some out, and the audits."""
    rng = np.random.default_rng(seed)
    anomaly = rng.random(n) < share
    scores = np.round(rng.normal(3.0 * anomaly), rough)
    scores[rng.random(n) < 0.02] = inf
    scores[rng.random(n) < 0.02] = -inf
    audits = rng.random(n) < rate
    seen = (audits | (scores > 1.0)) & (rng.random(n) < 0.98)
    return scores, np.where(seen, anomaly, np.nan), audits


def made_of(case: Case, asked: Guarantee = ASKED) -> Certificate:
    return calibrate_traffic(case[0], case[1], asked, audits=case[2])


def by_definition(case: Case, e: float, r: float, delta: float) -> tuple[float, int]:
    """Return the largest threshold that eq. (149) certifies, and how many anomalies count there."""
    scores, reviews, audits = case
    missed, found = scores[audits & (reviews != 0)], scores[reviews == 1]
    rho = r * e / (r * e + 1 - e)
    counts = {t: (int((missed < t).sum()), int((found >= t).sum())) for t in (*missed, *found, -inf)}
    top = max((t for t, (x, h) in counts.items() if binom.cdf(x, x + h, rho) <= delta), default=-inf)
    return top, sum(counts[top])


@pytest.mark.parametrize("rough", [0, 1, 9])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_largest_threshold_that_the_theorem_certifies(seed: int, rough: int) -> None:
    case = drawn(seed, rough=rough)
    made = made_of(case)
    top, n = by_definition(case, 0.3, 0.3, 0.05)
    assert top > -inf
    assert (made.fnr.threshold, made.fnr.n) == (top, n)
    assert made.rule.single
    assert made.rule.anomaly_from == top
    assert made.traffic is not None
    assert made.traffic.audits == case[2].sum()
    assert made.traffic.alarms == (case[0] >= top).sum()


def test_few_points_with_ties_and_infinities_are_as_the_theorem_says() -> None:
    rng, kept = np.random.default_rng(0), 0
    asked = Guarantee(max_fnr=0.6, delta_fnr=0.4, reviews=Reviews(audits=0.5))
    for _ in range(400):
        n = int(rng.integers(1, 9))
        scores = rng.choice([-inf, 0.0, 1.0, 2.0, inf], size=n)
        case = scores, rng.choice([0.0, 1.0, 1.0, np.nan], size=n), rng.random(n) < 0.5
        made = made_of(case, asked)
        assert (made.fnr.threshold, made.fnr.n) == by_definition(case, 0.6, 0.5, 0.4)
        assert Certificate.from_json(made.to_json()) == made
        kept += made.fnr.kept
    assert 100 < kept < 390


def test_alarms_beside_it_have_a_threshold_of_their_own() -> None:
    separated = set()
    for seed in range(40):
        case = drawn(seed, n=300 + 50 * seed)
        asked = Guarantee(max_alarms=0.02 + 0.01 * seed, max_fnr=0.3, reviews=ASKED.reviews)
        made = made_of(case, asked)
        alarm, clear = made.thresholds.alarm_from, made.thresholds.clear_below
        assert clear == made_of(case).fnr.threshold
        apart = made.fnr.kept and alarm is not None and clear is not None and clear >= alarm
        assert made.rule.single == apart
        if not apart and made.fnr.kept:
            assert (made.rule.normal_below, made.rule.anomaly_from) == (clear, alarm)
        assert Certificate.from_json(made.to_json()) == made
        separated.add(apart)
    assert separated == {True, False}


def test_deltas_add_up_and_the_tail_of_a_random_number_is_not_exact() -> None:
    case = drawn(1, n=4000)
    made = made_of(case, Guarantee(max_alarms=0.9, max_fnr=0.3, reviews=ASKED.reviews))
    alarms = made.confidences["alarms"]
    assert made.confidences["FNR"] == pytest.approx(0.95, abs=1e-12)
    assert made.confidence == pytest.approx(alarms - 0.05, abs=1e-12)
    assert Assumption.AUDITED in made.assumptions
    assert Assumption.ANOMALIES not in made.assumptions


@pytest.mark.parametrize("seed", range(6))
def test_more_found_normal_or_anomalous_never_lowers_it_and_less_caught_never_raises_it(seed: int) -> None:
    scores, reviews, audits = drawn(seed)
    rng, before = np.random.default_rng(seed), made_of((scores, reviews, audits)).fnr.threshold or 0.0
    for wanted, now, rises in ((audits & ~(reviews >= 0), 0.0, True), (reviews == 1, np.nan, False)):
        for place in rng.permutation(np.flatnonzero(wanted))[:5]:
            other = reviews.copy()
            other[place] = now
            after = made_of((scores, other, audits)).fnr.threshold or 0.0
            assert after >= before if rises else after <= before


@pytest.mark.parametrize("promises", [{}, {"max_alarms": 0.1}, {"min_precision": 0.6}, {"max_fpr": 0.1}])
def test_a_file_brings_it_back_and_its_points_verify_it(promises: dict[str, Any]) -> None:
    case = drawn(3, n=3000)
    reviews = Reviews(audits=0.3, max_anomalies=0.4 * ("max_fpr" in promises))
    made = made_of(case, Guarantee(**promises, max_fnr=0.3, reviews=reviews))
    read = Certificate.from_json(made.to_json())
    assert read == made
    assert read.guarantee.promises == made.guarantee.promises
    order = np.random.default_rng(0).permutation(case[0].size)
    scores, seen, audits = case[0][order], case[1][order], case[2][order]
    assert read.verify(scores, reviews=seen, audits=audits)
    unseen = np.where(np.arange(seen.size) == np.flatnonzero(seen == 1)[0], np.nan, seen)
    assert "anomalous." in str(read.verify(scores, reviews=unseen, audits=audits))
    assert "digest" in str(read.verify(scores, reviews=seen, audits=~audits & (np.arange(3000) < 1400)))


def test_narrow_scores_are_rounded_once() -> None:
    scores, reviews, audits = drawn(5, rough=9)
    made = calibrate_traffic(scores.astype(np.float32), reviews, ASKED, audits=audits)
    assert made.score_type == "float32"
    assert Certificate.from_json(made.to_json()) == made
    assert made.verify(scores, reviews=reviews, audits=audits)


def test_passes_over_six_states_give_the_certificate_of_memory() -> None:
    scores, reviews, audits = case = drawn(6)
    states = np.where(np.isnan(reviews), 2, reviews) + 3 * audits
    passes: list[Any] = []

    class Pass:
        score_type: Final = "float64"

        def __call__(self, task: Any) -> Any:
            passes.append(task)
            return task(*(scores[states == place] for place in range(6)))

    source = PassSource(Pass(), dict.fromkeys(STATES))
    asked = Guarantee(max_alarms=0.2, max_fnr=0.3, reviews=ASKED.reviews)
    request = request_of(asked, 0, [], independent=False)
    assert source.answer(PARTS, partial(answered, request)) == made_of(case, asked)
    assert len(passes) < 8


def test_without_enough_anomalies_it_says_how_many_are_missing() -> None:
    case = drawn(0, n=60, share=0.2)
    with pytest.warns(VacuousWarning, match="caught anomalies are too few, .* about .* audits, not"):
        made = made_of(case)
    assert made.fnr.n == (case[1] == 1).sum()
    assert made.rule.normal_below == -inf
    assert not made.promises
    nobody = np.zeros(60, dtype=bool)
    with pytest.warns(VacuousWarning, match="0 caught anomalies are too few, 25 are needed[.]"):
        made = made_of((case[0], np.full(60, np.nan), case[2]))
    assert made.fnr.n == 0
    with pytest.raises(InputError, match="0 of 60 points were drawn"):
        made_of((case[0], case[1], nobody))


def test_more_than_needed_is_certified_just_when_the_message_says() -> None:
    audits = np.resize([True, False, False], 400)
    for caught, kept in ((24, False), (25, True)):
        reviews = np.where(np.arange(400) < caught, 1.0, np.where(audits, 0.0, np.nan))
        made = calibrate_traffic(range(400, 0, -1), reviews, ASKED, audits=audits)
        assert made.fnr.kept is kept


SCORES, SEEN, AUDITS = drawn(2)
WRITTEN: Final = {"name": "reviews", "rate": 1.0, "mistaken": 0.0, "max_anomalies": 0.0, "audits": 0.3}
GROUPED: Any = {"audits": AUDITS, "by": SCORES}
BOTH: Final = Guarantee(max_alarms=0.1, max_fnr=0.1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Reviews(audits=1.0), "audits of the reviews must be at least 0 and below 1"),
        (lambda: Reviews(audits=0.1, mistaken=0.1), "no mistaken reviews"),
        (lambda: Reviews(audits=0.1, rate=0.5), "a rate of 1"),
        (lambda: Guarantee(max_alarms=0.1, reviews=Reviews(audits=0.1)), "for max_fnr; give it too"),
        (lambda: calibrate(SCORES, SCORES, ASKED), "calibrate_traffic"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED), "give both or neither"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, anomalous=[1.0]), "give both or neither"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, anomalous=[1.0], audits=AUDITS), "not from both"),
        (lambda: calibrate_traffic(SCORES, SEEN, Guarantee(max_alarms=0.1), audits=AUDITS), "both or"),
        (lambda: calibrate_traffic(SCORES, SEEN, BOTH, audits=AUDITS), "both or neither"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, **GROUPED), "remove by"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, audits=AUDITS[:9]), "audits"),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, audits=AUDITS * 2), "audits must be"),
        (
            lambda: calibrate_traffic(
                np.r_[SCORES, np.nan], np.r_[SEEN, np.nan], ASKED, audits=np.r_[AUDITS, True]
            ),
            "1 point of traffic without a score",
        ),
        (lambda: calibrate_traffic(SCORES, SEEN, ASKED, audits=SCORES > 0.5), "a coin of chance 0.3"),
    ],
)
def test_what_cannot_be_promised_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(
    "changes",
    [
        {"anomalous.n": 300},
        {"anomalous.budget": 20},
        {"anomalous.threshold": 0.0},
        {"anomalous.reviews.audits": 0.6},
        {"anomalous.reviews.audits": 0.0},
        {"anomalous.reviews.rate": 0.5},
        {"anomalous.ceiling": 0.29},
        {"anomalous.beyond": 0},
        {"normal.reviews": WRITTEN},
        {"traffic": None},
        {"traffic.audits": 10**6},
        {"traffic.found": 10},
        {"assumptions": [12, 13, 2]},
    ],
)
def test_a_clause_that_was_tampered_with_is_refused(changes: dict[str, Any]) -> None:
    made = made_of(drawn(4), Guarantee(max_alarms=0.1, max_fnr=0.3, reviews=ASKED.reviews))
    assert Certificate.from_json(made.to_json()) == made
    assert said(tampered(made, changes))  # one sentence says why


@pytest.mark.parametrize("audits", [1e-4, 0.05, 0.3, 0.999])
@pytest.mark.parametrize("ceiling", [1e-6, 0.02, 0.1, 0.5, 0.99])
def test_the_ceiling_at_calibration_is_rounded_down_and_comes_back(ceiling: float, audits: float) -> None:
    reviews, e, r = Reviews(audits=audits), Fraction(ceiling), Fraction(audits)
    exact, found = r * e / (r * e + 1 - e), reviews.before(ceiling)
    assert Fraction(found) <= exact < Fraction(nextafter(found, 1.0))
    assert reviews.after(found) <= ceiling <= reviews.after(nextafter(found, 1.0))
