"""Q1: exact probabilities against an independent count, simulations against both, sizes as stated."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pac_wrap.base.arguments import Scores
from pac_wrap.validation import exact_violation
from pac_wrap_paper.studies import q1, reproduce
from pac_wrap_paper.studies.charts import IntervalChart
from pac_wrap_paper.studies.printed import Q1, Q1_TRIALS, count_behind
from pac_wrap_paper.studies.scored import (
    DETECTORS,
    ScoredPopulation,
    synthetic_population,
    thyroid_population,
)
from pac_wrap_paper.studies.study import Study
from statistical.claims import FALSE_ALARM, assert_power, assert_rate
from support.datafolder import needs

EPS = 0.05
SIZES = {
    ("synthetic", "FPR"): (1000, 1500, 2000),
    ("synthetic", "FNR"): (1000, 1500, 2000),
    ("thyroid", "FPR"): (136, 204, 272),
    ("thyroid", "FNR"): (80, 120, 160),
}
ENTRIES = 24
# the same 24 printed intervals every time
KNOWN_COUNT = cache(count_behind)


@dataclass(frozen=True)
class Watched:
    """A study with the populations that it was made from, and what it told about its progress."""

    study: Study
    populations: dict[tuple[str, str], ScoredPopulation]
    shares: list[float]


@pytest.fixture(scope="module")
def watched() -> Watched:
    needs("thyroid")
    populations: dict[tuple[str, str], ScoredPopulation] = {}
    shares: list[float] = []

    def synthetic(name: str, seed: int, **few: int) -> ScoredPopulation:
        return populations.setdefault(("synthetic", name), synthetic_population(name, seed, **few))

    def thyroid(name: str, seed: int) -> ScoredPopulation:
        return populations.setdefault(("thyroid", name), thyroid_population(name, seed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(q1, "synthetic_population", synthetic)
        patch.setattr(q1, "thyroid_population", thyroid)
        patch.setattr(q1, "count_behind", KNOWN_COUNT)
        study = reproduce("q1", quick=True, progress=lambda share, text: shares.append(share))
    return Watched(study, populations, shares)


def rows(study: Study, name: str) -> list[dict[str, Any]]:
    return [dict(row) for table in study.tables if table.name == name for row in table.rows]


def largest_budget(n: int) -> int:
    return max(k for k in range(n) if binom.cdf(k, n, EPS) <= EPS)


def violation(scores: Scores, n: int, k: int) -> float:
    """Return P(more than eps of the scores lie above the (k + 1)-th largest of n drawn from them)."""
    counts = np.unique(scores, return_counts=True)[1]
    above = scores.size - np.cumsum(counts)
    worst = np.flatnonzero(above / scores.size > EPS)[-1]
    return float(binom.cdf(k, n, above[worst] / scores.size))


def test_sizes_and_budgets_are_those_of_the_stated_protocol(watched: Watched) -> None:
    found = rows(watched.study, "violations")
    assert len(found) == ENTRIES
    for (data, rate), sizes in SIZES.items():
        for detector in ("isolation forest", "LOF"):
            mine = [
                row for row in found if (row["data"], row["detector"], row["rate"]) == (data, detector, rate)
            ]
            assert [row["calibration"] for row in mine] == ["50 %", "75 %", "100 %"]
            assert tuple(row["n"] for row in mine) == sizes
            assert [row["k*"] for row in mine] == [largest_budget(n) for n in sizes]
            assert tuple(row["printed"] for row in mine) == Q1[data, detector, rate]


def test_the_populations_are_calibration_and_test_points_together(watched: Watched) -> None:
    for (data, _), population in watched.populations.items():
        sizes = (population.normal.size, population.anomalous.size)
        assert sizes == ((12_000, 12_000) if data == "synthetic" else (906, 534))
        assert population.sizes == ((2000, 2000) if data == "synthetic" else (272, 160))
    assert len(watched.populations) == 4


def test_every_exact_probability_is_an_independent_binomial_tail_below_delta(watched: Watched) -> None:
    for row in rows(watched.study, "violations"):
        population = watched.populations[row["data"], row["detector"]]
        scores = population.normal if row["rate"] == "FPR" else -population.anomalous
        assert row["exact"] == pytest.approx(violation(scores, row["n"], row["k*"]), rel=1e-9)
        assert 0.01 < row["exact"] <= EPS


def test_ties_in_a_population_only_lower_the_probability(watched: Watched) -> None:
    tied = np.round(watched.populations["synthetic", "LOF"].normal, 1)
    assert np.unique(tied).size < 100
    exact = exact_violation(tied, tied, (1000, 1000)).fpr
    assert exact == pytest.approx(violation(tied, 1000, 38), rel=1e-9)
    assert exact < binom.cdf(38, 1000, EPS)


def test_every_simulation_agrees_with_its_exact_probability(watched: Watched) -> None:
    for row in rows(watched.study, "violations"):
        simulated, exact = row["simulated"], row["exact"]
        assert simulated.n == Q1_TRIALS
        assert_rate(simulated.count, simulated.n, exact, FALSE_ALARM / ENTRIES)
        assert_power(Q1_TRIALS, exact, exact + 0.035, false_alarm=FALSE_ALARM / ENTRIES)
        assert simulated.low <= simulated.value <= simulated.high


def test_the_other_reading_of_thyroid_draws_the_same_points_without_replacement(watched: Watched) -> None:
    found = [row for row in rows(watched.study, "readings") if row["data"] == "thyroid"]
    assert len(found) == 6
    for row in found:
        assert row["exact"] < row["as stated"]
        assert "without replacement" in row["other reading"]


def test_a_p_value_is_small_only_where_the_printed_intervals_lie_elsewhere(watched: Watched) -> None:
    for row in rows(watched.study, "readings"):
        for exact, p_value in ((row["as stated"], row["p-value"]), (row["exact"], row["its p-value"])):
            both = [row["printed, forest"], row["printed, LOF"]]
            if p_value < 0.001:
                assert not all(one.low <= exact <= one.high for one in both)
            if p_value > 0.2:
                assert all(one.low <= exact <= one.high for one in both)


def test_the_totals_are_over_the_six_rows_of_a_column(watched: Watched) -> None:
    totals = rows(watched.study, "totals")
    assert [(row["data"], row["detector"]) for row in totals] == list(product(q1.DATA, DETECTORS))
    for row in totals:
        assert row["degrees of freedom"] == 6
        assert (row["chi-squared as stated"] < row["its chi-squared"]) == (
            row["p-value as stated"] > row["its p-value"]
        ) or max(row["p-value as stated"], row["its p-value"]) < 1e-9


def test_progress_never_falls_and_stays_a_share(watched: Watched) -> None:
    assert watched.shares[0] == 0.0
    assert all(0.0 <= first <= second <= 1.0 for first, second in pairwise(watched.shares))


def test_the_picture_shows_every_entry_with_its_limit(watched: Watched) -> None:
    (picture,) = watched.study.charts
    assert isinstance(picture, IntervalChart)
    bars = [bar for _, group in picture.groups for bar in group]
    found = rows(watched.study, "violations")
    assert sorted((bar.exact, bar.value) for bar in bars if bar.exact is not None) == sorted(
        (row["exact"], row["simulated"].value) for row in found
    )
    assert picture.limit == EPS


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the synthetic populations small, for tests about seeds."""
    needs("thyroid")

    def population(name: str, seed: int, **_: int) -> ScoredPopulation:
        return synthetic_population(name, seed, n_train=300, n_test=1000)

    monkeypatch.setattr(q1, "synthetic_population", population)
    monkeypatch.setattr(q1, "count_behind", KNOWN_COUNT)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_seed_fixes_the_whole_study_and_another_one_changes_it() -> None:
    first, again, other = (q1.run(seed=seed, trials=200, quick=True) for seed in (0, 0, 1))
    assert first == again
    counts = [[row["simulated"].count for row in rows(study, "violations")] for study in (first, other)]
    assert counts[0] != counts[1]


@pytest.mark.usefixtures("small")
def test_one_trial_still_gives_whole_sentences() -> None:
    study = q1.run(seed=7, trials=1, quick=True)
    assert {row["simulated"].n for row in rows(study, "violations")} == {1}
    for sentence in (*study.setting, *study.findings):
        assert sentence.endswith("."), sentence
        assert "nan" not in sentence, sentence


@pytest.mark.parametrize("detector", ["isolation forest", "LOF"])
def test_a_synthetic_population_puts_anomalies_above_normal_points(detector: str) -> None:
    population = synthetic_population(detector, 0, n_train=500, n_test=500)
    assert population.normal.size == population.anomalous.size == 2500
    assert np.median(population.anomalous) > np.quantile(population.normal, 0.95)
    close = synthetic_population(detector, 0, margin=0.0, n_train=500, n_test=500)
    assert np.median(close.anomalous) < np.quantile(close.normal, 0.75)
