"""Whether a ceiling is exceeded is one question with one answer: exit code, terminal and reports."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pac_wrap import Certificate, Guarantee, VacuousWarning, calibrate, calibrate_classes
from pac_wrap.method.metrics import Metrics, all_exceeded, measured_kinds, metrics_of
from pac_wrap.method.promise import Label
from pac_wrap.report.account import account_of
from pac_wrap.report.render import as_json, html, markdown, terminal
from pac_wrap.report.results import account_of_evaluation
from pac_wrap.report.sentences import sides_of
from pac_wrap.tails import Rate
from support.exceeded import exceeded, is_exceeded
from support.shell import invoke, text_of, write
from support.strategies import exact_tail

NORMAL, ANOMALOUS = np.arange(100.0), np.arange(200.0, 300.0)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
# of 100 points against 0.05: P(X >= 10) = .028, enough for one ceiling and not for two, P(X >= 11) = .012
COUNTS = [(5, False), (10, False), (11, True)]


def measured(alarms: int, misses: int = 0) -> Metrics:
    return metrics_of(np.array([[100 - alarms, alarms, 0], [misses, 100 - misses, 0]]))


@given(st.integers(1, 60), st.floats(0.001, 0.999), st.data())
def test_it_is_the_exact_one_sided_test_at_5_percent(n: int, rate: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    chance = 1 - exact_tail(errors - 1, n, rate) if errors else 1
    assert is_exceeded(rate, Rate(errors, n, 0.0, 1.0)) == (chance <= Fraction(0.05))


def test_nothing_is_exceeded_without_points_or_without_a_promise() -> None:
    assert not is_exceeded(0.05, Rate(0, 0, 0.0, 1.0))
    assert not is_exceeded(None, Rate(10, 10, 0.7, 1.0))


def test_a_promise_that_is_just_kept_is_called_broken_in_one_of_twenty_at_most() -> None:
    """Every count that is likely at all, with its exact chance at the ceiling."""
    called = [count for count in range(61) if is_exceeded(0.05, Rate(count, 400, 0.0, 1.0))]
    assert 0.03 < binom.pmf(called, 400, 0.05).sum() <= 0.05


@pytest.mark.parametrize(("count", "broken"), COUNTS)
def test_every_place_says_the_same(count: int, broken: bool) -> None:
    for name, metrics in (("FPR", measured(count)), ("FNR", measured(0, count))):
        account = account_of(CERTIFICATE, NORMAL, ANOMALOUS, metrics=metrics)
        assert exceeded(metrics, Guarantee()) == ((name,) if broken else ())
        assert ("exceeded" in text_of(terminal(account_of_evaluation(CERTIFICATE, metrics)))) == broken
        finding = json.loads(as_json(account))["held_out"]["findings"][name.lower()]
        assert ("significantly above" in finding) == broken
        # a page takes a second to draw
        for text in (markdown(account), *([html(account)] if count == 11 else [])):
            assert ("significantly above the ceiling" in text) == broken
            assert ("Do not rely on the promise" in text) == broken


@pytest.mark.parametrize(("count", "broken"), COUNTS)
def test_the_exit_code_says_the_same(count: int, broken: bool, tmp_path: Path) -> None:
    CERTIFICATE.save(tmp_path / "certificate.json")
    rows = [f"{'500' if i < count else '0'},0" for i in range(100)] + ["500,1"] * 100
    table = write(tmp_path / "new.csv", "\n".join(["score,label", *rows]) + "\n")
    done = invoke("evaluate", tmp_path / "certificate.json", table, "--score", "score", "--label", "label")
    assert done.code == (1 if broken else 0)
    assert ("exceeded" in done.out) == broken


def holm(errors: list[int], sizes: list[int], ceilings: list[float]) -> list[int]:
    """Return the places that Holm's steps reject at 5 %, in fractions, by the definition."""
    chances = [
        1 - exact_tail(k - 1, n, rate) if k else Fraction(1)
        for k, n, rate in zip(errors, sizes, ceilings, strict=True)
    ]
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    kept = next((i for i, at in enumerate(order) if chances[at] > Fraction(1, 20) / (len(order) - i)), None)
    return order[:kept]


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(0.01, 0.5), st.floats(0.0, 1.0)), max_size=6))
def test_several_ceilings_are_one_family_by_holm(cases: list[tuple[int, float, float]]) -> None:
    sizes, ceilings = [n for n, _, _ in cases], [rate for _, rate, _ in cases]
    errors = [int(n * share) for n, _, share in cases]
    found = all_exceeded(errors, sizes, ceilings)
    assert sorted(found) == sorted(holm(errors, sizes, ceilings))


def test_what_has_no_points_or_no_ceiling_takes_no_part_of_the_5_percent() -> None:
    assert all_exceeded([10], [100], [0.05]) == [0]
    assert all_exceeded([10, 4], [100, 100], [0.05, 0.05]) == []
    assert all_exceeded([10, 0, 10], [100, 0, 100], [0.05, 0.05, np.nan]) == [0]
    assert all_exceeded([], [], []) == []


