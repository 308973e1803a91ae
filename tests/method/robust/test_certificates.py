"""Certificates with room: round trips, tampering, what is said, radius, worth, groups, and refusals."""

import json
import warnings
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom

from pac_wrap import (
    KL,
    Certificate,
    CertificateError,
    ChiSquared,
    DensityRatio,
    GroupCertificate,
    Guarantee,
    LabelNoise,
    LabelUntil,
    Monitor,
    PACWrapWarning,
    TotalVariation,
    calibrate,
    calibrate_labelled,
    certify_curve,
    evaluate,
    plan,
    recalibrate,
)
from pac_wrap.method.comparison import compare_scores
from pac_wrap.method.curves.band import Given
from pac_wrap.method.promise import OF_DRAWS, OF_SERIES, Assumption, Promise, assumed
from pac_wrap.method.provenance import Sampling
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.account import Figure, account_of
from pac_wrap.report.pictures import Drawing, panels
from pac_wrap.report.render import as_json, html
from pac_wrap.validation import independent_violation
from support.examples import examples
from support.exceeded import exceeded
from support.kept import kept as kept_by
from support.resealed import mutants, tampered
from support.strategies import refusal

RANDOM = np.random.default_rng(3)
NORMAL, ANOMALOUS = RANDOM.normal(0, 1, 900), RANDOM.normal(3, 1, 500)
ROOM: dict[str, Any] = {
    "shift": (TotalVariation(0.02), KL(0.004)),
    "label_noise": (None, LabelNoise(0.03, 0.004)),
}
ASKED = Guarantee(**ROOM)
STRATEGIES: list[Any] = [
    "abstain",
    "abstain_always",
    "raise",
    "hold_fnr",
    "hold_fpr",
    "algorithm1",
    Looks(),
]


@pytest.mark.parametrize("overlap", STRATEGIES, ids=lambda one: getattr(one, "word", one))
def test_it_is_saved_read_verified_and_shown(overlap: Any) -> None:
    made = calibrate(NORMAL, ANOMALOUS, ASKED, overlap=overlap)
    read = Certificate.from_json(made.to_json())
    assert read == made
    assert read.verify(NORMAL, ANOMALOUS)
    assert not read.uncertified
    rooms = [(one.shift, one.label_noise) for one in ASKED.promises]
    assert [(one.shift, one.label_noise) for one in read.promises] == rooms
    shown = " ".join(str(read).split())
    assert "FPR: total variation up to 0.02" in shown
    assert (
        "FNR: a Kullback-Leibler divergence up to 0.004 and up to 3 % contaminated and 0.4 % lost labels"
        in shown
    )
    assert Assumption.NO_SHIFT not in read.assumptions
    assert read.assumptions[-2:] == (Assumption.BOUNDED_SHIFT, Assumption.LABELS)
    assert "The FPR promise tolerates total variation up to 0.02" in account_of(read).headline


@pytest.mark.parametrize("overlap", STRATEGIES, ids=lambda one: getattr(one, "word", one))
def test_the_ceilings_are_those_of_calibration_mapped_through_the_room(overlap: Any) -> None:
    """A certificate with room is that of the ceilings at calibration, with its promises mapped."""
    if overlap == "algorithm1":
        pytest.skip("its levels are fixed on the scale of the promise")
    asked = Guarantee(*(one.at_calibration for one in ASKED.promises))
    plain = calibrate(NORMAL, ANOMALOUS, asked, overlap=overlap)
    made = calibrate(NORMAL, ANOMALOUS, ASKED, overlap=overlap)
    if overlap != "raise":  # the highest ceiling is on the scale of the promise, so its level differs
        assert (made.rule, made.thresholds) == (plain.rule, plain.thresholds)
        for one, other in zip(made.clauses, plain.clauses, strict=True):
            assert (one.n, one.budget, one.beyond) == (other.n, other.budget, other.beyond)
    assert not made.uncertified
    for promise, certified, evidence in zip(ASKED.promises, made.promises, (made.fpr, made.fnr), strict=True):
        assert evidence.budget is not None
        assert certified.ceiling == promise.afterwards(evidence.budget.rate)
        assert evidence.budget.rate < certified.ceiling


