"""Q3: CPAD and PAC-Wrap on digits: sizes, exact and simulated violation rates, numbers of trials."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pac_wrap.base.arguments import Scores
from pac_wrap_paper.studies import q3, reproduce
from pac_wrap_paper.studies.charts import IntervalChart
from pac_wrap_paper.studies.printed import Q3_MEANS, Q3_VIOLATIONS
from pac_wrap_paper.studies.q3 import digits_population, looser_cpad_budget
from pac_wrap_paper.studies.scored import ScoredPopulation
from pac_wrap_paper.studies.study import Study
from statistical.claims import FALSE_ALARM, assert_power, assert_rate
from support.datafolder import needs

EPS = 0.05
METHODS = ("CPAD", "CPAD, one rank looser", "PAC-Wrap")
# n, errors allowed, in a large population, in this one
USPS = {
    ("CPAD", "FPR"): (865, 42, 0.46, 0.45),
    ("CPAD", "FNR"): (170, 7, 0.38, 0.37),
    ("CPAD, one rank looser", "FPR"): (865, 43, 0.525, 0.51),
    ("CPAD, one rank looser", "FNR"): (170, 8, 0.52, 0.51),
    ("PAC-Wrap", "FPR"): (865, 32, 0.042, 0.039),
    ("PAC-Wrap", "FNR"): (170, 3, 0.027, 0.025),
}
LOOKS = 18


@dataclass(frozen=True)
class Watched:
    """A study with the populations that it was made from, and what it told about its progress."""

    study: Study
    populations: dict[str, ScoredPopulation]
    shares: list[float]


@pytest.fixture(scope="module")
def watched() -> Watched:
    needs("usps", "mnist")
    populations: dict[str, ScoredPopulation] = {}
    shares: list[float] = []

    def population(name: str, *arguments: Any, **options: Any) -> ScoredPopulation:
        return populations.setdefault(name, digits_population(name, *arguments, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(q3, "digits_population", population)
        study = reproduce("q3", quick=True, progress=lambda share, text: shares.append(share))
    return Watched(study, populations, shares)


@pytest.fixture
def again(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the same populations again, so that only the trials cost time."""
    monkeypatch.setattr(q3, "digits_population", lambda name, *_, **__: watched.populations[name])


def rows(study: Study, name: str) -> list[dict[str, Any]]:
    return [dict(row) for table in study.tables if table.name == name for row in table.rows]


def violation(scores: Scores, n: int, k: int) -> float:
    """Return P(more than eps of the scores lie above the (k + 1)-th largest of n drawn from them)."""
    counts = np.unique(scores, return_counts=True)[1]
    above = scores.size - np.cumsum(counts)
    worst = np.flatnonzero(above / scores.size > EPS)[-1]
    return float(binom.cdf(k, n, above[worst] / scores.size))


