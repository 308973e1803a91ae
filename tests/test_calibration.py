import warnings
from dataclasses import replace
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.calibration import Verification, calibrate, calibrate_labelled, verify
from pac_wrap.certificate import Certificate
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.guarantee import Guarantee
from pac_wrap.order import is_upside_down
from pac_wrap.thresholds import Regime, Thresholds, Verdict
from strategies import (
    LARGEST,
    Floats,
    calibrate_quietly,
    every_rule,
    guarantee,
    refusal,
    scores,
    scores_of_any_type,
)

ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]


def sample(shift: float = 2.0, n: int = 300) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(11)
    return rng.normal(0.0, 1.0, n), rng.normal(shift, 1.0, n)


@given(scores_of_any_type(1, 40), scores_of_any_type(1, 40), guarantee)
def test_verdicts_on_the_calibration_scores_keep_the_budgets(
    normal: NDArray[Any], anomalous: NDArray[Any], guarantee: Guarantee
) -> None:
    certificate = calibrate_quietly(normal, anomalous, guarantee)
    alarms = np.count_nonzero(certificate.verdicts(normal) == Verdict.ANOMALY)
    misses = np.count_nonzero(certificate.verdicts(anomalous) == Verdict.NORMAL)
    for evidence, errors in ((certificate.normal, alarms), (certificate.anomalous, misses)):
        assert evidence.budget is not None
        assert errors <= (evidence.budget.errors or 0)