def test_a_certificate_without_room_says_nothing_of_it() -> None:
    made = calibrate(NORMAL, ANOMALOUS)
    content = json.loads(made.to_json())
    assert not {"shift", "label_noise", "certified", "found_at"} & content["clauses"][0].keys()
    assert "weighting" not in content
    assert made.assumptions == OF_DRAWS
    assert "room" not in str(made)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"normal.shift": None}, "."),
        ({"normal.shift": None, "anomalous.shift": None}, "."),
        ({"normal.shift": {"name": "tv", "distance": 0.01}}, "."),
        ({"normal.shift": [{"name": "tv", "distance": 0.02}]}, "must be an object"),
        ({"normal.shift": {"name": "tv", "distance": 2.0}}, "strictly between 0 and 1"),
        ({"normal.shift": {"name": "wasserstein", "distance": 0.02}}, "must be one of 'tv'"),
        ({"normal.label_noise": {"name": "labels", "contamination": 0.9, "lost": 0.0}}, "."),
        ({"normal.found_at.rate": 0.05}, "."),
        ({"assumptions": [1, 2, 3]}, "these are not the assumptions"),
        ({"normal.certified.ceiling": 0.04}, "the certified ceilings"),
        ({"normal.certified.shift": None}, "must be absent"),
    ],
)
def test_what_was_tampered_with_is_not_believed(changes: dict[str, Any], words: str) -> None:
    made = calibrate(NORMAL, ANOMALOUS, ASKED)
    with pytest.raises(CertificateError, match=words):
        Certificate.from_json(tampered(made, changes))


def in_plain_floats(promise: Promise, rate: float) -> float:
    """Return what a rate at calibration may become, by the formulas of the theory as they are printed."""
    noise, shift = promise.label_noise, promise.shift
    if noise is not None:
        rate = (1 - noise.lost) * min(1, rate / (1 - noise.contamination)) + noise.lost
    if isinstance(shift, TotalVariation):
        return rate + shift.distance
    if isinstance(shift, DensityRatio):
        return rate * shift.ratio
    if isinstance(shift, ChiSquared):
        return rate + sqrt(shift.divergence * rate * (1 - rate))
    if isinstance(shift, KL):
        return float(
            brentq(lambda y: rel_entr([y, 1 - y], [rate, 1 - rate]).sum() - shift.divergence, rate, 1)
        )
    return rate


def test_of_what_was_tampered_with_only_what_follows_is_believed() -> None:
    """Leaves are changed and sealed again; what is still read keeps the formulas and the binomial tail."""
    shifts = [ROOM, {"shift": DensityRatio(2)}, {"shift": ChiSquared(0.01), "label_noise": LabelNoise(0.1)}]
    made = [
        calibrate(NORMAL, ANOMALOUS, Guarantee(**room), overlap=overlap)
        for room in shifts
        for overlap in ("abstain", "raise", "hold_fnr")
    ]
    believed = 0
    for what, text in mutants(0, 600, made):
        try:
            found = Certificate.from_json(text)
        except CertificateError:
            continue
        believed += 1
        kept = kept_by(found)
        assert kept is not None, what
        for promise, evidence in ((kept.fpr, found.fpr), (kept.fnr, found.fnr)):
            if promise is None or evidence.budget is None or evidence.budget.errors is None:
                continue
            budget = evidence.budget
            assert promise.ceiling == pytest.approx(in_plain_floats(promise, budget.rate), rel=1e-6), what
            assert binom.cdf(budget.errors, evidence.n, budget.rate) <= budget.delta * (1 + 1e-9), what
            assert budget.delta <= promise.delta, what
    assert 0 < believed < 300


def test_windows_of_a_series_have_room_too() -> None:
    windows = Sampling(15, 60, "max", "blocks", 60, 600, effective_normal=80.5, effective_anomalous=None)
    assumptions = assumed(OF_SERIES, **ASKED.tolerates)
    made = replace(calibrate(NORMAL, ANOMALOUS, ASKED), sampling=windows, assumptions=assumptions)
    assert Certificate.from_json(made.to_json()) == made
    assert Assumption.STATIONARY not in assumptions


