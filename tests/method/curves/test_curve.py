"""Curves: bounds with ties and infinities, certificates of any threshold, choices, files, and coverage."""

from itertools import pairwise
from math import inf, nextafter
from pathlib import Path
from sys import float_info
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import (
    Certificate,
    CertificateError,
    Curve,
    Guarantee,
    InputError,
    UpsideDownWarning,
    calibrate,
    certify_curve,
    certify_curve_chunks,
    certify_curve_labelled,
)
from pac_wrap.method.calibrate import Request
from pac_wrap.method.curves.band import Given, band_of
from pac_wrap.method.curves.curve import best, cells
from pac_wrap.tails.bounds import Budget
from statistical.claims import assert_at_most, assert_power, assert_rate
from support.examples import examples
from support.kept import kept as kept_by

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.UpsideDownWarning")
RNG = np.random.default_rng(7)
NORMAL, ANOMALOUS = RNG.normal(0, 1, 800), RNG.normal(2.5, 1, 300)
CURVE = certify_curve(NORMAL, ANOMALOUS)
# ties, both zeros, subnormal and extreme numbers, infinities
ODD = st.sampled_from(
    [-inf, -float_info.max, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0, 2.5, float_info.max, inf]
)
CLASSES = st.lists(ODD, min_size=1, max_size=14)


def bounds(normal: list[float], anomalous: list[float], threshold: float) -> tuple[float, float]:
    """Return both bounds by counting what the rule "anomaly from the threshold on" gets wrong."""
    if threshold == inf:  # never an anomaly
        return 0.0, 1.0
    alarms = sum(score >= threshold for score in normal)
    missed = sum(score < threshold for score in anomalous)
    fpr = float(band_of(len(normal), 0.05).of([alarms])[0])
    fnr = float(band_of(len(anomalous), 0.05).of([missed])[0])
    return fpr, (0.0 if threshold == -inf else fnr)


@given(CLASSES, CLASSES, ODD)
@settings(max_examples=examples(150), deadline=None)
def test_bounds_are_those_of_the_errors_that_the_rule_makes(
    normal: list[float], anomalous: list[float], threshold: float
) -> None:
    curve = certify_curve(normal, anomalous)
    expected = bounds(normal, anomalous, threshold)
    assert (curve.fpr(threshold), curve.fnr(threshold)) == expected
    assert (curve.fpr([threshold])[0], curve.fnr([threshold])[0]) == expected


@given(CLASSES, CLASSES, st.floats(allow_nan=False, allow_infinity=False) | ODD)
@settings(max_examples=examples(150), deadline=None)
def test_a_certificate_of_any_threshold_can_be_verified(
    normal: list[float], anomalous: list[float], threshold: float
) -> None:
    curve = certify_curve(normal, anomalous)
    fpr, fnr = curve.fpr(threshold), curve.fnr(threshold)
    if abs(threshold) == inf or min(fpr, fnr) == 1.0:
        with pytest.raises(InputError, match=r"finite number|neither rate"):
            curve.at(threshold)
        return
    certificate = curve.at(threshold)
    kept = Guarantee(fpr if fpr < 1 else None, fnr if fnr < 1 else None)
    assert kept_by(certificate) == certificate.guarantee == kept
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(normal[::-1], anomalous), str(certificate.verify(normal, anomalous))
    assert certificate == calibrate(normal, anomalous, Request(kept, Given(threshold)))
    assert certificate.verdicts(normal).tolist() == [int(score >= threshold) for score in normal]
    assert not certificate.empty


@pytest.mark.parametrize("scale", [1, 40])
def test_the_certificate_says_that_the_threshold_was_free(scale: int) -> None:
    curve = certify_curve(np.tile(NORMAL, scale), ANOMALOUS)
    certificate = curve.at(1.3)
    text = str(certificate)
    assert "chosen freely" in text
    assert "anomaly from 1.3 on" in text
    explained = " ".join(certificate.overlap.explanation(certificate.claim))
    assert "after looking" in explained
    assert "only with their deltas added" in explained
    assert certificate.fpr.budget is not None
    assert certificate.fpr.budget.delta == curve.normal.level


