"""Certificates that were tampered with and sealed again: refused, or nothing in them is false."""

import json
import re
from collections import Counter
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, Guarantee, calibrate
from pac_wrap.method.calibrate import WORDS
from pac_wrap.method.certificate import inconsistencies
from pac_wrap.method.promise import Assumption
from pac_wrap.tails.bounds import Budget
from support.believable import belongs_together, outcome
from support.resealed import certificates, mutants, said, tampered
from support.shell import invoke, write
from support.slow import slow_but
from support.strategies import LARGEST, calibrate_quietly

RNG = np.random.default_rng(0)
NORMAL, FAR, NEAR = RNG.normal(0, 1, 2000), RNG.normal(6, 1, 2000), RNG.normal(1, 1, 2000)


def test_real_certificates_of_every_kind_are_believed() -> None:
    kinds = {(one.overlap.word, one.regime) for one in certificates()}
    assert len(kinds) >= 9
    assert {word for word, _ in kinds} == set(WORDS)
    for certificate in certificates():
        assert belongs_together(certificate) == []
        assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("count", slow_but(1, [300, 1500]))
def test_what_was_tampered_with_is_refused_or_nothing_in_it_is_false(count: int) -> None:
    outcomes = Counter(outcome(what, text) for what, text in mutants(seed=0, count=count))
    # both ways are taken often enough to tell something
    assert outcomes["refused"] > count * 2 // 3
    assert outcomes["nothing in it is false"] > count // 30


def test_the_oracle_would_see_each_kind_of_falsehood() -> None:
    overlapping = calibrate(NORMAL, NEAR)
    for changes in (
        {"normal.beyond": 0},
        {"normal.beyond": None},
        {"normal.budget": 84},
        {"rule.anomaly_from": 10.0},
        {"rule.normal_below": "-inf"},
        {"rule": {"normal_below": 1.0, "anomaly_from": 1.0}},
        {"overlap": {"name": "hold", "rate": "fnr", "always": True}},
        {"normal.threshold": None},
        {"normal.certified.ceiling": 0.01},
        {"anomalous.digest": "F" * 16},
    ):
        text = json.loads(tampered(overlapping, changes))
        forged = forge(overlapping, text)
        assert belongs_together(forged) != [], changes
        assert list(inconsistencies(forged)) != [], changes


def forge(like: Certificate, content: dict[str, Any]) -> Certificate:
    """Return what a reader that checks nothing would make of a content."""
    return like._read(json.dumps(content))


FROM: dict[str, Certificate] = {
    "separated": calibrate(NORMAL, FAR, overlap="abstain_always"),
    "single": calibrate(NORMAL, FAR),
    "overlapping": calibrate(NORMAL, NEAR),
    "few": calibrate(NORMAL[:20], FAR[:20]),
    "one-sided": calibrate(NORMAL, FAR, Guarantee(max_fnr=None)),
    "empty class": calibrate(NORMAL, [], Guarantee(max_fnr=None)),
    "relaxed": calibrate(NORMAL, NEAR, overlap="algorithm1"),
    "not reached": calibrate_quietly(FAR, NORMAL, overlap="algorithm1"),
    "raised": calibrate(NORMAL, NEAR, overlap="raise"),
    "raised in vain": calibrate_quietly(FAR, NORMAL, overlap="raise"),
    "hold_fnr": calibrate(NORMAL, NEAR, overlap="hold_fnr"),
    "hold_fpr": calibrate(NORMAL, NEAR, overlap="hold_fpr"),
}


