"""Certificates that were tampered with and sealed again: refused, or nothing in them is false."""

import json
import re
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from believable import belongs_together, outcome
from pac_wrap import Certificate, Guarantee, calibrate
from pac_wrap.assumptions import Assumption
from pac_wrap.certificate import _inconsistencies
from resealed import certificates, mutants, said, tampered
from shell import invoke, write
from strategies import LARGEST, calibrate_quietly

RNG = np.random.default_rng(0)
NORMAL, FAR, NEAR = RNG.normal(0, 1, 2000), RNG.normal(6, 1, 2000), RNG.normal(1, 1, 2000)


def test_real_certificates_of_every_kind_are_believed() -> None:
    kinds = {(one.strategy and one.strategy.name, one.regime) for one in certificates()}
    assert len(kinds) >= 9
    for certificate in certificates():
        assert belongs_together(certificate) == []
        assert Certificate.from_json(certificate.to_json()) == certificate


def test_what_was_tampered_with_is_refused_or_nothing_in_it_is_false() -> None:
    outcomes = Counter(outcome(what, text) for what, text in mutants(seed=0, count=1500))
    # both ways are taken often enough to tell something
    assert outcomes["refused"] > 1000
    assert outcomes["nothing in it is false"] > 50


def test_the_oracle_would_see_each_kind_of_falsehood() -> None:
    overlapping = calibrate(NORMAL, NEAR)
    for changes in (
        {"normal.crossing": 0},
        {"normal.crossing": None},
        {"normal.budget.errors": 84},
        {"normal.budget.confidence": 0.5},
        {"regime": "separated"},
        {"tau": 1.0},
        {"thresholds.alarm_from": None},
        {"certified.max_fpr": 0.01},
        {"anomalous.digest": "F" * 16},
    ):
        text = json.loads(tampered(overlapping, changes))
        forged = forge(overlapping, text)
        assert belongs_together(forged) != [], changes
        assert list(_inconsistencies(forged)) != [], changes


def forge(like: Certificate, content: dict[str, Any]) -> Certificate:
    """Return what a reader that checks nothing would make of a content."""
    from pac_wrap.codec import decode

    return decode(type(like), json.dumps(content), {"format": "pac-wrap certificate", "schema": 1})