@pytest.mark.parametrize("usual", [OF_DRAWS, OF_SERIES])
def test_with_wrong_labels_calibration_and_future_points_are_not_said_to_be_alike(usual: Any) -> None:
    found = assumed(usual, noise=True)
    assert Assumption.INDEPENDENT not in found
    assert Assumption.STATIONARY not in found
    assert found[-1] is Assumption.LABELS
    assert not any("future points are independent draws" in str(one) for one in found)
    # but the classes themselves do not shift
    assert Assumption.NO_SHIFT in found
    if usual is OF_DRAWS:
        made = calibrate(NORMAL, ANOMALOUS, Guarantee(label_noise=LabelNoise(0.01)))
        assert made.assumptions == found
        assert Certificate.from_json(made.to_json()) == made


def more_anomalies(points: int, prevalence: float) -> tuple[Any, Any]:
    """Return scores, and labels of which one in ten of the anomalies' is wrong, and none of the others'."""
    rng = np.random.default_rng(11)
    anomalous = rng.random(points) < prevalence
    scores = rng.normal(np.where(anomalous, 6.0, 0.0))
    return scores, (anomalous & (rng.random(points) >= 0.1)).astype(int)


def test_an_accusation_says_what_it_assumes_of_new_labels() -> None:
    """The labeller is the same, and errs as often; there are more anomalies, and the promises hold."""
    scores, labels = more_anomalies(4000, 0.1)
    asked = Guarantee(0.05, 0.15, label_noise=(LabelNoise(0.02), None))
    made = calibrate(scores[labels == 0], scores[labels == 1], asked)
    told = "label noise changes with the prevalence, even if the labeller errs as before"
    fresh, given = more_anomalies(4000, 0.5)
    monitor = Monitor(made)
    assert monitor.update(made.verdicts(fresh), given) is not None
    assert told in str(monitor)
    assert told in as_json(account_of(monitor))
    assert told in html(account_of(monitor))
    again = Monitor(made).resumed(monitor.to_json())
    assert str(again) == str(monitor)
    metrics = evaluate(made.verdicts(fresh), given)
    promised = kept_by(made)
    assert promised is not None
    assert exceeded(metrics, promised) == ("FPR",)
    assert told in account_of(made, metrics=metrics).warnings[-1]
    # where no label may be wrong, nothing of it is said
    plain = calibrate(scores[labels == 0], scores[labels == 1], Guarantee(0.05, 0.15))
    watched = Monitor(plain)
    assert watched.update(plain.verdicts(fresh), given) is not None
    assert "prevalence" not in str(watched)


