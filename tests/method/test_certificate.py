"""What a certificate says, what its rule does, and that its file gives back the same."""

import json
import pickle
import warnings
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import product
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import (
    Abstain,
    Algorithm1,
    Certificate,
    CertificateError,
    Guarantee,
    Hold,
    Raise,
    Regime,
    Rule,
    calibrate,
    certify_curve,
)
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import OF_DRAWS, OF_SERIES, Assumption, assumed, of_units
from pac_wrap.method.rule import Thresholds
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.sentences import briefly
from support.examples import examples
from support.reports import facts_told
from support.resealed import sealed, tampered
from support.strategies import calibrate_quietly, exact_tail

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(0, 1, 2000)
FAR, NEAR = RNG.normal(4, 1, 2000), RNG.normal(1, 1, 2000)
CLEAR_BELOW = calibrate(NORMAL, FAR).thresholds.clear_below


def lines(certificate: Certificate) -> dict[str, str]:
    """Return the promise and the facts of a certificate by their names; unnamed ones join the one above."""
    return {name: "\n".join(texts) for name, texts in facts_told(certificate).items()}


def test_a_separated_certificate_says_everything() -> None:
    certificate = calibrate(NORMAL, FAR)
    low, high = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    assert low is not None
    assert high is not None
    assert low < certificate.rule.anomaly_from < high
    text = lines(certificate)
    assert text["asked"] == "FPR <= 0.05 (confidence 0.95), FNR <= 0.05 (confidence 0.95)"
    # the product of the exact confidences, which are independent: 0.957685...^2
    assert text["promise"].endswith(" of anomalies are missed: both together with 91 % confidence.")
    assert certificate.confidence == pytest.approx(prod(certificate.confidences.values()), rel=1e-15)
    assert text["rule"] == f"anomaly from {certificate.rule.anomaly_from:.4g} on, normal below (rounded)"
    always = lines(calibrate(NORMAL, FAR, overlap="abstain_always"))
    assert always["rule"] == f"normal below {low:.4g}, anomaly from {high:.4g} on, else undecided (rounded)"
    assert text == always | {"rule": text["rule"]}
    assert text["regime"] == f"separated: {Regime.SEPARATED.explanation}"
    assert text["normal"] == "2,000 labels, 83 errors allowed"
    assert text["anomalous"] == text["normal"]
    assert text["assumes"] == briefly(OF_DRAWS)
    assert "overlap" not in text
    assert not certificate.empty


def test_deltas_that_leave_no_joint_confidence_say_so() -> None:
    certificate = calibrate(NORMAL, FAR, Guarantee(delta_fpr=0.5, delta_fnr=0.5), overlap="raise")
    alone = "false alarms with 50 % confidence, missed anomalies with 50 % confidence"
    assert lines(certificate)["promise"].endswith(f": {alone}.")
    assert certificate.confidence == 0.0


@pytest.mark.parametrize(("sizes", "stated"), [((3000, 200), 0.925999), ((865, 170), 0.93172)])
def test_the_confidence_in_both_ceilings_is_the_product_of_the_exact_ones(
    sizes: tuple[int, int], stated: float
) -> None:
    found = calibrate(NORMAL[: sizes[0]] if sizes[0] < 2000 else np.arange(3000.0), FAR[: sizes[1]] + 3000)
    exact = Fraction(1)
    for evidence in (found.fpr, found.fnr):
        assert evidence.budget is not None
        assert evidence.budget.errors is not None
        exact *= 1 - exact_tail(evidence.budget.errors, evidence.n, 0.05)
    assert found.confidence == pytest.approx(float(exact), rel=1e-13)
    assert found.confidence == pytest.approx(stated, abs=1e-6)
    assert f"both together with {int(100 * stated)} % confidence" in lines(found)["promise"]