def test_a_certificate_of_other_scores_is_not_verified() -> None:
    certificate = CURVE.at(1.3)
    assert certificate.verify(NORMAL, ANOMALOUS)
    assert not certificate.verify(NORMAL[:-1], ANOMALOUS)
    moved = certificate.verify(NORMAL + 0.2, ANOMALOUS)
    assert any("normal.certified.ceiling" in one for one in moved.differences)


def test_one_class_alone_bounds_its_rate() -> None:
    curve = certify_curve(NORMAL, [])
    assert curve.fnr([-1.0, 5.0]).tolist() == [1.0, 1.0]
    certificate = curve.choose(max_fpr=0.05)
    assert certificate.guarantee.max_fnr is None
    budget = certificate.fpr.budget
    assert budget is not None
    assert budget.errors is not None
    # one error more would break the ceiling: it is used as far as it goes
    assert band_of(800, 0.05).of([budget.errors + 1])[0] > 0.05
    below, above = np.sort(NORMAL)[[-1 - budget.errors, -budget.errors]]
    assert below < certificate.rule.anomaly_from <= above
    assert certificate.verify(NORMAL, [])
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.prediction_sets([9.0, -9.0]).tolist() == [[False, True], [True, True]]
    only = certify_curve([], ANOMALOUS).choose(max_fnr=0.1)
    assert only.guarantee.max_fpr is None
    assert only.verify([], ANOMALOUS)