ALGORITHM_1 = json.loads(FROM["relaxed"].to_json())["overlap"]
BUDGET_OF_THE_FIRST = {"rate": 0.05, "delta": 0.03102}
ERRORS_OF_THE_FIRST = Budget.of(2000, 0.05, 0.03102).errors
CERTIFIED, UNCERTIFIED = (
    {f"{label}.certified": {"ceiling": ceiling} for label in ("normal", "anomalous")}
    for ceiling in (0.05, None)
)
AT_INF = {"normal_below": "inf", "anomaly_from": "inf"}
AT_ZERO = {"normal_below": 0.0, "anomaly_from": 0.0}
EVERYTHING_ABSTAINED = {"normal_below": "-inf", "anomaly_from": "inf"}
LOW = FROM["separated"].rule.normal_below
BESIDE = nextafter(json.loads(FROM["raised"].to_json())["clauses"][0]["found_at"]["rate"], 1.0)
SWAPPED = {"normal_below": 2.0, "anomaly_from": nextafter(2.0, 1.0)}


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        # the three that were accepted
        ("overlapping", {"normal.beyond": 0}, "imply another regime"),
        ("overlapping", {"anomalous.beyond": 0}, "imply another regime"),
        ("separated", {"level": 3}, "certificate.level must be absent: it is unknown, got 3"),
        ("separated", {"levels": 3}, "certificate.levels must be absent: it is unknown, got 3"),
        ("separated", {"normal.digest": "any text"}, "'any text' is not a digest of normal scores"),
        # digests
        ("separated", {"normal.digest": "0" * 15}, "is not a digest"),
        ("separated", {"normal.digest": "A" * 16}, "is not a digest"),
        ("separated", {"normal.digest": "0" * 15 + "\n"}, "is not a digest"),
        ("empty class", {"anomalous.digest": "1" * 16}, "the digest of no anomalous scores is 0000"),
        # what belongs to a strategy
        ("separated", {"tau": 3.0}, "certificate.tau must be absent: it is unknown, got 3.0"),
        ("hold_fnr", {"overlap.step": 0.1},
         "certificate.overlap.step must be absent: it is unknown, got 0.1"),
        ("hold_fpr", {"overlap.name": "algorithm1"}, "overlap.step must be there, got 'nothing'"),
        ("hold_fpr", {"overlap.rate": "both"}, "overlap.rate must be one of \\('fnr', 'fpr'\\), got 'both'"),
        ("hold_fpr", {"overlap.rate": "fnr"}, "the budget of normal points"),
        ("hold_fnr", {"overlap.rate": "fpr"}, "the budget of normal points"),
        ("hold_fpr", {"rule": None}, "certificate.rule must be an object, got None"),
        ("hold_fpr", {"rule.anomaly_from": None}, "certificate.rule.anomaly_from must be a number, got None"),
        ("hold_fnr", UNCERTIFIED, "the certified ceilings do not follow"),
        ("relaxed", {"rule": EVERYTHING_ABSTAINED}, "does not follow from alarm_from and clear_below"),
        ("relaxed", UNCERTIFIED, "the certified ceilings do not follow"),
        ("relaxed", UNCERTIFIED | {"rule": EVERYTHING_ABSTAINED}, "the certified ceilings do not follow"),
        # the level is told by the budgets, which have to be those of one and the same
        ("relaxed", {"normal.found_at.rate": 0.051}, "the budget of normal points"),
        ("relaxed", {"normal.found_at.rate": 0.05}, "the budget of normal points"),
        ("relaxed", {"normal.found_at.rate": 0.15, "anomalous.found_at.rate": 0.15}, "budget of normal"),
        ("relaxed", {"normal.found_at.delta": 0.05}, "the budget of normal points"),
        ("relaxed", {"normal.budget": None}, "the budget of normal points"),
        ("relaxed", {"overlap.step": 0.09}, "the budget of normal points"),
        ("relaxed", {"overlap.step": 0.0001}, "the budget of normal points"),
        ("relaxed", {"overlap.step": 1e-5}, "overlap is not possible: step must be at least 0.0001"),
        ("relaxed", {"overlap.growth": "double"}, "the budget of normal points"),
        ("relaxed", {"overlap.raised": "fpr"}, "the budget of normal points"),
        ("relaxed", {"overlap.relax_delta": True}, "the budget of normal points"),
        ("relaxed", {"overlap.relax_delta": 1}, "overlap.relax_delta must be of type bool, got 1"),
        ("relaxed", {"overlap": None}, "certificate.overlap must be a value, got None"),
        ("relaxed", {"overlap": "algorithm1"}, "certificate.overlap must be an object, got 'algorithm1'"),
        ("relaxed", {"overlap": {}}, "certificate.overlap.name must be there, got 'nothing'"),
        ("relaxed", {"overlap": {"name": "relax"}},
         "overlap.name must be one of 'abstain', 'raise', 'hold', 'algorithm1'"),
        ("relaxed", {"overlap": {"name": "raise", "highest": 0.5}}, "the budget of normal points"),
        ("relaxed", {"overlap": {"name": "abstain"}}, "overlap.always must be there, got 'nothing'"),
        ("relaxed", {"overlap": {"name": "abstain", "always": False, "position": 0.5}},
         "the budget of normal points"),
        ("relaxed", {"overlap": {"name": "hold", "rate": "fnr", "always": True}},
         "the budget of normal points"),
        ("relaxed", {"overlap.position": 0.25}, "does not follow from alarm_from and clear_below"),
        ("relaxed", {"overlap.position": 1.5}, "position must lie between 0 .* got 1.5"),
        ("relaxed", {"overlap.correction": None}, "the budget of normal points"),
        ("separated", {"overlap": ALGORITHM_1}, "the budget of normal points"),
        ("not reached", {"rule": AT_ZERO}, "does not follow from alarm_from"),
        ("not reached", CERTIFIED, "the certified ceilings do not follow"),
        ("not reached", {"normal.found_at": BUDGET_OF_THE_FIRST, "anomalous.found_at": BUDGET_OF_THE_FIRST,
                         "normal.budget": ERRORS_OF_THE_FIRST, "anomalous.budget": ERRORS_OF_THE_FIRST},
         "the budget of normal points"),
        ("one-sided", {"overlap": ALGORITHM_1}, "algorithm1 needs two ceilings, and there is only one"),
        ("one-sided", {"overlap": {"name": "hold", "rate": "fpr", "always": True}},
         "hold_fpr needs two ceilings, and there is"),
        # one threshold where the classes are separated
        ("single", {"overlap.always": True}, "the rule does not follow"),
        ("separated", {"overlap.always": False}, "the rule does not follow"),
        ("single", {"overlap.position": -0.5}, "position must lie between 0 .* got -0.5"),
        ("single", {"overlap.always": 1}, "overlap.always must be of type bool, got 1"),
        ("single", {"rule": AT_ZERO}, "does not lie between"),
        ("single", {"rule": {"normal_below": 9.0, "anomaly_from": 9.0}}, "does not lie between"),
        ("single", {"rule": EVERYTHING_ABSTAINED}, "does not lie between alarm_from and clear_below"),
        # the ladder
        ("raised", {"overlap.highest": 0.1}, "the budget of normal points"),
        ("raised", {"overlap.highest": 1.0}, "highest must lie strictly between 0 and 1, got 1.0"),
        ("raised", {"separable": None}, "separable must be true or false"),
        ("raised", {"normal.certified.ceiling": 0.05}, "the certified ceilings do not follow"),
        ("raised", CERTIFIED, "the certified ceilings do not follow"),
        ("raised", UNCERTIFIED, "the certified ceilings do not follow"),
        ("raised", {"normal.found_at.rate": 0.05}, "the budget of normal points"),
        ("raised", {"normal.found_at.delta": 0.05}, "the budget of normal points"),
        ("raised", {"anomalous.found_at.delta": 0.04}, "the budget of anomalous points"),
        ("raised", {"normal.budget": None}, "the budget of normal points"),
        ("raised", {"normal.n": 10**9}, "takes at most 100,000,000 labels"),
        ("raised", {"rule": AT_ZERO}, "does not follow from alarm_from and clear_below"),
        ("raised in vain", {"rule": AT_ZERO}, "does not follow from alarm_from"),
        ("raised in vain", CERTIFIED, "the certified ceilings do not follow"),
        ("raised", {"normal.found_at.rate": BESIDE}, "is not that of the certified ceiling"),
        ("hold_fnr", {"normal.beyond": -1}, "-1 normal points lie beyond a threshold"),
        ("one-sided", {"overlap": {"name": "raise", "highest": 0.5}}, "raise needs two ceilings"),
        ("hold_fnr", {"separable": True}, "separable must be absent"),
        # the rule: swapped, moved by one double, of one threshold where there are two
        ("separated", {"rule": SWAPPED}, "normal_below must not exceed anomaly_from"),
        ("overlapping", {"rule": SWAPPED}, "normal_below must not exceed anomaly_from"),
        ("separated", {"rule.normal_below": "nan"}, "rule.normal_below must be a number, 'inf' or '-inf'"),
        ("separated", {"rule.anomaly_from": "inf"}, "does not follow from alarm_from and clear_below"),
        ("separated", {"rule": EVERYTHING_ABSTAINED}, "does not follow from alarm_from and clear_below"),
        ("one-sided", {"rule.anomaly_from": "inf"}, "does not follow from alarm_from and clear_below"),
        ("few", {"rule": AT_ZERO}, "the rule does not follow"),
        ("separated", {"rule._steps": None}, "certificate.rule._steps must be absent"),
        # the threshold that is held
        ("hold_fnr", {"rule": AT_ZERO}, "does not follow from alarm_from"),
        ("hold_fpr", {"rule": AT_ZERO}, "does not follow from alarm_from"),
        ("hold_fnr", {"anomalous.threshold": "inf", "rule": AT_INF},
         "the threshold of anomalous points"),
        ("hold_fnr", {"anomalous.threshold": "inf", "rule": AT_INF,
                      "normal.threshold": "inf", "anomalous.beyond": 2000},
         "does not lie between"),
        ("hold_fnr", {"anomalous.threshold": None}, "and a budget, or neither"),
        ("hold_fpr", {"normal.threshold": None}, "and a budget, or neither"),
        ("not reached", {"normal.threshold": 0.0, "anomalous.threshold": 1.0, "normal.beyond": 0,
                         "anomalous.beyond": 0}, "the certified ceilings do not follow"),
        ("hold_fnr", {"normal.beyond": 1}, "the budget of normal points"),
        ("hold_fnr", {"normal.found_at.rate": 0.01}, "the budget of normal points"),
        ("hold_fnr", {"normal.found_at.rate": 0.99, "normal.certified.ceiling": 0.99}, "budget of normal"),
        ("hold_fnr", {"normal.budget": None, "normal.certified.ceiling": None}, "budget of normal"),
        # thresholds, their budgets and the regime
        ("few", {"normal.threshold": 1.0}, "the threshold of normal points"),
        ("few", {"anomalous.threshold": 1.0}, "the threshold of anomalous points"),
        ("few", {"normal.threshold": 1.0, "rule.anomaly_from": 1.0},
         "the threshold of normal points"),
        ("few", {"anomalous.threshold": 1.0, "rule.normal_below": 1.0},
         "the threshold of anomalous points"),
        ("few", {"normal.beyond": 3}, "all normal points lie beyond"),
        ("few", {"anomalous.beyond": 3}, "all anomalous points lie beyond"),
        ("few", {"regime": "overlapping"}, "certificate.regime must be absent: it is unknown"),
        ("separated", {"normal.threshold": "-inf"},
         "alarm_from must lie above some score, so it cannot be -inf"),
        ("separated", {"normal.threshold": "-inf", "rule.normal_below": "-inf"},
         "alarm_from must lie above some score"),
        ("separated", {"anomalous.threshold": None}, "and a budget, or neither"),
        ("separated", {"anomalous.threshold": None, "rule.anomaly_from": LOW},
         "and a budget, or neither"),
        ("separated", {"normal.beyond": None}, "normal points beyond a threshold"),
        ("one-sided", {"normal.beyond": 3}, "normal points beyond a threshold"),
        ("one-sided", {"anomalous.beyond": 3, "normal.beyond": 3}, "normal points beyond a threshold"),
        ("separated", {"normal.found_at.delta": 0.1}, "the budget of normal points"),
        ("separated", {"normal.delta": 0.01}, "the budget of normal points"),
        ("separated", {"normal.certified.delta": 0.01}, "the certified ceilings do not follow"),
        ("one-sided", {"anomalous.budget": 3}, "the budget of 2,000 anomalous points cannot be 3"),
        # sizes
        ("separated", {"normal.n": 10**15}, "there cannot be 1,000,000,000"),
        ("separated", {"normal.n": -5}, "there cannot be -5 normal scores"),
        ("one-sided", {"anomalous.n": 2**64}, "there cannot be 18,446,744,073,709,551,616"),
        ("one-sided", {"normal.n": 0, "anomalous.n": 0, "normal.budget": None, "normal.digest": "0" * 16,
                       "anomalous.digest": "0" * 16}, "there is no score in either class"),
        # our own words, and who wrote them
        ("separated", {"assumptions": [1, 2]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [3, 2, 1]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [4, 5, 2]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [4, 2]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [99]}, "assumptions must be one that is known, got 99"),
        ("separated", {"assumptions": ["\x1b[2Jall is well"]}, r"one that is known, got '\\x1b\[2Jall"),
        ("separated", {"version": "\x1b[2J"}, r"'\\x1b\[2J' is not a version of pac-wrap-ad"),
        ("separated", {"version": "0.1.0\n"}, r"'0.1.0\\n' is not a version"),
        ("separated", {"version": ""}, "'' is not a version"),
        ("separated", {"version": "1" * 201}, "version must be at most 200 characters long"),
        # numbers that decimals and floats do not hold
        ("separated", {"normal.ceiling": 1e-300}, "max_fpr must be at least 1e-15"),
        ("separated", {"normal.delta": 10**49}, "delta_fpr must lie strictly between 0 and 1"),
        ("separated", {"rule.anomaly_from": 10**51}, "a number has more than 50 digits"),
    ],
)  # fmt: skip  # a row is one line
def test_a_contradiction_is_refused_with_its_reason(kind: str, changes: dict[str, Any], reason: str) -> None:
    assert re.search(reason, said(tampered(FROM[kind], changes))), said(tampered(FROM[kind], changes))