@pytest.mark.parametrize(
    ("overlap", "stated"),
    [
        (Hold("fnr"), 0.95 * 0.9576851),
        (Hold("fpr"), 0.95 * 0.9576851),
        (Looks(every=20, up_to=2000), 0.9025),
        # they choose a level on both classes, so that only the sum is proved
        (Raise(), 0.9),
        (Algorithm1(), 0.9),
    ],
)
def test_confidences_multiply_only_where_no_ceiling_is_chosen_on_both_classes(
    overlap: Overlap, stated: float
) -> None:
    found = calibrate(NORMAL, NEAR, overlap=overlap)
    assert len(found.confidences) == 2
    assert found.confidence == pytest.approx(stated, abs=1e-6)


def test_the_bounds_of_a_curve_and_its_thresholds_hold_with_the_product() -> None:
    curve = certify_curve(NORMAL, NEAR)
    assert curve.confidence == curve.balanced().confidence == 0.9025
    assert "it, with 90 % confidence." in str(curve)


@pytest.mark.parametrize("usual", [of_units(True, False), OF_SERIES])
def test_the_deltas_of_classes_that_depend_on_each_other_add_up(usual: tuple[Assumption, ...]) -> None:
    found = replace(calibrate(NORMAL, FAR), assumptions=usual)
    assert found.confidence == 0.9
    assert "both together with 90 % confidence" in lines(found)["promise"]
    # room for shift or wrong labels, or weights, change nothing of that
    for options in ({"noise": True}, {"shift": True}, {"weights": True}):
        assert replace(found, assumptions=assumed(usual, **options)).confidence == 0.9
        drawn = replace(found, assumptions=assumed(OF_DRAWS, **options))
        assert drawn.confidence == calibrate(NORMAL, FAR).confidence > 0.91


def test_weights_that_are_intervals_leave_the_product_of_the_deltas() -> None:
    """How many points count depends on their scores there, so that a tail of that number proves nothing."""
    weights = np.full(2000, 0.5)
    known, between = (
        calibrate(NORMAL, FAR, normal_weights=one, weight_bound=1.0)
        for one in (weights, (weights, weights + 0.1))
    )
    exact = [one.budget.confidence for one in (known.fpr, known.fnr) if one.budget is not None]
    assert known.confidence == pytest.approx(prod(exact), rel=1e-14)
    assert between.confidence == 0.9025


def test_a_side_without_a_budget_takes_nothing_of_the_confidence() -> None:
    lacking = calibrate(NORMAL, FAR[:10])
    assert list(lacking.confidences) == ["FPR"]
    assert lacking.confidence == lacking.confidences["FPR"] == pytest.approx(0.957685, abs=1e-6)
    assert "together" not in str(lacking)
    nothing = calibrate(NORMAL[:10], FAR[:10])
    assert (nothing.confidence, nothing.confidences) == (1.0, {})


def test_an_overlapping_certificate_swaps_the_thresholds_in_its_rule() -> None:
    certificate = calibrate(NORMAL, NEAR)
    low, high = certificate.thresholds.clear_below, certificate.thresholds.alarm_from
    assert low is not None
    text = lines(certificate)
    assert text["rule"] == f"normal below {low:.4g}, anomaly from {high:.4g} on, else undecided (rounded)"
    assert text["regime"] == f"overlapping: {Regime.OVERLAPPING.explanation}"
    high_normals = np.count_nonzero(low <= NORMAL)
    made = f"83 errors allowed; a threshold for the FNR alone makes {high_normals:,}"
    assert text["normal"] == f"2,000 labels, {made}"
    assert not certificate.empty


