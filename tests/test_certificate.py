"""What a certificate says, what its rule does, and that its file gives back the same."""

import json
import warnings
from dataclasses import FrozenInstanceError
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import Certificate, CertificateError, Guarantee, Regime, Thresholds, calibrate
from pac_wrap.assumptions import OF_DRAWS
from pac_wrap.errors import UpsideDownWarning
from resealed import sealed

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(0, 1, 2000)
FAR, NEAR = RNG.normal(4, 1, 2000), RNG.normal(1, 1, 2000)


def lines(certificate: Certificate) -> dict[str, str]:
    """Return a certificate's text by the word each line starts with; unnamed lines join the one above."""
    found: dict[str, str] = {}
    name = ""
    for line in str(certificate).splitlines():
        name = line[:10].strip() or name
        found[name] = f"{found[name]}\n{line[11:]}" if name in found else line[11:]
    return found


def test_a_separated_certificate_says_everything() -> None:
    certificate = calibrate(NORMAL, FAR)
    low, high = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    assert low is not None
    assert high is not None
    assert low < high
    high_normals, low_anomalies = np.count_nonzero(high <= NORMAL), np.count_nonzero(low > FAR)
    text = lines(certificate)
    assert text["asked"] == "FPR <= 0.05 (confidence 0.95), FNR <= 0.05 (confidence 0.95)"
    assert text["promised"] == f"{text['asked']}; jointly 0.9"
    assert text["rule"] == f"normal below {low!r}, anomaly from {high!r} on, abstain between"
    assert text["regime"] == (
        f"separated: {Regime.SEPARATED.explanation}\n"
        f"{high_normals} of 2,000 normal scores lie at or above clear_below; the budget is 83\n"
        f"{low_anomalies} of 2,000 anomalous scores lie below alarm_from; the budget is 83"
    )
    assert text["normal"] == "2,000 scores, error budget 83, exact confidence 0.957685"
    assert text["anomalous"] == text["normal"]
    assert text["assumes"].splitlines() == list(map(str, OF_DRAWS))
    assert "strategy" not in text
    assert not certificate.empty


def test_an_overlapping_certificate_swaps_the_thresholds_in_its_rule() -> None:
    certificate = calibrate(NORMAL, NEAR)
    low, high = certificate.thresholds.clear_below, certificate.thresholds.alarm_from
    text = lines(certificate)
    assert text["rule"] == f"normal below {low!r}, anomaly from {high!r} on, abstain between"
    assert text["regime"].startswith(f"overlapping: {Regime.OVERLAPPING.explanation}\n")
    assert not certificate.empty


def test_a_vacuous_certificate_says_how_many_labels_are_missing() -> None:
    certificate = calibrate(NORMAL[:35], FAR[:3], Guarantee(max_fnr=0.1, delta_fnr=0.1))
    text = lines(certificate)
    assert text["regime"].splitlines() == [
        f"vacuous: {Regime.VACUOUS.explanation}",
        "35 normal scores cannot certify FPR <= 0.05 at delta = 0.05; at least 59 are needed",
        "3 anomalous scores cannot certify FNR <= 0.1 at delta = 0.1; at least 22 are needed",
    ]
    assert certificate.diagnosis == tuple(text["regime"].splitlines()[1:])
    assert text["rule"] == "never cleared, never an alarm, abstain between"
    assert text["normal"] == "35 scores, too few for any error budget"
    assert certificate.empty


def test_one_vacuous_side_leaves_the_other_its_threshold() -> None:
    clears = calibrate(NORMAL[:35], FAR)
    assert lines(clears)["rule"] == (
        f"normal below {clears.thresholds.clear_below!r}, never an alarm, abstain between"
    )
    alarms = calibrate(NORMAL, FAR[:35])
    assert lines(alarms)["rule"] == (
        f"never cleared, anomaly from {alarms.thresholds.alarm_from!r} on, abstain between"
    )
    assert len(clears.diagnosis) == len(alarms.diagnosis) == 1


@pytest.mark.parametrize(
    ("guarantee", "kept", "silent"),
    [(Guarantee(max_fnr=None), "FPR", "anomalous"), (Guarantee(max_fpr=None), "FNR", "normal")],
)
def test_a_one_sided_certificate_promises_one_rate(guarantee: Guarantee, kept: str, silent: str) -> None:
    certificate = calibrate(NORMAL, FAR, guarantee)
    text = lines(certificate)
    assert text["asked"] == text["promised"] == f"{kept} <= 0.05 (confidence 0.95)"
    assert text[silent] == "2,000 scores, nothing promised"
    alarm_from, clear_below = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    tau = clear_below if alarm_from is None else alarm_from
    assert text["rule"] == f"anomaly from {tau!r} on, normal below"
    assert certificate.diagnosis == ()
    assert certificate.rule == certificate.thresholds


