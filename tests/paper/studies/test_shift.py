"""The shift study: the FNR promise holds without a shift and is lost with one, the FPR promise stays."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pac_wrap.base.arguments import Scores
from pac_wrap.method.metrics import ExactViolation
from pac_wrap.validation import exact_violation
from pac_wrap_paper.studies import reproduce, shift
from pac_wrap_paper.studies.charts import LineChart
from pac_wrap_paper.studies.study import Study
from statistical.claims import FALSE_ALARM, assert_power, assert_rate

EPS = 0.05
N = 1000
BUDGET = 38
GAMMAS = [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2]


@dataclass(frozen=True)
class Watched:
    """A study with the anomalies that calibrate and those that come, and what it told about its progress."""

    study: Study
    anomalies: list[tuple[Scores, Scores]]
    shares: list[float]


@pytest.fixture(scope="module")
def watched() -> Watched:
    anomalies: list[tuple[Scores, Scores]] = []
    shares: list[float] = []

    def exact(normal: Scores, anomalous: Scores, *arguments: Any, **options: Any) -> ExactViolation:
        if not any(arguments[1].tolerates.values()):
            anomalies.append((anomalous, options["future"][1]))
        return exact_violation(normal, anomalous, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shift, "exact_violation", exact)
        study = reproduce("shift", quick=True, progress=lambda share, text: shares.append(share))
    return Watched(study, anomalies, shares)


@pytest.fixture(scope="module")
def rows(watched: Watched) -> list[dict[str, Any]]:
    table, _ = watched.study.tables
    return [dict(row) for row in table.rows]


def test_the_shifts_are_those_of_the_paper(rows: list[dict[str, Any]]) -> None:
    assert [float(row["gamma"]) for row in rows] == GAMMAS


def test_without_a_shift_both_promises_are_kept(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    for rate in ("FPR", "FNR"):
        assert 0.03 < first[f"{rate} violated"] <= EPS
        # the (k + 1)-th of n points leaves so much beyond it on average
        assert first[f"average {rate}"] == pytest.approx((BUDGET + 1) / (N + 1), abs=0.001)


def test_every_exact_probability_is_an_independent_binomial_tail(
    watched: Watched, rows: list[dict[str, Any]]
) -> None:
    assert len(watched.anomalies) == len(rows)
    for row, (drawn, future) in zip(rows, watched.anomalies, strict=True):
        drawn = np.unique(drawn)
        missed = np.searchsorted(np.sort(future), drawn, side="left") / future.size
        least_bad = drawn[missed > EPS][0]
        share = np.mean(watched.anomalies[0][0] < least_bad)
        assert row["FNR violated"] == pytest.approx(binom.cdf(BUDGET, N, share), rel=1e-9)


def test_the_stronger_the_shift_the_more_often_the_fnr_is_violated(rows: list[dict[str, Any]]) -> None:
    violated = [row["FNR violated"] for row in rows]
    assert all(first < second for first, second in pairwise(violated))
    assert violated[1] > EPS
    assert violated[-1] > 0.999
    averages = [row["average FNR"] for row in rows]
    assert all(first < second for first, second in pairwise(averages))


def test_the_fpr_does_not_depend_on_the_shift(rows: list[dict[str, Any]]) -> None:
    assert len({row["FPR violated"] for row in rows}) == 1
    averages = [row["average FPR"] for row in rows]
    # standard deviation .006 of one rate, 4,000 of them in a mean
    assert max(averages) - min(averages) < 0.001
    for row in rows:
        one = row["FPR, one test set"]
        assert_rate(one.count, one.n, row["average FPR"], FALSE_ALARM)


def test_every_simulation_agrees_with_its_exact_probability(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        simulated, exact = row["FNR violated, simulated"], row["FNR violated"]
        assert simulated.n == 4000
        assert_rate(simulated.count, simulated.n, exact, FALSE_ALARM / len(rows))
        assert_power(
            4000, exact, exact + (0.08 if exact < 0.5 else -0.08), false_alarm=FALSE_ALARM / len(rows)
        )


def test_the_curves_are_those_of_the_one_test_set(watched: Watched, rows: list[dict[str, Any]]) -> None:
    (picture,) = watched.study.charts
    assert isinstance(picture, LineChart)
    assert list(picture.x) == GAMMAS
    for curve, rate in zip(picture.lines, ("FPR", "FNR"), strict=True):
        found = [row[f"{rate}, one test set"] for row in rows]
        assert list(zip(curve.values, curve.low, curve.high, strict=True)) == [
            (one.value, one.low, one.high) for one in found
        ]


def test_a_promise_that_tolerates_the_shift_holds_wherever_it_is_made(watched: Watched) -> None:
    _, table = watched.study.tables
    assert [float(str(row["gamma"])) for row in table.rows] == GAMMAS[1:]
    for row in table.rows:
        tolerating = [
            value for name, value in row.items() if name.startswith("tolerating") or name == "known weights"
        ]
        made = [value for value in tolerating if isinstance(value, float)]
        assert made
        assert max(made) <= EPS
        assert {value for value in tolerating if isinstance(value, str)} <= {"refused", "too few labels"}
        without = row["without tolerance"]
        assert isinstance(without, float)
        assert without > EPS
    assert any("tolerates the true shift" in text for text in watched.study.findings)


def test_the_weights_are_those_of_two_gaussians() -> None:
    """The bound is exceeded by as many future points as is said, and the weights have a mean of 1."""
    z = np.random.default_rng(0).normal(size=400_000)
    for gamma in (0.02, 0.2):
        d = shift._distance(gamma)
        weights, future = np.exp(d * z - d * d / 2), np.exp(d * (z + d) - d * d / 2)
        assert weights.mean() == pytest.approx(1.0, abs=0.01)
        assert np.mean(future > shift._bound(gamma)) == pytest.approx(shift.BEYOND, abs=0.0007)
        assert shift._tolerances(gamma)["chi-squared"].size == pytest.approx(np.var(weights), rel=0.05)


@pytest.mark.slow
def test_a_seed_fixes_the_study_and_another_one_changes_it() -> None:
    first, again, other = (reproduce("shift", seed=seed, trials=50, quick=True) for seed in (0, 0, 1))
    assert first == again
    assert first.tables != other.tables


def test_progress_never_falls_and_stays_a_share(watched: Watched) -> None:
    assert watched.shares[0] == 0.0
    assert all(0.0 <= first <= second <= 1.0 for first, second in pairwise(watched.shares))