def test_a_vacuous_certificate_says_how_many_labels_are_missing() -> None:
    certificate = calibrate(NORMAL[:35], FAR[:3], Guarantee(max_fnr=0.1, delta_fnr=0.1))
    text = lines(certificate)
    assert text["regime"] == f"vacuous: {Regime.VACUOUS.explanation}"
    assert certificate.diagnosis == (
        "35 normal scores cannot certify FPR <= 0.05 at delta = 0.05; at least 59 are needed, or a ceiling of"
        " 0.08204",
        "3 anomalous scores cannot certify FNR <= 0.1 at delta = 0.1; at least 22 are needed, or a ceiling of"
        " 0.5359",
    )
    assert text["rule"] == "every point is left undecided"
    assert text["normal"] == "35 labels, too few: at least 59 are needed, or a ceiling of 0.08204"
    assert text["anomalous"] == "3 labels, too few: at least 22 are needed, or a ceiling of 0.5359"
    assert text["promise"].startswith(
        "Nothing is promised yet, because too few points are labelled: 35 normal"
    )
    assert certificate.empty


def test_one_vacuous_side_leaves_the_other_its_threshold() -> None:
    clears = calibrate(NORMAL[:35], FAR)
    assert lines(clears)["rule"] == (
        f"normal below {clears.thresholds.clear_below:.4g}, never an alarm, else undecided (rounded)"
    )
    alarms = calibrate(NORMAL, FAR[:35])
    assert lines(alarms)["rule"] == (
        f"never normal, anomaly from {alarms.thresholds.alarm_from:.4g} on, else undecided (rounded)"
    )
    assert len(clears.diagnosis) == len(alarms.diagnosis) == 1
    # what too few labels cannot keep is asked for, and not promised
    both = "FPR <= 0.05 (confidence 0.95), FNR <= 0.05 (confidence 0.95)"
    assert lines(clears)["asked"] == lines(alarms)["asked"] == both
    for found, kept, lacking in (
        (clears, "anomalies are missed", "false alarms"),
        (alarms, "normal points raise a false alarm", "missed anomalies"),
    ):
        promise = lines(found)["promise"]
        assert promise.startswith(f"In the long run, at most 5 % of {kept}, with 95 % confidence. Nothing is")
        assert f"Nothing is promised about {lacking} yet, because too few points are labelled: 35" in promise


@pytest.mark.parametrize(
    ("guarantee", "kept", "silent"),
    [(Guarantee(max_fnr=None), "FPR", "anomalous"), (Guarantee(max_fpr=None), "FNR", "normal")],
)
def test_a_one_sided_certificate_promises_one_rate(guarantee: Guarantee, kept: str, silent: str) -> None:
    certificate = calibrate(NORMAL, FAR, guarantee)
    text = lines(certificate)
    assert text["asked"] == f"{kept} <= 0.05 (confidence 0.95)"
    assert text["promise"].startswith("In the long run, at most 5 % of ")
    assert text["promise"].count("Nothing is promised about ") == 1
    assert text[silent] == "2,000 labels, no ceiling requested"
    alarm_from, clear_below = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    tau = clear_below if alarm_from is None else alarm_from
    assert text["rule"] == f"anomaly from {tau:.4g} on, normal below (rounded)"
    assert certificate.diagnosis == ()
    assert tau is not None
    assert certificate.rule == Rule(tau, tau)
    assert certificate.exclusions == certificate.thresholds


def test_one_sided_without_labels_never_alarms_or_always_does() -> None:
    assert lines(calibrate(NORMAL[:5], FAR, Guarantee(max_fnr=None)))["rule"] == "never an alarm"
    always = calibrate(NORMAL, FAR[:5], Guarantee(max_fpr=None))
    assert lines(always)["rule"] == "always an alarm"
    assert always.verdicts([-inf, 0.0, inf]).tolist() == [1, 1, 1]