def test_one_sided_without_labels_never_alarms_or_always_does() -> None:
    assert lines(calibrate(NORMAL[:5], FAR, Guarantee(max_fnr=None)))["rule"] == "never an alarm"
    always = calibrate(NORMAL, FAR[:5], Guarantee(max_fpr=None))
    assert lines(always)["rule"] == "anomaly from -inf on, normal below"
    assert always.verdicts([-inf, 0.0, inf]).tolist() == [1, 1, 1]


def test_a_relaxed_certificate_names_its_level_and_what_was_promised_instead() -> None:
    certificate = calibrate(NORMAL, NEAR, abstain=False)
    assert certificate.level is not None
    assert certificate.certified is not None
    text = lines(certificate)
    ceiling = certificate.certified.max_fpr
    assert ceiling == pytest.approx(0.05 + 0.1 * certificate.level)
    assert text["asked"].startswith("FPR <= 0.05 (")
    assert text["promised"].startswith(f"FPR <= {ceiling:.4g} (confidence 0.95), FNR <= {ceiling:.4g} (")
    assert text["rule"] == f"anomaly from {certificate.tau!r} on, normal below"
    reached = f"relax: level {certificate.level + 1} reached of 10 fixed beforehand; delta "
    assert text["strategy"] == f"{reached}shared equally among them, so the confidence survives the choice"
    uncorrected = calibrate(NORMAL, NEAR, abstain=False, correction=None)
    assert lines(uncorrected)["strategy"].endswith("so the confidence is not guaranteed")


@pytest.mark.parametrize(("strategy", "held"), [("hold_fnr", "FNR"), ("hold_fpr", "FPR")])
def test_a_held_certificate_says_which_side_was_kept(strategy: Any, held: str) -> None:
    certificate = calibrate(NORMAL, NEAR, abstain=False, strategy=strategy)
    text = lines(certificate)
    assert text["strategy"] == (
        f"{strategy}: the {held} ceiling is kept, the other rate certified from counted errors"
    )
    assert f"{held} <= 0.05 (confidence 0.95)" in text["promised"]
    assert certificate.rule == Thresholds(certificate.tau, certificate.tau)


def test_without_a_certified_threshold_everything_is_abstained() -> None:
    with pytest.warns(UpsideDownWarning):
        certificate = calibrate(FAR, NORMAL, abstain=False)
    assert (certificate.certified, certificate.tau, certificate.level) == (None, None, None)
    assert certificate.empty
    assert certificate.rule == Thresholds(alarm_from=inf, clear_below=-inf)
    assert set(certificate.verdicts([-inf, 0.0, inf])) == {-1}
    text = lines(certificate)
    assert text["promised"].startswith("nothing: no single threshold can be certified")
    assert text["strategy"].startswith("relax: none reached of 10")


def test_a_held_threshold_at_infinity_never_alarms() -> None:
    certificate = calibrate(NORMAL[:5], FAR, abstain=False, strategy="hold_fpr")
    assert certificate.tau == inf
    assert certificate.rule == Thresholds(alarm_from=inf, clear_below=None)
    assert lines(certificate)["rule"] == "never an alarm"
    assert certificate.verdicts([-inf, 0.0, inf]).tolist() == [0, 0, 0]


def test_sets_and_ambiguity_follow_the_rule() -> None:
    scores = np.linspace(-4, 8, 500)
    for certificate in (calibrate(NORMAL, FAR), calibrate(NORMAL, NEAR, abstain=False)):
        sets, verdicts = certificate.prediction_sets(scores), certificate.verdicts(scores)
        np.testing.assert_array_equal(sets[:, 1] & ~sets[:, 0], verdicts == 1)
        np.testing.assert_array_equal(sets[:, 0] & ~sets[:, 1], verdicts == 0)
        assert certificate.ambiguity(scores) == np.mean(verdicts == -1)
    assert certificate.ambiguity(scores) == 0.0


def test_a_certificate_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        calibrate(NORMAL, FAR).tau = 0.0  # type: ignore[misc]  # frozen on purpose


