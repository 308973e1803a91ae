from dataclasses import replace
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest

from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.thresholds import Regime
from pac_wrap.method.verify import Verification
from pac_wrap.tails.bounds import Budget
from support.strategies import Floats, calibrate_quietly, every_rule


def sample(shift: float = 2.0, n: int = 300) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(11)
    return rng.normal(0.0, 1.0, n), rng.normal(shift, 1.0, n)


@every_rule
def test_a_certificate_verifies_on_its_own_scores_in_any_order(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    verification = certificate.verify(normal[::-1], np.sort(anomalous))
    assert verification
    assert verification.differences == ()
    shown, not_shown, *_ = str(verification).splitlines()
    assert shown == "verified: these scores and labels, in any order, give this certificate"
    assert not_shown.startswith("not shown: that the detector gave these scores, that the labels are right")
    assert str(verification).endswith("a digest detects accidents, not forgery")


@every_rule
@pytest.mark.parametrize("side", ["normal", "anomalous"])
def test_one_changed_score_fails_the_verification(options: dict[str, Any], side: str) -> None:
    parts: dict[str, Any] = dict(zip(("normal", "anomalous"), sample(), strict=True))
    certificate = calibrate(**parts, **options)
    parts[side][17] = nextafter(parts[side][17], inf)
    verification = certificate.verify(**parts)
    assert not verification
    assert [text.split(" is ")[0] for text in verification.differences if "digest" in text] == [
        f"{side}.digest"
    ]
    assert str(verification).startswith("not verified: ")


@every_rule
def test_one_score_more_fails_the_verification(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    differences = certificate.verify(np.append(normal, 0.0), anomalous).differences
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
    found = names(replace(certificate, guarantee=stricter).verify(normal, anomalous))
    assert found & {"certified.max_fpr", "certified.max_fnr"}
    surer = replace(asked, delta_fpr=asked.delta_fpr / 2, delta_fnr=asked.delta_fnr / 2)
    found = names(replace(certificate, guarantee=surer).verify(normal, anomalous))
    assert found & {"normal.budget.delta", "anomalous.budget.delta"}


@every_rule
def test_another_threshold_fails_the_verification_by_one_ulp(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    for name in ("alarm_from", "clear_below"):
        value = getattr(certificate.thresholds, name)
        if value is not None:
            moved = replace(certificate.thresholds, **{name: nextafter(value, -inf)})
            found = names(replace(certificate, thresholds=moved).verify(normal, anomalous))
            assert found == {f"thresholds.{name}"}


@every_rule
def test_another_rule_fails_the_verification_by_one_ulp(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    low, high = certificate.rule.normal_below, certificate.rule.anomaly_from
    for moved, changed in (
        (Rule(nextafter(low, -inf), high), {"rule.normal_below"}),
        (Rule(low, nextafter(high, inf)), {"rule.anomaly_from"}),
        (Rule(nextafter(low, -inf), nextafter(high, -inf)), {"rule.normal_below", "rule.anomaly_from"}),
    ):
        assert names(replace(certificate, rule=moved).verify(normal, anomalous)) == changed


def without_promise(certificate: Certificate) -> Certificate:
    return replace(certificate, certified=None)


def without_budget(certificate: Certificate) -> Certificate:
    side = "normal" if certificate.fpr.budget is not None else "anomalous"
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
    found = names(change(certificate).verify(normal, anomalous))
    assert any(name in difference for difference in found)


def test_another_strategy_or_level_fails_the_verification() -> None:
    normal, anomalous = sample()
    raised = calibrate(normal, anomalous, overlap="algorithm1")
    other = replace(raised, overlap=Algorithm1(position=0.75))
    assert names(other.verify(normal, anomalous)) == {"rule.normal_below", "rule.anomaly_from"}
    # a level is told by its budgets
    level, _ = Algorithm1()._reached(raised.claim)
    assert level is not None
    higher = Algorithm1().levels(raised.guarantee, (300, 300))[level + 1]
    fpr, fnr = (Budget.of(300, promise.ceiling, promise.delta / 10) for promise in higher.promises)
    found = replace(
        raised,
        certified=higher,
        normal=replace(raised.fpr, budget=fpr),
        anomalous=replace(raised.fnr, budget=fnr),
    )
    assert {"certified.max_fpr", "normal.budget.errors", "anomalous.budget.rate"} <= names(
        found.verify(normal, anomalous)
    )
    for strategy in (Abstain(), Hold("fnr"), Hold("fpr")):
        changed = names(replace(raised, overlap=strategy).verify(normal, anomalous))
        assert changed & {"rule.normal_below", "rule.anomaly_from"}
        assert changed & {"certified.max_fpr", "certified.max_fnr"}


def test_verification_does_not_warn_and_ignores_the_version_that_wrote_the_file() -> None:
    normal, anomalous = sample()
    upside_down = calibrate_quietly(anomalous, normal)
    assert upside_down.verify(anomalous, normal)
    assert replace(upside_down, version="0.0.0", assumptions=()).verify(anomalous, normal)


def test_verification_forgives_the_last_digits_of_a_rate() -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, overlap="hold_fnr")
    assert not certificate.uncertified
    assert certificate.fpr.ceiling is not None
    rounded = replace(certificate.certified, max_fpr=certificate.fpr.ceiling * (1 + 1e-13))
    assert replace(certificate, certified=rounded).verify(normal, anomalous)
    wrong = replace(certificate.certified, max_fpr=certificate.fpr.ceiling * 0.999)
    assert names(replace(certificate, certified=wrong).verify(normal, anomalous)) == {"certified.max_fpr"}