REASONS = "does not follow from alarm_from and clear_below|does not lie between alarm_from and clear_below"


@pytest.mark.parametrize("name", ["normal_below", "anomaly_from"])
@pytest.mark.parametrize("towards", [-inf, inf])
@pytest.mark.parametrize(
    "kind", ["separated", "overlapping", "one-sided", "relaxed", "raised", "hold_fnr", "hold_fpr"]
)
def test_a_rule_that_is_off_by_one_double_is_refused(kind: str, name: str, towards: float) -> None:
    rule = FROM[kind].rule
    edge = nextafter(getattr(rule, name), towards)
    sentence = said(tampered(FROM[kind], {f"rule.{name}": edge}))
    if rule.single and (name == "normal_below") == (towards == inf):
        assert "normal_below must not exceed anomaly_from" in sentence
    else:
        assert "does not follow from alarm_from and clear_below" in sentence
    # also where both move together, and stay one threshold
    both = {f"rule.{one}": nextafter(getattr(rule, one), towards) for one in ("normal_below", "anomaly_from")}
    assert re.search(REASONS, said(tampered(FROM[kind], both)))


@pytest.mark.parametrize("kind", ["separated", "overlapping"])
def test_a_rule_whose_ends_are_exchanged_is_refused(kind: str) -> None:
    rule = FROM[kind].rule
    exchanged = {"rule.normal_below": rule.anomaly_from, "rule.anomaly_from": rule.normal_below}
    sentence = said(tampered(FROM[kind], exchanged))
    assert "certificate.rule is not possible: normal_below must not exceed anomaly_from" in sentence