def test_algorithm_1_names_its_level_and_what_was_promised_instead() -> None:
    certificate = calibrate(NORMAL, NEAR, overlap="algorithm1")
    level, count = Algorithm1()._reached(certificate.claim)
    assert level is not None
    assert count == 10
    assert not certificate.uncertified
    text = lines(certificate)
    ceiling = certificate.fpr.ceiling
    assert ceiling is not None
    assert ceiling == pytest.approx(0.05 + 0.1 * level)
    assert text["asked"].startswith("FPR <= 0.05 (")
    assert f"at most {100 * ceiling:.4g} % of anomalies are missed" in text["promise"]
    assert text["rule"] == f"anomaly from {certificate.rule.anomaly_from:.4g} on, normal below (rounded)"
    reached = f"algorithm1: level {level + 1} reached of 10 fixed beforehand;"
    assert text["overlap"] == f"{reached} the choice is covered by delta"
    uncorrected = calibrate(NORMAL, NEAR, overlap=Algorithm1(correction=None))
    assert lines(uncorrected)["overlap"].endswith("so the confidence is not guaranteed")


@pytest.mark.parametrize(("word", "held"), [("hold_fnr", "FNR"), ("hold_fpr", "FPR")])
def test_a_held_certificate_says_which_side_was_kept(word: str, held: str) -> None:
    certificate = calibrate(NORMAL, NEAR, overlap=word)
    text = lines(certificate)
    assert text["overlap"] == (
        f"{word}: the {held} ceiling is kept; the other is certified from counted errors"
    )
    kept = "normal points raise a false alarm" if held == "FPR" else "anomalies are missed"
    assert f"at most 5 % of {kept}" in text["promise"]
    assert certificate.rule.single
    tau = certificate.rule.anomaly_from
    assert tau == (certificate.thresholds.clear_below if held == "FNR" else certificate.thresholds.alarm_from)
    assert certificate.exclusions == Thresholds(tau, tau)


def test_without_a_certified_threshold_everything_is_abstained() -> None:
    with pytest.warns(UpsideDownWarning):
        certificate = calibrate(FAR, NORMAL, overlap="algorithm1")
    assert certificate.uncertified
    assert Algorithm1()._reached(certificate.claim) == (None, 10)
    assert certificate.empty
    assert certificate.rule == Rule(normal_below=-inf, anomaly_from=inf)
    assert certificate.exclusions == Thresholds(alarm_from=inf, clear_below=-inf)
    assert set(certificate.verdicts([-inf, 0.0, inf])) == {-1}
    text = lines(certificate)
    assert text["promise"].startswith("Nothing is promised: no single threshold can be certified")
    assert text["overlap"].startswith("algorithm1: none reached of 10")


def test_a_held_threshold_at_infinity_never_alarms() -> None:
    certificate = calibrate(NORMAL[:5], FAR, overlap="hold_fpr")
    assert certificate.rule == Rule(inf, inf)
    assert certificate.exclusions == Thresholds(alarm_from=inf, clear_below=None)
    assert lines(certificate)["rule"] == "never an alarm"
    assert certificate.verdicts([-inf, 0.0, inf]).tolist() == [0, 0, 0]


def test_sets_and_ambiguity_follow_the_rule() -> None:
    scores = np.linspace(-4, 8, 500)
    for certificate in (calibrate(NORMAL, FAR), calibrate(NORMAL, NEAR, overlap="algorithm1")):
        sets, verdicts = certificate.prediction_sets(scores), certificate.verdicts(scores)
        np.testing.assert_array_equal(sets[:, 1] & ~sets[:, 0], verdicts == 1)
        np.testing.assert_array_equal(sets[:, 0] & ~sets[:, 1], verdicts == 0)
        assert certificate.rule.ambiguity(scores) == np.mean(verdicts == -1)
    assert certificate.rule.ambiguity(scores) == 0.0


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
@pytest.mark.parametrize(
    "overlap", [Abstain(), Abstain(always=True), Raise(), Hold("fnr"), Hold("fpr"), Algorithm1()]
)
def test_sets_follow_the_rule_up_to_the_largest_numbers(kind: Any, overlap: Overlap) -> None:
    ends = [*(float(np.finfo(one).max) for one in (np.float16, np.float32, np.float64)), inf]
    scores = np.array([*(-end for end in ends), -5e-324, 0.0, 5e-324, *ends])
    for classes in product([-inf, 0.0, inf], repeat=2):
        normal, anomalous = (np.full(100, score, dtype=kind) for score in classes)
        certificate = calibrate_quietly(normal, anomalous, overlap=overlap)
        sets, verdicts = certificate.prediction_sets(scores), certificate.verdicts(scores)
        if certificate.rule == Rule(inf, inf):
            # no alarm is ever given, and nothing is known of misses: no label is ruled out
            assert sets.all(), classes
            continue
        np.testing.assert_array_equal(sets[:, 1] & ~sets[:, 0], verdicts == 1, str(classes))
        np.testing.assert_array_equal(sets[:, 0] & ~sets[:, 1], verdicts == 0, str(classes))