def test_the_digits_are_as_many_as_in_the_paper(watched: Watched) -> None:
    usps, mnist = (watched.populations[name] for name in ("usps", "mnist"))
    assert usps.sizes == (865, 170)
    assert (usps.normal.size, usps.anomalous.size) == (865 + 706, 170 + 166) == (1571, 336)
    assert mnist.sizes == (17_790 // 3, 5_851 // 3)
    assert (mnist.normal.size, mnist.anomalous.size) == (mnist.sizes[0] + 2_947, mnist.sizes[1] + 974)


def test_usps_gives_the_violation_rates_that_follow_from_its_counts(watched: Watched) -> None:
    found = [row for row in rows(watched.study, "violations") if row["data"] == "usps"]
    assert len(found) == 12
    for row in found:
        n, allowed, large, exact = USPS[row["method"], row["rate"]]
        assert (row["n"], row["errors allowed"]) == (n, allowed)
        assert row["large population"] == pytest.approx(binom.cdf(allowed, n, EPS), rel=1e-9)
        assert row["large population"] == pytest.approx(large, abs=0.005)
        assert row["exact"] == pytest.approx(exact, abs=0.005)


def test_every_exact_rate_is_an_independent_binomial_tail(watched: Watched) -> None:
    for row in rows(watched.study, "violations"):
        population = watched.populations[row["data"]]
        scores = population.normal if row["rate"] == "FPR" else -population.anomalous
        assert row["exact"] == pytest.approx(violation(scores, row["n"], row["errors allowed"]), rel=1e-9)


def test_pac_wrap_keeps_its_confidence_and_cpad_does_not_aim_at_it(watched: Watched) -> None:
    for row in rows(watched.study, "violations"):
        if row["method"] == "PAC-Wrap":
            assert row["exact"] <= row["large population"] <= EPS
        else:
            assert row["exact"] > 0.3


def test_every_simulation_agrees_with_its_exact_rate(watched: Watched) -> None:
    for row in rows(watched.study, "violations"):
        simulated, exact = row["simulated"], row["exact"]
        assert simulated.n == row["trials"]
        assert_rate(simulated.count, simulated.n, exact, FALSE_ALARM / LOOKS)
        if row["trials"] == 4000:
            assert_power(4000, exact, exact + 0.08, false_alarm=FALSE_ALARM / LOOKS)


def test_rates_are_near_their_ceiling_on_average_and_pac_wrap_is_below_it(watched: Watched) -> None:
    for row in rows(watched.study, "rates"):
        for rate in ("FPR", "FNR"):
            assert 0.015 < row[rate] < 0.055
            assert row["method"] != "PAC-Wrap" or row[rate] < EPS
        printed = Q3_MEANS.get(row["method"]) if row["data"] == "usps" else None
        assert (row["printed FPR"], row["printed FNR"], row["printed ambiguity"]) == (printed or (None,) * 3)


def test_usps_is_shown_with_the_papers_trials_and_with_more(watched: Watched) -> None:
    shown = [(row["data"], row["trials"], row["method"]) for row in rows(watched.study, "rates")]
    assert shown == [
        (data, trials, method)
        for data, trials in (("usps", 300), ("usps", 4000), ("mnist", 4000))
        for method in METHODS
    ]


@pytest.mark.usefixtures("again")
@pytest.mark.parametrize(("trials", "expected"), [(300, [300]), (50, [50, 300]), (1, [1, 300])])
def test_any_number_of_trials_stands_beside_the_papers_once(trials: int, expected: list[int]) -> None:
    study = q3.run(trials=trials, quick=True)
    shown = [row["trials"] for row in rows(study, "rates") if row["data"] == "usps"]
    assert shown == [count for count in expected for _ in METHODS]
    assert len(rows(study, "readings")) == 12
    (picture,) = study.charts
    assert isinstance(picture, IntervalChart)
    assert [len(bars) for _, bars in picture.groups] == [3, 3, 3, 3]
    for sentence in (*study.setting, *study.findings):
        assert "nan" not in sentence, sentence


@pytest.mark.usefixtures("again")
def test_a_seed_fixes_the_trials_and_another_one_changes_them() -> None:
    first, same, other = (q3.run(seed=seed, trials=200, quick=True) for seed in (0, 0, 1))
    assert first == same
    counts = [[row["simulated"].count for row in rows(study, "violations")] for study in (first, other)]
    assert counts[0] != counts[1]


def test_drawing_without_replacement_breaks_a_ceiling_less_often(watched: Watched) -> None:
    found = rows(watched.study, "readings")
    assert [row["replacement"] for row in found] == ["with", "without"] * 6
    for with_it, without in zip(found[::2], found[1::2], strict=True):
        assert (with_it["rate"], with_it["method"]) == (without["rate"], without["method"])
        assert without["exact"] < with_it["exact"]
        method = "PAC-Wrap" if with_it["method"] == "PAC-Wrap" else "CPAD"
        assert with_it["printed"] == Q3_VIOLATIONS[method][("FPR", "FNR").index(with_it["rate"])]


def test_the_printed_intervals_of_pac_wrap_fit_better_without_replacement(watched: Watched) -> None:
    found = [row for row in rows(watched.study, "readings") if row["method"] == "PAC-Wrap"]
    for row in found:
        assert (row["p-value"] > 0.5) == (row["replacement"] == "without")
        assert (row["p-value"] < 0.02) == (row["replacement"] == "with")


@pytest.mark.parametrize("n", [0, 10, 18])
def test_too_few_points_for_cpad_have_a_looser_budget_of_none_missed(n: int) -> None:
    assert looser_cpad_budget(n, EPS) == 0


@pytest.mark.parametrize(("n", "budget"), [(19, 1), (170, 8), (865, 43), (100, 5)])
def test_the_looser_budget_is_the_floor_of_the_ceiling_times_one_more_point(n: int, budget: int) -> None:
    assert looser_cpad_budget(n, EPS) == budget == int(EPS * (n + 1) + 1e-9)


def test_progress_never_falls_and_stays_a_share(watched: Watched) -> None:
    assert watched.shares[0] == 0.0
    assert all(0.0 <= first <= second <= 1.0 for first, second in pairwise(watched.shares))