@pytest.mark.parametrize("kind", [kind for kind in FROM if kind != "single"])
def test_the_rule_of_another_certificate_is_refused(kind: str) -> None:
    for other in FROM.values():
        if other.rule != FROM[kind].rule:
            stolen = json.loads(other.to_json())["rule"]
            assert re.search(REASONS, said(tampered(FROM[kind], {"rule": stolen})))


def test_a_rule_is_that_of_the_type_of_the_scores() -> None:
    certificate = calibrate(NORMAL.astype(np.float32), FAR.astype(np.float32), overlap="abstain_always")
    assert certificate.rule != certificate.thresholds.rule
    plain = certificate.thresholds
    unrounded = {"rule.normal_below": plain.alarm_from, "rule.anomaly_from": plain.clear_below}
    assert re.search(REASONS, said(tampered(certificate, unrounded)))


def test_the_last_digits_of_a_bound_may_differ_but_it_must_carry_its_errors() -> None:
    certificate = FROM["hold_fnr"]
    assert certificate.fpr.budget is not None
    rate = certificate.fpr.budget.rate
    for factor, errors in ((1 + 1e-12, None), (1 - 1e-10, certificate.fpr.beyond)):
        changes = {"normal.found_at.rate": rate * factor, "normal.certified.ceiling": rate * factor}
        text = tampered(certificate, changes)
        if errors is None:
            assert belongs_together(Certificate.from_json(text)) == []
        else:
            assert f"the budget of normal points is {errors - 1}, not {errors}" in said(text)