def test_a_certificate_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        calibrate(NORMAL, FAR).rule = Rule(0.0, 0.0)  # type: ignore[misc]  # frozen on purpose


SCORES = st.lists(st.sampled_from([-inf, -1.0, -0.0, 0.0, 0.5, 1.0, inf]) | st.floats(allow_nan=False))
RATE = st.sampled_from([0.05, 0.3, 0.5, 0.9])
CEILINGS = st.one_of(st.tuples(RATE, RATE), st.tuples(RATE, st.none()), st.tuples(st.none(), RATE))

OVERLAPS = st.one_of(
    st.builds(Abstain, always=st.booleans(), position=st.floats(0.0, 1.0)),
    st.builds(Raise, highest=st.sampled_from([0.1, 0.5, 0.9])),
    st.builds(Hold, st.sampled_from(["fnr", "fpr"])),
    st.builds(
        Algorithm1,
        step=st.sampled_from([0.1, 0.03]),
        growth=st.sampled_from(["linear", "double"]),
        raised=st.sampled_from(["both", "fpr", "fnr"]),
        relax_delta=st.booleans(),
        correction=st.sampled_from(["exact", None]),
        position=st.floats(0.0, 1.0),
    ),
)


@settings(max_examples=examples(400))
@given(
    normal=SCORES,
    anomalous=SCORES,
    ceilings=CEILINGS,
    delta=st.sampled_from([0.05, 0.4]),
    overlap=OVERLAPS,
    new=SCORES,
)
def test_text_gives_back_the_same_certificate(
    normal: list[float],
    anomalous: list[float],
    ceilings: tuple[float | None, float | None],
    delta: float,
    overlap: Overlap,
    new: list[float],
) -> None:
    guarantee = Guarantee(*ceilings, delta, delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        certificate = calibrate(normal or [0.0], anomalous, guarantee, overlap=overlap)
    assert certificate.overlap == (Abstain() if None in ceilings else overlap)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.to_json() == certificate.to_json()
    assert str(again) == str(certificate)
    asked = np.array([*new, *normal, *anomalous])
    np.testing.assert_array_equal(again.verdicts(asked), certificate.verdicts(asked))
    np.testing.assert_array_equal(again.prediction_sets(asked), certificate.prediction_sets(asked))


@pytest.mark.parametrize(
    ("overlap", "content"),
    [
        (Abstain(), {"name": "abstain", "always": False, "position": 0.5}),
        (Abstain(always=True, position=0.0), {"name": "abstain", "always": True, "position": 0.0}),
        (Raise(), {"name": "raise", "highest": 0.5}),
        (Hold("fnr"), {"name": "hold", "rate": "fnr", "always": True}),
        (Hold("fpr"), {"name": "hold", "rate": "fpr", "always": True}),
        (
            Algorithm1(step=0.03, raised="fpr", correction=None, position=0.25),
            {
                "name": "algorithm1",
                "step": 0.03,
                "growth": "linear",
                "raised": "fpr",
                "relax_delta": False,
                "correction": None,
                "position": 0.25,
            },
        ),
    ],
)
def test_each_strategy_is_written_by_its_name_and_read_again(
    overlap: Overlap, content: dict[str, Any]
) -> None:
    certificate = calibrate(NORMAL, NEAR, overlap=overlap)
    assert json.loads(certificate.to_json())["overlap"] == content
    again = Certificate.from_json(certificate.to_json())
    assert type(again.overlap) is type(overlap)
    assert again.overlap == overlap
    assert pickle.loads(pickle.dumps(certificate)) == certificate


def test_the_rule_is_a_field_of_the_file() -> None:
    certificate = calibrate(NORMAL, FAR)
    content = json.loads(certificate.to_json())
    rule = certificate.rule
    assert content["rule"] == {"normal_below": rule.normal_below, "anomaly_from": rule.anomaly_from}
    assert not {"tau", "levels", "level", "strategy"} & content.keys()
    nothing = json.loads(calibrate(NORMAL[:5], FAR[:5]).to_json())
    assert nothing["rule"] == {"normal_below": "-inf", "anomaly_from": "inf"}


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [(2, "calibrate again with this version"), (0, "calibrate again"), (4, "update pac-wrap-ad")],
)
def test_another_schema_is_refused_with_what_to_do(schema: int, remedy: str) -> None:
    content = json.loads(calibrate(NORMAL, FAR).to_json())
    assert content["schema"] == 3
    with pytest.raises(CertificateError) as caught:
        Certificate.from_json(sealed(content | {"schema": schema}))
    assert f"the certificate has schema {schema}, this version reads 3; {remedy}" in str(caught.value)