FROM: dict[str, Certificate] = {
    "separated": calibrate(NORMAL, FAR),
    "overlapping": calibrate(NORMAL, NEAR),
    "few": calibrate(NORMAL[:20], FAR[:20]),
    "one-sided": calibrate(NORMAL, FAR, Guarantee(max_fnr=None)),
    "empty class": calibrate(NORMAL, [], Guarantee(max_fnr=None)),
    "relaxed": calibrate(NORMAL, NEAR, abstain=False),
    "not reached": calibrate_quietly(FAR, NORMAL, abstain=False),
    "hold_fnr": calibrate(NORMAL, NEAR, abstain=False, strategy="hold_fnr"),
    "hold_fpr": calibrate(NORMAL, NEAR, abstain=False, strategy="hold_fpr"),
}


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        # the three that were accepted
        ("overlapping", {"normal.crossing": 0}, "0 crossing normal scores are within the budget, but the"),
        ("overlapping", {"anomalous.crossing": 0}, "0 crossing anomalous scores are within the budget"),
        ("separated", {"level": 3}, "level and levels belong to the strategy relax"),
        ("separated", {"levels": 3}, "level and levels belong to the strategy relax"),
        ("separated", {"normal.digest": "any text"}, "'any text' is no digest of normal scores"),
        # digests
        ("separated", {"normal.digest": "0" * 15}, "is no digest"),
        ("separated", {"normal.digest": "A" * 16}, "is no digest"),
        ("separated", {"normal.digest": "0" * 15 + "\n"}, "is no digest"),
        ("empty class", {"anomalous.digest": "1" * 16}, "the digest of no anomalous scores is 0000"),
        # what belongs to a strategy
        ("separated", {"tau": 3.0}, "tau belongs to a strategy"),
        ("hold_fnr", {"levels": 3}, "level and levels belong"),
        ("hold_fpr", {"level": 0}, "level and levels belong"),
        ("hold_fpr", {"tau": None}, "tau belongs to a strategy that has reached"),
        ("hold_fnr", {"certified": None}, "something is certified exactly if"),
        ("relaxed", {"tau": None}, "tau belongs to a strategy that has reached"),
        ("relaxed", {"level": None}, "tau belongs to a strategy that has reached"),
        ("relaxed", {"certified": None}, "something is certified exactly if"),
        ("relaxed", {"level": 10}, "level 10 is none of 10"),
        ("relaxed", {"level": -1}, "level -1 is none of 10"),
        ("relaxed", {"levels": 11}, "there are 10 levels, not 11"),
        ("relaxed", {"levels": 10**30}, "there are 10 levels, not 1000"),
        ("relaxed", {"strategy": None}, "level and levels belong"),
        ("relaxed", {"strategy.position": 0.25}, "does not follow from alarm_from and clear_below"),
        ("relaxed", {"strategy.correction": None}, "there are 10 levels|the FPR budget is for the ceiling"),
        ("not reached", {"tau": 0.0}, "tau belongs to a strategy that has reached"),
        ("not reached", {"level": 0, "tau": 0.0}, "something is certified exactly if"),
        ("one-sided", {"strategy": json.loads(calibrate(NORMAL, FAR, abstain=False).to_json())["strategy"]},
         "a strategy needs two ceilings"),
        # the threshold that is held
        ("hold_fnr", {"tau": 0.0}, "tau = 0.0 does not follow"),
        ("hold_fpr", {"tau": 0.0}, "tau = 0.0 does not follow"),
        ("hold_fnr", {"thresholds.clear_below": "inf", "tau": "inf"}, "tau = inf does not follow"),
        ("hold_fnr", {"thresholds.clear_below": "inf", "tau": "inf", "thresholds.alarm_from": "inf",
                      "anomalous.crossing": 2000}, "leaves the thresholds separated"),
        ("not reached", {"thresholds.alarm_from": 0.0, "thresholds.clear_below": 1.0, "normal.crossing": 0,
                         "anomalous.crossing": 0}, "a level is reached exactly if its thresholds"),
        ("hold_fnr", {"normal.crossing": 1}, "the FPR budget is for the ceiling"),
        ("hold_fnr", {"normal.budget.rate": 0.01}, "the FPR budget is for the ceiling"),
        ("hold_fnr", {"normal.budget.rate": 0.99, "certified.max_fpr": 0.99}, "the FPR budget is for the"),
        ("hold_fnr", {"normal.budget": None, "certified.max_fpr": None}, "the FPR must have a budget"),
        # thresholds, their budgets and the regime
        ("few", {"thresholds.alarm_from": 1.0}, "alarm_from must be inf where there are too few labels"),
        ("few", {"thresholds.clear_below": 1.0}, "clear_below must be -inf where there are too few labels"),
        ("few", {"normal.crossing": 3}, "all 20 normal scores cross the other threshold, not 3"),
        ("few", {"anomalous.crossing": 3}, "all 20 anomalous scores cross the other threshold, not 3"),
        ("few", {"regime": "overlapping"}, "the regime is vacuous, not overlapping"),
        ("separated", {"thresholds.alarm_from": "-inf"}, "alarm_from must lie above some score"),
        ("separated", {"thresholds.clear_below": None}, "clear_below and its budget must both be there"),
        ("separated", {"normal.crossing": None}, "the crossing points of both classes must be counted"),
        ("one-sided", {"normal.crossing": 3}, "crossing points are counted only"),
        ("one-sided", {"anomalous.crossing": 3, "normal.crossing": 3}, "crossing points are counted only"),
        ("separated", {"normal.budget.delta": 0.1}, "the FPR budget is for the ceiling 0.05 at delta = 0.05"),
        ("separated", {"guarantee.delta_fpr": 0.01}, "the FPR budget is for the ceiling 0.05 at"),
        ("separated", {"certified.delta_fpr": 0.01}, "what is certified does not follow"),
        ("one-sided", {"certified.max_fnr": 0.05}, "what is certified does not follow"),
        # sizes
        ("separated", {"normal.n": 10**15, "normal.budget.n": 10**15}, "there cannot be 1,000,000,000"),
        ("separated", {"normal.n": -5, "normal.budget.n": 0}, "there cannot be -5 normal scores"),
        ("one-sided", {"anomalous.n": 2**64}, "there cannot be 18,446,744,073,709,551,616"),
        ("one-sided", {"normal.n": 0, "normal.budget.n": 0, "anomalous.n": 0, "normal.digest": "0" * 16,
                       "anomalous.digest": "0" * 16}, "there is no score in either class"),
        # our own words, and who wrote them
        ("separated", {"assumptions": [1, 2]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [3, 2, 1]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [4, 5, 2]}, "these are not the assumptions of draws"),
        ("separated", {"assumptions": [99]}, "assumptions must be one that is known, got 99"),
        ("separated", {"assumptions": ["\x1b[2Jall is well"]}, r"one that is known, got '\\x1b\[2Jall"),
        ("separated", {"version": "\x1b[2J"}, r"'\\x1b\[2J' is no version of pac-wrap-ad"),
        ("separated", {"version": "0.1.0\n"}, r"'0.1.0\\n' is no version"),
        ("separated", {"version": ""}, "'' is no version"),
        ("separated", {"version": "1" * 201}, "version must be at most 200 characters long"),
        # numbers that decimals and floats do not hold
        ("separated", {"guarantee.max_fpr": 1e-300}, "max_fpr must be at least 1e-15"),
        ("separated", {"guarantee.delta_fpr": 10**49}, "delta_fpr must lie strictly between 0 and 1"),
        ("separated", {"normal.budget.confidence": "inf"}, "confidence must lie between 0 and 1"),
        ("separated", {"tau": 10**51}, "a number has more than 50 digits"),
    ],
)  # fmt: skip
def test_a_contradiction_is_refused_with_its_reason(kind: str, changes: dict[str, Any], reason: str) -> None:
    assert re.search(reason, said(tampered(FROM[kind], changes))), said(tampered(FROM[kind], changes))