def test_a_normal_score_at_the_largest_double_leaves_no_room_for_a_threshold() -> None:
    # alarm_from would have to lie above it, where only inf is left, which never alarms
    normal, anomalous = np.full(100, LARGEST), np.full(100, inf)
    certificate = calibrate(normal, anomalous)
    assert certificate.regime.value == "overlapping"
    assert certificate.fpr.beyond == 0
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_deltas_that_doubling_would_carry_beyond_every_double_are_levels_too() -> None:
    asked = Guarantee(0.3, 0.3, 5e-324, 0.5)
    certificate = calibrate(
        NORMAL, NEAR, asked, overlap=Algorithm1(relax_delta=True, growth="double", correction=None)
    )
    assert certificate.overlap.tried(asked, certificate.claim.sizes) > 900
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_show_of_what_was_tampered_with_prints_no_control_character(form: str, tmp_path: Path) -> None:
    for what, text in mutants(seed=1, count=60):
        done = invoke("show", write(tmp_path / "c.json", text), "--format", form)
        assert done.code in (0, 2), what
        assert (done.out + done.err).replace("\n", "").isprintable(), what
        assert done.err.count("\n") == (done.code == 2), what


def test_the_numbers_of_assumptions_are_given_out_for_ever() -> None:
    numbers = {"INDEPENDENT": 1, "HELD_OUT": 2, "NO_SHIFT": 3, "MIXING": 4, "STATIONARY": 5}
    numbers |= {"ONE_SOURCE": 7, "BOUNDED_SHIFT": 8, "LABELS": 9, "WEIGHTS": 10, "POOLED": 11}
    numbers |= {"TRAFFIC": 12, "STEADY": 13, "REVIEWED": 14, "ANOMALIES": 15, "APART": 16, "AUDITED": 17}
    numbers |= {"UNITS": 18, "UNITS_APART": 19, "ONE_EACH": 20}  # 6 was that of subjects
    assert {one.name: one.value for one in Assumption} == numbers
    assert [f"{one}" for one in FROM["few"].assumptions][2] == "the distribution of each class does not shift"
    assert len({str(one) for one in Assumption}) == len(Assumption)