SCORES = st.lists(st.sampled_from([-inf, -1.0, -0.0, 0.0, 0.5, 1.0, inf]) | st.floats(allow_nan=False))
RATE = st.sampled_from([0.05, 0.3, 0.5, 0.9])
CEILINGS = st.one_of(st.tuples(RATE, RATE), st.tuples(RATE, st.none()), st.tuples(st.none(), RATE))


@settings(max_examples=400)
@given(
    normal=SCORES,
    anomalous=SCORES,
    ceilings=CEILINGS,
    delta=st.sampled_from([0.05, 0.4]),
    abstain=st.booleans(),
    strategy=st.sampled_from(["relax", "hold_fnr", "hold_fpr"]),
    relax_delta=st.booleans(),
    growth=st.sampled_from(["linear", "double"]),
    new=SCORES,
)
def test_text_gives_back_the_same_certificate(
    normal: list[float],
    anomalous: list[float],
    ceilings: tuple[float | None, float | None],
    delta: float,
    abstain: bool,
    strategy: Any,
    relax_delta: bool,
    growth: Any,
    new: list[float],
) -> None:
    guarantee = Guarantee(*ceilings, delta, delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        certificate = calibrate(
            normal or [0.0],
            anomalous,
            guarantee,
            abstain=abstain,
            **({} if abstain else {"strategy": strategy, "relax_delta": relax_delta, "growth": growth}),
        )
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.to_json() == certificate.to_json()
    assert str(again) == str(certificate)
    asked = np.array([*new, *normal, *anomalous])
    np.testing.assert_array_equal(again.verdicts(asked), certificate.verdicts(asked))


def test_a_file_gives_back_the_same_certificate(tmp_path: Path) -> None:
    certificate = calibrate(NORMAL, FAR)
    certificate.save(tmp_path / "certificate.json")
    assert Certificate.load(str(tmp_path / "certificate.json")) == certificate
    assert (tmp_path / "certificate.json").read_text() == certificate.to_json()
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "missing.json")


def contradict(certificate: Certificate, **changes: Any) -> str:
    """Return the certificate's text with values changed and the checksum made to fit again."""
    content = json.loads(certificate.to_json())
    for path, value in changes.items():
        *outer, last = path.split("__")
        node = content
        for name in outer:
            node = node[name]
        node[last] = value
    return sealed(content)


def test_made_to_fit_without_a_change_is_accepted() -> None:
    certificate = calibrate(NORMAL, FAR)
    assert Certificate.from_json(contradict(certificate)) == certificate


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"normal__budget__errors": 84}, "the FPR budget is 83, not 84; calibrate again"),
        ({"anomalous__budget__errors": None}, "the FNR budget is 83, not None"),
        (
            {"normal__budget__rate": 0.04},
            "the FPR budget is for the ceiling 0.05 at delta",
        ),
        ({"normal__budget__confidence": 0.99}, "the exact confidence of the FPR is not 0.99"),
        ({"normal__n": 1999}, "the FPR budget is for 2,000 normal scores, not 1,999"),
        ({"anomalous__budget__n": 5}, "the FNR budget is for 5 anomalous scores, not 2,000"),
        ({"regime": "overlapping"}, "the regime is separated, not overlapping"),
        ({"regime": "vacuous"}, "the regime is separated, not vacuous"),
        ({"thresholds__alarm_from": "inf"}, "all 2,000 anomalous scores cross the other threshold"),
        ({"tau": 1000.0}, "tau belongs to a strategy"),
        ({"tau": "-inf"}, "tau belongs to a strategy"),
        ({"normal__budget__rate": 2.0}, "rate"),
        ({"normal__budget__delta": "inf"}, "delta"),
        ({"normal__n": -1, "normal__budget__n": -1}, "-1"),
        ({"normal__n": 10**400, "normal__budget__n": 10**400}, "more than 50 digits"),
        ({"normal__n": 10**15, "normal__budget__n": 10**15}, "there cannot be 1,000,000,000,000,000 normal"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_contradictions_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        Certificate.from_json(contradict(calibrate(NORMAL, FAR), **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"certified__max_fpr": 0.001},
        {"certified": None},
        {"normal__budget": None},
        {"thresholds__alarm_from": None},
        {"normal__crossing": 500},
        {"normal__crossing": -1},
    ],
    ids=str,
)
def test_a_promise_its_evidence_does_not_carry_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(CertificateError, match="contradicts itself"):
        Certificate.from_json(contradict(calibrate(NORMAL, FAR), **changes))