def exhaustive(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    places = np.concatenate([NORMAL, np.nextafter(NORMAL, inf), ANOMALOUS, np.nextafter(ANOMALOUS, inf)])
    return curve.fpr(places), curve.fnr(places)


@pytest.mark.parametrize("ceiling", [0.03, 0.05, 0.2])
def test_a_ceiling_is_kept_at_the_least_bound_of_the_other_rate(ceiling: float) -> None:
    fpr, fnr = exhaustive(CURVE)
    kept = CURVE.choose(max_fpr=ceiling).guarantee
    least = fnr[fpr <= ceiling].min()
    assert (kept.max_fnr, kept.max_fpr) == (least, fpr[(fpr <= ceiling) & (fnr == least)].min())
    kept = CURVE.choose(max_fnr=ceiling).guarantee
    least = fpr[fnr <= ceiling].min()
    assert (kept.max_fpr, kept.max_fnr) == (least, fnr[(fnr <= ceiling) & (fpr == least)].min())


@pytest.mark.parametrize("place", [0, 3, 20])
def test_a_ceiling_that_is_itself_a_bound_is_kept(place: int) -> None:
    """The largest bound is used where nothing is known of the other rate, and it may equal the ceiling."""
    pairs = np.array([0.3, 0.25, 0.1]), np.array([0.1, 0.2, 0.4])
    assert best(*pairs, 0.25) == 1
    assert best(*pairs, np.nextafter(0.25, 0.0)) == 2
    bound = CURVE.normal.bounds[place]
    assert certify_curve(NORMAL, []).choose(max_fpr=bound).guarantee.max_fpr == bound
    assert CURVE.normal.score_within(bound) == CURVE.normal.scores[place]
    other = CURVE.anomalous.bounds[place]
    assert certify_curve([], ANOMALOUS).choose(max_fnr=other).guarantee.max_fnr == other


def test_the_balanced_and_the_cheapest_threshold_are_the_best_of_all() -> None:
    fpr, fnr = exhaustive(CURVE)
    kept = CURVE.balanced().guarantee
    assert max(kept.max_fpr or 1, kept.max_fnr or 1) == np.maximum(fpr, fnr).min()
    kept = CURVE.cheapest(cost_fp=1, cost_fn=30, prevalence=0.02).guarantee
    found = 0.98 * (kept.max_fpr or 1) + 30 * 0.02 * (kept.max_fnr or 1)
    assert found == pytest.approx((0.98 * fpr + 30 * 0.02 * fnr).min())


def test_a_gap_between_the_classes_is_divided_in_the_middle() -> None:
    curve = certify_curve(range(200), range(300, 500))
    for certificate in (curve.choose(max_fpr=0.05), curve.choose(max_fnr=0.05), curve.balanced()):
        assert certificate.rule.anomaly_from == pytest.approx(249.5)


def test_a_ceiling_below_all_bounds_is_refused_with_the_least() -> None:
    with pytest.raises(
        InputError, match=r"max_fpr = 0.0001; the lowest bound is 0.00\d+ \(labels of the class: 800\)"
    ):
        CURVE.choose(max_fpr=0.0001)
    with pytest.raises(InputError, match="max_fnr must lie strictly between 0 and 1"):
        CURVE.choose(max_fnr=np.array([0.1, 0.2]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="either max_fpr or max_fnr"):
        CURVE.choose()
    with pytest.raises(InputError, match="either max_fpr or max_fnr"):
        CURVE.choose(max_fpr=0.1, max_fnr=0.1)
    with pytest.raises(InputError, match="max_fnr must lie strictly"):
        CURVE.choose(max_fnr=1.5)
    with pytest.raises(InputError, match="no threshold bounds both"):
        certify_curve([1.0], []).balanced()


@pytest.mark.parametrize(
    ("cost", "prevalence"), [(0, 0.1), (-1, 0.1), (inf, 0.1), ("1", 0.1), (1, 0), (1, 1)]
)
def test_costs_and_prevalence_are_checked(cost: float, prevalence: float) -> None:
    with pytest.raises(InputError, match=r"cost_fp must be|prevalence must"):
        CURVE.cheapest(cost, 1, prevalence)


@pytest.mark.parametrize("threshold", [float("nan"), "0.5", None, [float("nan")]])
def test_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match=r"must be a number|NaN"):
        CURVE.fpr(threshold)


def test_beyond_the_largest_bound_that_was_asked_for_nothing_is_said() -> None:
    tops = {"top_fpr": 0.1, "top_fnr": 0.4}
    curve = certify_curve(NORMAL, ANOMALOUS, **tops)
    assert curve.normal.bounds[-1] <= 0.1 < CURVE.normal.bounds[-1]
    assert curve.anomalous.bounds[-1] <= 0.4
    assert Curve.from_json(curve.to_json()) == curve
    assert "bounds above 0.1 are not given" in str(curve)
    assert curve.verify(NORMAL, ANOMALOUS)
    assert not curve.verify(NORMAL + 0.1, ANOMALOUS)
    chunks = [(NORMAL, np.zeros(800)), (ANOMALOUS, np.ones(300))]
    assert certify_curve_chunks(lambda: chunks, **tops) == curve
    places, fpr, fnr = CURVE.steps()
    for rates, plain, side in (
        (curve.fpr(places), fpr, curve.normal),
        (curve.fnr(places), fnr, curve.anomalous),
    ):
        assert (rates[rates < 1.0] <= plain[rates < 1.0]).all()
        assert ((rates < 1.0) | (plain > side.bounds[-1])).all()
    # a threshold at which one rate is bounded, and one at which both are
    for threshold in (-1.0, 1.5, 6.0):
        made = curve.at(threshold)
        assert Certificate.from_json(made.to_json()) == made
        assert made.verify(NORMAL, ANOMALOUS)
        assert made.overlap == Given(threshold, 0.1, 0.4)
    assert curve.at(-1.0).guarantee.max_fpr is None
    assert curve.at(6.0).guarantee.max_fnr is None
    better, plain_one = curve.at(1.5).guarantee, CURVE.at(1.5).guarantee
    assert better.max_fpr is not None
    assert plain_one.max_fpr is not None
    assert better.max_fpr < plain_one.max_fpr


@pytest.mark.parametrize("change", [{"top": 0.2}, {"top": None}, {"top": 1.5}])
def test_a_curve_with_another_top_than_its_own_is_refused(change: dict[str, Any]) -> None:
    from dataclasses import replace

    curve = certify_curve(NORMAL, ANOMALOUS, top_fpr=0.1)
    with pytest.raises(CertificateError, match="contradicts itself"):
        Curve.from_json(replace(curve, normal=replace(curve.normal, **change)).to_json())
    made = curve.at(1.9)
    other = replace(made, overlap=Given(1.9, 0.2))
    with pytest.raises(CertificateError, match="contradicts itself"):
        Certificate.from_json(other.to_json())


def test_it_survives_its_file(tmp_path: Path) -> None:
    CURVE.save(tmp_path / "curve.json")
    assert Curve.load(tmp_path / "curve.json") == CURVE
    assert Curve.from_json(CURVE.to_json()).to_json() == CURVE.to_json()
    large = certify_curve(RNG.normal(0, 1, 1_200).astype(np.float32), ANOMALOUS.astype(np.float32))
    assert Curve.from_json(large.to_json()) == large
    assert large.score_type == "float32"
    assert large.at(1.7).verify(NORMAL, ANOMALOUS) is not None


def test_a_curve_of_ties_and_infinities_survives_its_file() -> None:
    normal, anomalous = [-inf, 0.0, -0.0, 1.0, 1.0, 1.0, inf, inf], [1.0, 1.0, 1.0, 2.0, inf, inf]
    curve = certify_curve(normal, anomalous)
    assert len(set(curve.normal.scores)) < len(curve.normal.scores)
    assert len(set(curve.anomalous.scores)) < len(curve.anomalous.scores)
    assert Curve.from_json(curve.to_json()) == curve


def test_a_file_that_was_changed_or_contradicts_itself_is_refused() -> None:
    from dataclasses import replace

    text = CURVE.to_json()
    with pytest.raises(CertificateError, match="checksum differs"):
        Curve.from_json(text.replace('"n": 800', '"n": 801'))
    side = CURVE.normal
    for wrong in (
        replace(side, level=2 * side.level),
        replace(side, bounds=tuple(bound / 2 for bound in side.bounds)),
        replace(side, n=801),
        replace(side, scores=side.scores[::-1]),
        replace(side, ranks=side.ranks[1:]),
        replace(side, digest="no digest"),
        replace(side, delta=0.1),
        replace(side, delta=2.0),
    ):
        with pytest.raises(CertificateError, match="contradicts itself"):
            Curve.from_json(replace(CURVE, normal=wrong).to_json())
    with pytest.raises(CertificateError, match="contradicts itself"):
        Curve.from_json(replace(CURVE, score_type="float16").to_json())
    with pytest.raises(CertificateError, match="not a version"):
        Curve.from_json(replace(CURVE, version="new").to_json())
    half = certify_curve(NORMAL, [])
    with pytest.raises(CertificateError, match="digest of no anomalous scores"):
        Curve.from_json(replace(half, anomalous=replace(half.anomalous, digest="1" * 16)).to_json())
    with pytest.raises(CertificateError, match="format"):
        Curve.from_json(CURVE.at(1.0).to_json())
    with pytest.raises(CertificateError, match="has format 'pac-wrap curve'"):
        Certificate.from_json(CURVE.to_json())


def test_it_is_verified_from_its_scores() -> None:
    assert CURVE.verify(NORMAL[::-1], ANOMALOUS)
    found = CURVE.verify(NORMAL, ANOMALOUS + 0.5)
    assert not found
    assert any("300 of the 300 anomalous scores" in one for one in found.differences)
    assert not CURVE.verify(NORMAL[1:], ANOMALOUS)


def test_chunks_give_the_same_curve_byte_for_byte() -> None:
    scores = np.concatenate([NORMAL, ANOMALOUS])
    labels = np.repeat([0, 1], [NORMAL.size, ANOMALOUS.size])
    order = RNG.permutation(scores.size)
    parts = [(scores[part], labels[part]) for part in np.array_split(order, 7)]
    assert certify_curve_chunks(lambda: parts).to_json() == CURVE.to_json()


def test_it_warns_of_scores_upside_down_and_refuses_none_at_all() -> None:
    with pytest.warns(UpsideDownWarning, match="negate"):
        certify_curve(ANOMALOUS, NORMAL)
    with pytest.raises(InputError, match="both empty"):
        certify_curve([], [])
    with pytest.raises(InputError, match="delta_fnr must be at least 1e-05"):
        certify_curve(NORMAL, ANOMALOUS, delta_fnr=1e-9)


def test_it_shows_itself() -> None:
    text = str(CURVE)
    assert "FPR <= 0.05: FPR <= 0.0" in text
    assert "bounds of both rates hold together" in text
    assert "FPR <= 0.01: no threshold" in str(certify_curve(NORMAL[:30], ANOMALOUS))
    ax = CURVE.plot()
    assert "FPR at most" in ax.get_xlabel()
    with pytest.raises(InputError, match="no trade-off"):
        certify_curve(NORMAL, []).plot()


def test_a_large_curve_takes_seconds() -> None:
    scores = RNG.normal(0, 1, 1_000_000)
    start = process_time()
    curve = certify_curve(scores, scores[:800] + 3)
    assert process_time() - start < 4.0
    assert len(curve.normal.scores) < 1_100


def test_the_worst_threshold_breaks_its_bound_as_often_as_delta_says() -> None:
    # uniform normal scores: the FPR at t is 1 - t, and fails somewhere with probability delta exactly
    n, delta, trials = 80, 0.2, 2_200
    assert_power(trials, delta, 0.272)
    assert_power(trials, delta, 0.134)
    rng = np.random.default_rng(20240502)
    hits = 0
    for _ in range(trials):
        curve = certify_curve(rng.random(n), [], delta_fpr=delta)
        # just above a score one more could have been an error: the bound is tightest there
        places = np.nextafter(np.array(curve.normal.scores), inf)
        hits += bool((1.0 - places > curve.fpr(places)).any())
    assert_rate(hits, trials, delta)


def test_a_threshold_chosen_after_looking_keeps_both_of_its_bounds() -> None:
    # chosen to look as good as possible, on coarse scores with many ties
    trials, delta = 700, 0.1
    assert_power(trials, 2 * delta, 0.33, at_most=True)
    rng = np.random.default_rng(20240503)
    grid = np.arange(-8, 13) / 2
    from scipy.stats import norm

    broken = 0
    for _ in range(trials):
        normal, anomalous = np.ceil(2 * rng.normal(0, 1, 60)) / 2, np.ceil(2 * rng.normal(2, 1, 40)) / 2
        curve = certify_curve(normal, anomalous, delta, delta)
        kept = curve.balanced()
        tau = kept.rule.anomaly_from
        # a score is ceil(2x)/2, so it reaches tau where x > tau' = the grid point before
        edge = grid[grid < tau].max(initial=-4.5)
        fpr, fnr = norm.sf(edge), norm.cdf(edge, 2)
        broken += fpr > (kept.guarantee.max_fpr or 1) or fnr > (kept.guarantee.max_fnr or 1)
    assert_at_most(broken, trials, 2 * delta)


@pytest.mark.parametrize("normal", [[], [inf] * 100])
def test_scores_that_are_all_inf_have_a_finite_threshold_too(normal: list[float]) -> None:
    curve = certify_curve(normal, [inf] * 200)
    certificate = curve.choose(max_fnr=0.05)
    assert not certificate.uncertified
    assert certificate.fpr.ceiling is None
    assert certificate.verdicts([inf, float_info.max, 0.0]).tolist() == [1, 1, 0]
    assert curve.cheapest(1.0, 1.0, 0.5) == certificate
    with pytest.raises(InputError, match="no threshold bounds both rates"):
        curve.balanced()


@given(st.lists(ODD, max_size=8))
def test_a_threshold_stands_in_each_range_between_neighbouring_scores(scores: list[float]) -> None:
    ends = sorted(set(scores))
    found = cells(scores)
    assert (np.abs(found) < inf).all()
    assert (np.diff(found) > 0).all()
    for low, high in pairwise(ends):
        assert ((low < found) & (found <= high)).sum() == (nextafter(low, inf) < inf)


@pytest.mark.parametrize("n", [1, 2, 59, 1_500, pytest.param(1_000_003, marks=pytest.mark.slow)])
def test_the_budgets_of_all_bounds_are_those_of_each(n: int) -> None:
    side = certify_curve(np.arange(float(n)), np.zeros(0), delta_fpr=0.03).normal
    assert side.budgets() == [Budget.of(n, bound, side.level).errors for bound in side.bounds]


def test_a_curve_of_columns_is_that_of_two_arrays() -> None:
    scores, labels = np.arange(200.0), np.tile([0, 1], 100)
    expected = certify_curve(scores[labels == 0], scores[labels == 1])
    assert certify_curve_labelled(scores, labels) == expected
    with pytest.raises(InputError, match="together is for groups; give by too"):
        certify_curve_labelled(scores, labels, together=True)  # type: ignore[call-overload]
