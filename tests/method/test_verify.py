from dataclasses import replace
from math import inf, nextafter
from typing import Any, Final, Literal

import numpy as np
import pytest

from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import Abstain, Hold
from pac_wrap.method.strategies.raising import Algorithm1
from pac_wrap.method.verify import Verification
from pac_wrap.tails.bounds import Budget
from support.kept import with_ceiling, with_clause
from support.strategies import Floats, calibrate_quietly, every_rule

SIDES: Final[tuple[Literal["fpr"], Literal["fnr"]]] = ("fpr", "fnr")
LABEL: Final = {"fpr": "normal", "fnr": "anomalous"}


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
    assert found & {"normal.asked.ceiling", "anomalous.asked.ceiling"}
    surer = replace(asked, delta_fpr=asked.delta_fpr / 2, delta_fnr=asked.delta_fnr / 2)
    found = names(replace(certificate, guarantee=surer).verify(normal, anomalous))
    assert found & {"normal.budget.delta", "anomalous.budget.delta"}


@every_rule
def test_another_threshold_fails_the_verification_by_one_ulp(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    for side in SIDES:
        value = getattr(certificate, side).threshold
        if value is not None:
            moved = with_clause(certificate, side, threshold=nextafter(value, -inf))
            assert names(moved.verify(normal, anomalous)) == {f"{LABEL[side]}.threshold"}


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


def promised(certificate: Certificate) -> Literal["fpr", "fnr"]:
    return "fnr" if certificate.fpr.certified is None else "fpr"


def without_promise(certificate: Certificate) -> Certificate:
    return with_clause(certificate, promised(certificate), certified=None)


def without_budget(certificate: Certificate) -> Certificate:
    return with_clause(certificate, promised(certificate), budget=None)


def with_more_confidence(certificate: Certificate) -> Certificate:
    side = promised(certificate)
    promise = getattr(certificate, side).certified
    return with_clause(certificate, side, certified=replace(promise, delta=promise.delta / 2))


@every_rule
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (without_promise, "certified"),
        (without_budget, "budget"),
        (with_more_confidence, "certified.delta"),
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
    found = with_clause(raised, "fpr", budget=fpr, certified=higher.fpr)
    found = with_clause(found, "fnr", budget=fnr, certified=higher.fnr)
    assert {"normal.certified.ceiling", "normal.budget.errors", "anomalous.budget.rate"} <= names(
        found.verify(normal, anomalous)
    )
    for strategy in (Abstain(), Hold("fnr"), Hold("fpr")):
        changed = names(replace(raised, overlap=strategy).verify(normal, anomalous))
        assert changed & {"rule.normal_below", "rule.anomaly_from"}
        assert changed & {"normal.certified.ceiling", "anomalous.certified.ceiling"}


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
    ceiling = certificate.fpr.ceiling
    assert with_ceiling(certificate, "fpr", ceiling * (1 + 1e-13)).verify(normal, anomalous)
    wrong = with_ceiling(certificate, "fpr", ceiling * 0.999)
    assert "normal.certified.ceiling" in names(wrong.verify(normal, anomalous))