def test_hold_promises_nothing_where_the_room_takes_it_to_one() -> None:
    asked = Guarantee(0.3, 0.05, shift=(DensityRatio(5), None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        made = calibrate(NORMAL, ANOMALOUS - 2, asked, overlap="hold_fnr")
    assert not made.uncertified
    assert made.fpr.ceiling is None
    assert made.fpr.budget is None
    assert made.empty
    assert Certificate.from_json(made.to_json()) == made


def test_too_few_labels_are_said_on_the_scale_of_the_promise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        made = calibrate(NORMAL[:80], ANOMALOUS, Guarantee(shift=(TotalVariation(0.02), None)))
    # 80 labels keep 0.03675 at calibration, and 99 are needed
    assert "cannot certify FPR <= 0.05" in made.diagnosis[0]
    assert "at least 99 are needed, or a ceiling of 0.05676" in made.diagnosis[0]


def test_the_radius_of_a_certificate() -> None:
    plain = calibrate(NORMAL, ANOMALOUS)
    found = plain.radius(0.08)
    assert found.fpr == found.fnr
    assert [one.size for one in found.fpr] == pytest.approx([0.03, 1.6, 0.00808, 0.0009 / 0.0475], rel=1e-3)
    # room that was taken is part of it: what was promised at 0.05 with room is kept there with that room
    roomy = calibrate(NORMAL, ANOMALOUS, Guarantee(shift=TotalVariation(0.02)))
    assert roomy.radius(0.05).fpr[0].size == pytest.approx(0.02)
    assert plain.radius(0.04).fpr == ()
    assert "not promised after any shift" in str(plain.radius(0.04))
    one_sided = calibrate(NORMAL, [], Guarantee(max_fnr=None))
    assert one_sided.radius(0.1).fnr == ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        few = calibrate(NORMAL[:10], ANOMALOUS)
    assert (few.radius(0.5).fpr, len(few.radius(0.5).fnr)) == ((), 4)
    noisy = calibrate(NORMAL, ANOMALOUS, Guarantee(label_noise=LabelNoise(0.05)))
    assert noisy.radius(0.08).fpr[0].size == pytest.approx(0.03)
    assert "strictly between 0 and 1" in refusal(lambda: plain.radius(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        nothing = calibrate(NORMAL, NORMAL, Guarantee(0.01, 0.01), overlap="raise")
    assert nothing.uncertified
    assert "nothing is certified" in refusal(lambda: nothing.radius(0.5))
    assert account_of(nothing)["robust"] == []
    assert panels({"FPR": 0.9995}) == panels({}) == ()


@settings(max_examples=examples(25))
@given(rate=st.floats(0.001, 0.4), factor=st.floats(1.01, 2.4))
def test_a_shift_within_the_radius_keeps_the_looser_ceiling(rate: float, factor: float) -> None:
    made = calibrate(range(5000), range(6000, 11000), Guarantee(rate, rate))
    for shift in made.radius(rate * factor).fpr:
        assert shift.after(rate) <= rate * factor * (1.0 + 1e-15)
        assert shift.after(rate) == pytest.approx(rate * factor, rel=1e-6)


def drawn(made: Certificate) -> tuple[Drawing, ...]:
    """The panels of the figure of shift."""
    items = [item for section in account_of(made).sections for item in section.items]
    (figure,) = [item for item in items if isinstance(item, Figure) and item.kind == "robust"]
    panels: tuple[Drawing, ...] = figure.data
    assert len(panels) == 4
    return panels


def test_a_report_has_rows_and_panels() -> None:
    made = calibrate(NORMAL, ANOMALOUS, ASKED)
    rows = account_of(made)["robust"]
    kept = [row["kept"] for row in rows]
    assert kept[:3] == ["FPR at most 7.5 %", "FPR at most 10 %", "FPR at most 20 %"]
    assert json.loads(as_json(account_of(made)))["robust"] == rows
    assert all(panel["fpr"].startswith("M0.0 ") and panel["fnr"] for panel in drawn(made))
    one_sided = calibrate(NORMAL, [], Guarantee(0.3, None))
    assert all(panel["fnr"] == "" for panel in drawn(one_sided))
    assert len(account_of(one_sided)["robust"]) == 2  # four times as much is no rate


def test_what_alarms_are_worth_is_worth_after_the_shift() -> None:
    """What was counted at calibration is mapped as well: fewer are caught, more are undecided."""
    plain = calibrate(NORMAL, ANOMALOUS, Guarantee(*(one.at_calibration for one in ASKED.promises)))
    made = calibrate(NORMAL, ANOMALOUS, ASKED)
    assert not made.rule.single
    loose, tight = made.workload(0.1), plain.workload(0.1)
    assert loose.right.low < tight.right.low
    assert loose.undecided.high > tight.undecided.high
    assert made.precision(0.1).low < plain.precision(0.1).low
    # the watch of undecided points allows what the shift may bring
    limits = [
        next(watch.ceiling for watch in Monitor(one).watches if watch.name == "undecided")
        for one in (made, plain)
    ]
    assert limits[0] is not None
    assert limits[1] is not None
    assert limits[0] > limits[1]


def test_labels_that_come_and_certificates_that_follow_keep_their_room() -> None:
    until = LabelUntil(Guarantee(0.2, None, shift=TotalVariation(0.02)), threshold=1.5)
    until.add(NORMAL, np.zeros(NORMAL.size))
    assert until.done
    assert until.certificate is not None
    assert until.certificate.guarantee.shift == (TotalVariation(0.02), None)
    scores, labels = np.append(NORMAL, ANOMALOUS), np.repeat([0, 1], [NORMAL.size, ANOMALOUS.size])
    second = recalibrate(calibrate(NORMAL, ANOMALOUS, ASKED), scores, labels)
    assert second.guarantee.shift == ASKED.shift
    assert Certificate.from_json(second.to_json()) == second


def test_a_plan_knows_it() -> None:
    found = plan(Guarantee(shift=TotalVariation(0.02)), normal=99, anomalous=98)
    assert [one.labels[0] for one in found.needed] == [99, 99]
    assert "99 at hand tolerate 0 errors; the lowest ceiling that they can keep is 0.04981" in str(found)
    assert "98 at hand, 1 missing" in str(found)


def test_groups_have_the_same_room() -> None:
    scores, labels = np.append(NORMAL, ANOMALOUS), np.repeat([0, 1], [NORMAL.size, ANOMALOUS.size])
    groups = np.where(np.arange(scores.size) % 3 == 0, "a", "b")
    for overlap in ("abstain", "hold_fnr"):
        made = calibrate_labelled(scores, labels, ASKED, overlap=overlap, by=groups)
        for name in "ab":
            low, high = scores[(groups == name) & (labels == 0)], scores[(groups == name) & (labels == 1)]
            assert made.certificates[name] == calibrate(low, high, ASKED, overlap=overlap)
        read = GroupCertificate.from_json(made.to_json())
        assert read == made
        assert read.assumptions == made.certificates["a"].assumptions
    assert "a gap between groups cannot tolerate shift" in refusal(lambda: made.gaps())
    together = calibrate_labelled(scores, labels, ASKED, together=True, by=groups)
    assert together.certificates["a"].guarantee.shift == ASKED.shift
    noisy = Guarantee(label_noise=LabelNoise(0.2))
    verdict = calibrate_labelled(scores, labels, noisy, by=groups)
    plain = calibrate_labelled(scores, labels, Guarantee(), by=groups)
    fresh = np.full(300, 10.0), np.r_[np.ones(250), np.zeros(50)], np.repeat("a", 300)
    assert plain.evaluate(*fresh).exceeded
    assert verdict.evaluate(*fresh).exceeded
    fewer = np.append(np.full(12, 10.0), np.full(88, -10.0)), np.zeros(100), np.repeat("a", 100)
    assert plain.evaluate(*fewer).exceeded
    assert not verdict.evaluate(*fewer).exceeded


def test_what_is_not_proved_is_refused() -> None:
    labels = np.repeat([False, True], [NORMAL.size, ANOMALOUS.size])
    scores = np.append(NORMAL, ANOMALOUS)
    assert "a comparison cannot tolerate shift" in refusal(
        lambda: compare_scores({"one": (scores, labels)}, ASKED)
    )
    assert "each kind cannot tolerate shift" in refusal(lambda: calibrate(NORMAL, {"a": ANOMALOUS}, ASKED))
    assert "read off a curve cannot tolerate shift" in refusal(
        lambda: calibrate(NORMAL, ANOMALOUS, ASKED, overlap=Given(1.0))
    )
    made, curve = calibrate(NORMAL, ANOMALOUS, ASKED), certify_curve(NORMAL, ANOMALOUS)
    assert "a curve cannot tolerate shift" in refusal(lambda: Monitor(made, curve))
    # a threshold of a curve has a radius all the same
    assert curve.at(1.5).radius(0.5).fpr


def test_divisions_of_a_series_calibrate_with_the_room() -> None:
    plain = independent_violation((1000, 100), (4000, 400), Guarantee(0.1, 0.2))
    roomy = independent_violation((1000, 100), (4000, 400), Guarantee(0.1, 0.2, shift=ChiSquared(0.02)))
    assert roomy.fpr is not None
    assert plain.fpr is not None
    assert roomy.fpr < plain.fpr


def test_replacing_one_ceiling_keeps_the_room_of_the_other() -> None:
    assert replace(ASKED, max_fpr=None).shift == (None, KL(0.004))
    assert ASKED.tolerance[0] == "FPR: total variation up to 0.02"