@given(scores(max_size=40), scores(1, 40), guarantee)
def test_the_certificate_records_what_it_was_made_of(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    certificate = calibrate_quietly(normal, anomalous, guarantee)
    assert certificate.guarantee == certificate.certified == guarantee
    assert (certificate.normal.n, certificate.anomalous.n) == (normal.size, anomalous.size)
    budgets = certificate.normal.budget, certificate.anomalous.budget
    assert budgets[0] is not None
    assert budgets[1] is not None
    too_few = budgets[0].errors is None or budgets[1].errors is None
    assert (certificate.regime is Regime.VACUOUS) == certificate.empty == too_few
    if not too_few:
        assert (certificate.regime is Regime.SEPARATED) == certificate.thresholds.separated
    assert certificate.rule == certificate.thresholds
    assert (certificate.strategy, certificate.tau, certificate.levels, certificate.level) == (None,) * 4


def test_separated_overlapping_and_vacuous() -> None:
    apart = calibrate(*sample(shift=8.0))
    assert apart.regime is Regime.SEPARATED
    assert apart.verdicts([-5.0, 4.0, 12.0]).tolist() == [0, -1, 1]
    mixed = calibrate(*sample(shift=1.0))
    assert mixed.regime is Regime.OVERLAPPING
    assert mixed.verdicts([-5.0, 0.5, 12.0]).tolist() == [0, -1, 1]
    few = calibrate(*sample(shift=8.0, n=58))
    assert few.regime is Regime.VACUOUS


@pytest.mark.parametrize("size", [0, 1, 35, 58])
def test_too_few_labels_declare_nothing_and_say_how_many_are_missing(size: int) -> None:
    few, many = np.full(size, 0.0), np.full(100, 1.0)
    certificate = calibrate(few, many)
    assert certificate.regime is Regime.VACUOUS
    assert certificate.empty
    assert certificate.thresholds == Thresholds(inf, 1.0)
    assert not (certificate.verdicts(ENDS) == Verdict.ANOMALY).any()
    sentence = f"{size} normal scores cannot certify FPR <= 0.05 at delta = 0.05; at least 59 are needed"
    assert sentence in certificate.diagnosis
    assert sentence in str(certificate)
    other = calibrate(np.full(100, -1.0), few)
    assert other.thresholds == Thresholds(nextafter(-1.0, inf), -inf)
    assert not (other.verdicts(ENDS) == Verdict.NORMAL).any()
    assert f"{size} anomalous scores cannot certify FNR <= 0.05" in str(other)


def test_too_few_labels_on_both_sides_abstain_even_at_infinity() -> None:
    certificate = calibrate([0.0, -inf], [1.0, inf])
    assert certificate.verdicts(ENDS).tolist() == [Verdict.ABSTAIN] * 5
    assert certificate.ambiguity(ENDS) == 1.0
    assert len(certificate.diagnosis) == 2


def test_no_labels_at_all_are_refused() -> None:
    message = refusal(lambda: calibrate([], []))
    assert "normal and anomalous are both empty" in message
    assert "at least one labelled score" in message
    assert "both empty" in refusal(lambda: calibrate_labelled([], []))


@given(scores(max_size=40), scores(1, 40), guarantee, st.booleans(), st.booleans())
def test_a_one_sided_promise_never_abstains(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, abstain: bool, fpr: bool
) -> None:
    asked = replace(guarantee, max_fnr=None) if fpr else replace(guarantee, max_fpr=None)
    certificate = calibrate_quietly(normal, anomalous, asked, abstain=abstain)
    verdicts = certificate.verdicts([*normal, *anomalous, *ENDS])
    assert set(verdicts.tolist()) <= {0, 1}
    assert certificate.strategy is None
    if certificate.regime is Regime.VACUOUS:
        # the FPR can only be kept by no alarm at all, the FNR only by nothing but alarms
        assert set(verdicts.tolist()) == {0 if fpr else 1}


def test_integers_too_large_for_a_double_are_ties() -> None:
    normal = np.arange(2**53, 2**53 + 100)
    certificate = calibrate(normal, normal + 400, Guarantee(0.1, 0.1))
    assert certificate.normal.budget is not None
    assert certificate.normal.budget.errors is not None
    assert np.count_nonzero(certificate.verdicts(normal) == 1) <= certificate.normal.budget.errors


@every_rule
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_scores_are_never_modified_and_may_be_read_only(options: dict[str, Any], kind: Any) -> None:
    normal, anomalous = (part.astype(kind) for part in sample())
    copies = normal.copy(), anomalous.copy()
    normal.flags.writeable = anomalous.flags.writeable = False
    certificate = calibrate(normal, anomalous, **options)
    certificate.verdicts(normal)
    certificate.prediction_sets(anomalous)
    assert verify(certificate, normal, anomalous)
    assert np.array_equal(normal, copies[0])
    assert np.array_equal(anomalous, copies[1])
    writeable = calibrate(*copies, **options)
    assert writeable == certificate
    assert np.array_equal(normal, copies[0])
    assert np.array_equal(anomalous, copies[1])


@every_rule
def test_the_order_of_the_scores_does_not_matter(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    assert calibrate(normal[::-1], np.sort(anomalous), **options) == certificate
    assert calibrate(list(normal), tuple(anomalous), **options) == certificate


@every_rule
@pytest.mark.parametrize("names", [(0, 1), (1, -1), ("ok", "attack")])
def test_one_array_with_labels_gives_the_same_certificate(options: dict[str, Any], names: Any) -> None:
    normal, anomalous = sample()
    mixed = np.random.default_rng(2).permutation(600)
    labels = np.repeat(names, 300)[mixed]
    together = np.concatenate([normal, anomalous])[mixed]
    found = calibrate_labelled(together, labels, anomaly_label=names[1], **options)
    assert found == calibrate(normal, anomalous, **options)


def test_one_missing_class_is_vacuous() -> None:
    certificate = calibrate_labelled(np.arange(100.0), np.zeros(100))
    assert certificate.anomalous.n == 0
    assert certificate.regime is Regime.VACUOUS
    assert certificate.thresholds.clear_below == -inf


def test_scores_and_labels_are_checked() -> None:
    message = refusal(lambda: calibrate_labelled(np.zeros(1000), [0, 1]))
    assert message == "scores and labels must have the same length, got 1,000 and 2"
    assert "got 2;" in refusal(lambda: calibrate_labelled([0.1, 0.2], [0, 2]))
    assert "normal must not contain NaN" in refusal(lambda: calibrate([float("nan")], [1.0]))
    assert "anomalous must not contain NaN" in refusal(lambda: calibrate([1.0], [float("nan")]))
    assert "scores must not contain NaN" in refusal(lambda: calibrate_labelled([float("nan"), 1.0], [0, 1]))
    certificate = calibrate([1.0], [2.0])
    assert "scores must not contain NaN" in refusal(lambda: certificate.verdicts([float("nan")]))


def test_options_are_those_of_the_strategy() -> None:
    normal, anomalous = sample()
    assert "growth must be" in refusal(
        lambda: calibrate(normal, anomalous, abstain=False, growth="triple")  # type: ignore[arg-type]
    )
    assert "strategy must be" in refusal(
        lambda: calibrate(normal, anomalous, abstain=False, strategy="best")  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("options", [{}, {"abstain": False}, {"guarantee": Guarantee(max_fnr=None)}])
def test_upside_down_scores_raise_a_warning_that_says_what_to_do(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    with pytest.warns(UpsideDownWarning, match=r"AUC 0\.0\d\d.*negate them"):
        calibrate(-normal, -anomalous, **options)
    with pytest.warns(UpsideDownWarning, match="anomalies score lower"):
        calibrate_labelled([1.0, 0.0] * 7, [0, 1] * 7, **options)


@given(scores(1, 24), scores(1, 24))
def test_the_warning_comes_exactly_if_the_auc_is_significantly_below_one_half(
    normal: Floats, anomalous: Floats
) -> None:
    above = np.count_nonzero(anomalous[:, None] > normal)
    below = np.count_nonzero(anomalous[:, None] < normal)
    area = 0.5 + (above - below) / (2 * normal.size * anomalous.size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrate(normal, anomalous)
    expected = [UpsideDownWarning] if is_upside_down(area, normal.size, anomalous.size) else []
    assert [warning.category for warning in caught] == expected


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [([1.0, 1.0], [1.0]), ([1.0, 3.0], [2.0]), ([5.0], []), ([], [5.0]), ([-inf, inf], [-inf, inf])],
)
def test_scores_that_are_not_upside_down_raise_none(normal: list[float], anomalous: list[float]) -> None:
    # warnings are errors here, so a warning would end the test
    assert calibrate(normal, anomalous).regime is Regime.VACUOUS


@every_rule
def test_a_certificate_verifies_on_its_own_scores_in_any_order(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    verification = verify(certificate, normal[::-1], np.sort(anomalous))
    assert verification
    assert verification.differences == ()
    shown, not_shown, *_ = str(verification).splitlines()
    assert shown == "verified: these scores and labels, in any order, give this certificate"
    assert not_shown.startswith("not shown: that the detector gave these scores, that the labels are right")
    assert str(verification).endswith("a digest finds accidents, not forgers")


@every_rule
@pytest.mark.parametrize("side", ["normal", "anomalous"])
def test_one_changed_score_fails_the_verification(options: dict[str, Any], side: str) -> None:
    parts: dict[str, Any] = dict(zip(("normal", "anomalous"), sample(), strict=True))
    certificate = calibrate(**parts, **options)
    parts[side][17] = nextafter(parts[side][17], inf)
    verification = verify(certificate, **parts)
    assert not verification
    assert [text.split(" is ")[0] for text in verification.differences if "digest" in text] == [
        f"{side}.digest"
    ]
    assert str(verification).startswith("not verified: ")


@every_rule
def test_one_score_more_fails_the_verification(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    differences = verify(certificate, np.append(normal, 0.0), anomalous).differences
    assert "normal.n is 300 in the certificate, 301 from the scores" in differences


def names(verification: Verification) -> set[str]:
    assert not verification
    return {text.split(" is ")[0] for text in verification.differences}


@every_rule
def test_another_guarantee_fails_the_verification(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    asked = certificate.guarantee
    stricter = replace(
        asked,
        max_fpr=None if asked.max_fpr is None else asked.max_fpr - 0.01,
        max_fnr=None if asked.max_fnr is None else asked.max_fnr - 0.01,
    )
    found = names(verify(replace(certificate, guarantee=stricter), normal, anomalous))
    assert found & {"certified.max_fpr", "certified.max_fnr"}
    surer = replace(asked, delta_fpr=asked.delta_fpr / 2, delta_fnr=asked.delta_fnr / 2)
    found = names(verify(replace(certificate, guarantee=surer), normal, anomalous))
    assert found & {"normal.budget.delta", "anomalous.budget.delta"}


@every_rule
def test_another_threshold_fails_the_verification_by_one_ulp(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    for name in ("alarm_from", "clear_below"):
        value = getattr(certificate.thresholds, name)
        if value is not None:
            moved = replace(certificate.thresholds, **{name: nextafter(value, -inf)})
            found = names(verify(replace(certificate, thresholds=moved), normal, anomalous))
            assert found == {f"thresholds.{name}"}
    if certificate.tau is not None:
        moved_tau = replace(certificate, tau=nextafter(certificate.tau, -inf))
        assert names(verify(moved_tau, normal, anomalous)) == {"tau"}


def without_promise(certificate: Certificate) -> Certificate:
    return replace(certificate, certified=None)


def without_budget(certificate: Certificate) -> Certificate:
    side = "normal" if certificate.normal.budget is not None else "anomalous"
    return replace(certificate, **{side: replace(getattr(certificate, side), budget=None)})


def with_another_regime(certificate: Certificate) -> Certificate:
    return replace(certificate, regime=Regime.VACUOUS)


def with_more_confidence(certificate: Certificate) -> Certificate:
    certified = certificate.certified
    assert certified is not None
    return replace(certificate, certified=replace(certified, delta_fpr=certified.delta_fpr / 2))


@every_rule
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (without_promise, "certified"),
        (without_budget, "budget"),
        (with_another_regime, "regime"),
        (with_more_confidence, "certified.delta_fpr"),
    ],
)
def test_another_claim_fails_the_verification(options: dict[str, Any], change: Any, name: str) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    found = names(verify(change(certificate), normal, anomalous))
    assert any(name in difference for difference in found)


def test_another_strategy_or_level_fails_the_verification() -> None:
    normal, anomalous = sample()
    relaxed = calibrate(normal, anomalous, abstain=False)
    assert relaxed.strategy is not None
    assert relaxed.level is not None
    other = replace(relaxed, strategy=replace(relaxed.strategy, position=0.75))
    assert names(verify(other, normal, anomalous)) == {"tau"}
    assert names(verify(replace(relaxed, level=relaxed.level + 1), normal, anomalous)) == {"level"}
    assert "tau" in names(verify(replace(relaxed, strategy=None), normal, anomalous))


def test_verification_does_not_warn_and_ignores_the_version_that_wrote_the_file() -> None:
    normal, anomalous = sample()
    upside_down = calibrate_quietly(anomalous, normal)
    assert verify(upside_down, anomalous, normal)
    assert verify(replace(upside_down, version="0.0.0", assumptions=()), anomalous, normal)


def test_verification_forgives_the_last_digits_of_a_rate() -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, abstain=False, strategy="hold_fnr")
    assert certificate.certified is not None
    assert certificate.certified.max_fpr is not None
    rounded = replace(certificate.certified, max_fpr=certificate.certified.max_fpr * (1 + 1e-13))
    assert verify(replace(certificate, certified=rounded), normal, anomalous)
    wrong = replace(certificate.certified, max_fpr=certificate.certified.max_fpr * 0.999)
    assert names(verify(replace(certificate, certified=wrong), normal, anomalous)) == {"certified.max_fpr"}


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_both_classes_at_once_give_the_same(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    normal, anomalous = (random.normal(shift, 1.0, 200_000).astype(kind) for shift in (0.0, 3.0))
    alone = calibrate(normal, anomalous)
    monkeypatch.setattr("pac_wrap.calibration._MANY", 1)
    assert calibrate(normal, anomalous) == alone
    anomalous[199_999] = np.nan
    assert "anomalous must not contain NaN, got 1 of 200,000" in refusal(lambda: calibrate(normal, anomalous))