def test_a_file_gives_back_the_same_certificate(tmp_path: Path) -> None:
    certificate = calibrate(NORMAL, FAR)
    certificate.save(tmp_path / "certificate.json")
    assert Certificate.load(str(tmp_path / "certificate.json")) == certificate
    assert (tmp_path / "certificate.json").read_text() == certificate.to_json()
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "missing.json")


def test_made_to_fit_without_a_change_is_accepted() -> None:
    certificate = calibrate(NORMAL, FAR)
    assert Certificate.from_json(tampered(certificate, {})) == certificate


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"normal.budget": 84}, "the budget of normal points does not follow"),
        ({"anomalous.budget": None}, "the budget of anomalous points does not follow"),
        (
            {"normal.found_at.rate": 0.04},
            "the budget of normal points does not follow",
        ),
        ({"normal.n": 1000}, "the budget of normal points does not follow"),
        ({"anomalous.n": 5}, "the budget of 5 anomalous points cannot be 83"),
        ({"normal.threshold": "inf"}, "the rule does not follow"),
        (
            {"normal.threshold": "inf", "rule": {"normal_below": CLEAR_BELOW, "anomaly_from": "inf"}},
            "imply another regime|all anomalous points",
        ),
        ({"rule.anomaly_from": 1000.0}, "the rule does not follow"),
        ({"rule.normal_below": "-inf"}, "the rule does not follow"),
        ({"normal.found_at.rate": 2.0}, "rate"),
        ({"normal.found_at.delta": "inf"}, "delta"),
        ({"normal.n": -1}, "-1"),
        ({"normal.n": 10**400}, "more than 50 digits"),
        ({"normal.n": 10**15}, "there cannot be 1,000,000,000,000,000 normal"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_contradictions_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        Certificate.from_json(tampered(calibrate(NORMAL, FAR, overlap="abstain_always"), changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"normal.certified.ceiling": 0.001},
        {"normal.certified.ceiling": None},
        {"normal.budget": None},
        {"normal.threshold": None},
        {"normal.beyond": 500},
        {"normal.beyond": -1},
    ],
    ids=str,
)
def test_a_promise_its_evidence_does_not_carry_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CertificateError, match="contradicts itself"):
        Certificate.from_json(tampered(calibrate(NORMAL, FAR), changes))