def test_one_point_is_enough_for_a_ceiling_that_is_low() -> None:
    assert all_exceeded([1, 0], [1, 1], [0.01, 0.01]) == [0]


def test_the_most_significant_comes_first_not_the_largest() -> None:
    # 4 of 10 is eight times the ceiling, and 1 in 1,000; 120 of 1,000 is 2.4 times, and far less likely
    assert all_exceeded([4, 120], [10, 1000], [0.05, 0.05]) == [1, 0]
    # both chances are 0 as doubles
    assert all_exceeded([5_000, 10_000], [10_000, 10_000], [0.01, 0.01]) == [1, 0]


def test_two_promises_that_are_just_kept_end_with_code_1_in_one_of_twenty_at_most() -> None:
    """Every pair of counts, with its exact chance at the ceilings: each at 5 % would say so in .0937."""
    n, counts = 400, range(61)
    pmf = binom.pmf(counts, n, 0.05)
    assert pmf.sum() > 1 - 1e-9
    over = np.array([[bool(all_exceeded([a, b], [n, n], [0.05] * 2)) for a in counts] for b in counts])
    alone = np.array([is_exceeded(0.05, Rate(a, n, 0.0, 1.0)) for a in counts])
    assert 0.035 < (pmf[:, None] * pmf * over).sum() <= 0.05
    assert (pmf[:, None] * pmf * (alone[:, None] | alone)).sum() == pytest.approx(0.0937, abs=1e-4)


def test_one_broken_promise_of_two_is_found_nearly_as_often_as_alone() -> None:
    """A rate of .1 under a ceiling of .05, beside one just kept, in 400 points each: .965 for .985."""
    n, counts = 400, range(81)
    broken, kept = binom.pmf(counts, n, 0.1), binom.pmf(counts, n, 0.05)
    found = np.array([[0 in all_exceeded([a, b], [n, n], [0.05] * 2) for b in counts] for a in counts])
    alone = np.array([is_exceeded(0.05, Rate(a, n, 0.0, 1.0)) for a in counts])
    assert (broken[:, None] * kept * found).sum() == pytest.approx(0.965, abs=5e-4)
    assert (broken * alone).sum() == pytest.approx(0.985, abs=5e-4)


KINDS = {f"kind {place:02}": np.arange(200.0, 400.0) for place in range(20)}


def test_twenty_kinds_and_the_fpr_that_are_just_kept_are_called_broken_in_one_of_twenty_at_most() -> None:
    """Exactly: one is if the largest of the 21 counts is large. Each at 5 % one would be in .66."""
    certificate = calibrate(NORMAL, KINDS)
    assert isinstance(certificate, Certificate)
    rng, n = np.random.default_rng(8), 400
    least = next(k for k in range(n) if all_exceeded([k] + [20] * 20, [n] * 21, [0.05] * 21))
    alone = next(k for k in range(n) if is_exceeded(0.05, Rate(k, n, 0.0, 1.0)))
    family, each = 1 - binom.cdf([least - 1, alone - 1], n, 0.05) ** 21
    assert 0.02 < family <= 0.05
    assert each > 0.5

    def counts(wrong: int, at: int) -> Any:
        return np.array([n - wrong, wrong, 0]) if at == 1 else np.array([wrong, n - wrong, 0])

    said = set()
    for row in rng.binomial(n, 0.055, (30, 21)).tolist():
        anomalous: dict[str | None, Any] = {
            kind: counts(k, 0) for kind, k in zip(KINDS, row[1:], strict=True)
        }
        found: dict[Label, Any] = {"normal": {None: counts(row[0], 1)}, "anomalous": anomalous}
        measured = measured_kinds(certificate.clauses, found)
        said.add(called := any(one.exceeded for one in measured))
        assert called == (max(row) >= least)
    assert said == {True, False}


def test_classes_are_one_family_too() -> None:
    rows = np.repeat(np.eye(3), 100, axis=0)
    certificate = calibrate_classes(rows, np.repeat([0, 1, 2], 100))
    wrong = rows.copy()
    wrong[:10, 0] = -1.0  # 10 of 100 against .05: .028, enough alone and too much for one of three
    over = [one.exceeded for one in certificate.evaluate(wrong, np.repeat([0, 1, 2], 100))]
    assert over == [False, False, False]
    wrong[:12, 0] = -1.0
    over = [one.exceeded for one in certificate.evaluate(wrong, np.repeat([0, 1, 2], 100))]
    assert over == [True, False, False]


def test_a_side_with_too_few_labels_takes_no_part_of_the_5_percent(tmp_path: Path) -> None:
    with pytest.warns(VacuousWarning):
        certificate = calibrate(NORMAL, ANOMALOUS[:20])
    assert [side.exceeded for side in sides_of(certificate, measured(10))] == [True, False]
    assert [side.exceeded for side in sides_of(CERTIFICATE, measured(10))] == [False, False]