def test_the_last_digits_of_a_bound_may_differ_but_it_must_carry_its_errors() -> None:
    certificate = FROM["hold_fnr"]
    assert certificate.normal.budget is not None
    rate = certificate.normal.budget.rate
    for factor, errors in ((1 + 1e-12, None), (1 - 1e-10, certificate.normal.crossing)):
        changes = {"normal.budget.rate": rate * factor, "certified.max_fpr": rate * factor}
        text = tampered(certificate, changes)
        if errors is None:
            assert belongs_together(Certificate.from_json(text)) == []
        else:
            assert f"the FPR budget is {errors - 1}, not {errors}" in said(text)


def test_a_normal_score_at_the_largest_double_leaves_no_room_for_a_threshold() -> None:
    # alarm_from would have to lie above it, where only inf is left, which never alarms
    normal, anomalous = np.full(100, LARGEST), np.full(100, inf)
    certificate = calibrate(normal, anomalous)
    assert certificate.regime.value == "overlapping"
    assert certificate.normal.crossing == 0
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_deltas_that_doubling_would_carry_beyond_every_double_are_levels_too() -> None:
    asked = Guarantee(0.3, 0.3, 5e-324, 0.5)
    certificate = calibrate(
        NORMAL, NEAR, asked, abstain=False, relax_delta=True, growth="double", correction=None
    )
    assert certificate.levels is not None
    assert certificate.levels > 900
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
    assert {one.name: one.value for one in Assumption} == numbers
    assert [f"{one}" for one in FROM["few"].assumptions][2] == "the distribution of each class does not shift"
    assert len({str(one) for one in Assumption}) == len(Assumption)
