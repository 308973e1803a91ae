from dataclasses import fields, replace
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given

from pac_wrap.method.certificates.certificate import Overlap
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import WORDS
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.interface import Claim, Strategy, asked_of, budget_problems, end_problems
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget
from support.strategies import Floats, calibrate_quietly, guarantee, scores

FIVE = Guarantee()
every_strategy = pytest.mark.parametrize("strategy", WORDS.values(), ids=WORDS)


@every_strategy
def test_every_strategy_answers_what_is_asked_of_one(strategy: Overlap) -> None:
    assert isinstance(strategy, Strategy)
    assert WORDS[strategy.word] == strategy
    assert strategy.word.startswith(strategy.tag)
    # a name in the JSON text that is its own, and no field of the same name
    assert strategy.tag not in [field.name for field in fields(strategy)]
    assert set(strategy.keeps) <= {"FPR", "FNR"}
    assert strategy.proved
    assert strategy.tried(FIVE, (2000, 2000)) >= 1
    claim = calibrate_quietly(np.arange(100.0), np.arange(95.0, 195.0), overlap=strategy).claim
    assert list(strategy.problems(claim)) == []
    assert strategy.summary(claim).count("\n") == 0
    for sentence in strategy.explanation(claim):
        assert sentence.endswith(".")
    assert hash(strategy) == hash(replace(strategy))


@every_strategy
@given(normal=scores(1, 30), anomalous=scores(1, 30), asked=guarantee)
def test_a_strategy_finds_no_problem_in_what_it_decided(
    strategy: Overlap, normal: Floats, anomalous: Floats, asked: Guarantee
) -> None:
    claim = calibrate_quietly(normal, anomalous, asked, overlap=strategy).claim
    assert list(strategy.problems(claim)) == []


def test_a_strategy_must_answer_every_question() -> None:
    class Silent(Strategy):
        tag = "silent"

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]  # that is what is tested


def test_ranks_are_those_of_the_thresholds() -> None:
    assert list(Abstain().ranks(asked_of(FIVE), (2000, 1000))) == [Rank(0, 2000 - 83), Rank(1, 39)]
    assert list(Abstain().ranks(asked_of(Guarantee(max_fnr=None)), (2000, 1000))) == [Rank(0, 2000 - 83)]
    assert list(Abstain().ranks(asked_of(Guarantee(max_fpr=None)), (2000, 1000))) == [Rank(1, 39)]
    # too few labels need none
    assert list(Abstain().ranks(asked_of(FIVE), (58, 1000))) == [Rank(1, 39)]


def test_how_a_budget_may_differ_from_the_expected_one() -> None:
    budget = Budget.of(2000, 0.05, 0.05)
    assert list(budget_problems("FPR", budget, budget)) == []
    assert list(budget_problems("FPR", None, None)) == []
    assert list(budget_problems("FPR", budget, None)) == ["the FPR must have no budget"]
    assert list(budget_problems("FNR", None, budget)) == ["the FNR must have a budget"]
    (problem,) = budget_problems("FPR", replace(budget, errors=84), budget)
    assert problem == "the FPR budget is 83, not 84"
    (problem,) = budget_problems("FPR", replace(budget, confidence=0.9), budget)
    assert problem == "the exact confidence of the FPR is not 0.9"
    # a rate by its last digits only where they are forgiven
    near = Budget.of(2000, 0.05 * (1 + 1e-12), 0.05)
    assert list(budget_problems("FPR", near, budget, 1e-9)) == []
    (problem,) = budget_problems("FPR", near, budget)
    assert problem.startswith("the FPR budget is for the ceiling 0.05 at delta = 0.05, not for 0.05000")
    other = Budget.of(2000, 0.05, 0.04)
    assert "not for 0.05 at 0.04" in next(budget_problems("FPR", other, budget, 1e-9))


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_a_rule_is_expected_as_it_is_before_rounding(kind: str) -> None:
    scores = np.linspace(0.0, 1.0, 200).astype(kind)
    claim = calibrate_quietly(scores, scores).claim
    assert claim.score_type == kind
    rule = claim.found.thresholds.rule
    assert list(end_problems(claim, FIVE, rule)) == []
    moved = Rule(rule.normal_below, nextafter(rule.anomaly_from, inf))
    problems = list(end_problems(claim, Guarantee(0.1, 0.1), moved))
    assert problems[0] == "what is certified does not follow from what was asked"
    # half a step of a narrower type away, one double changes nothing
    assert len(problems) == (2 if kind == "float64" else 1)


def test_a_claim_of_two_thresholds_that_one_ceiling_cannot_have_is_a_contradiction() -> None:
    claim = calibrate_quietly(np.arange(100.0), np.arange(95.0, 195.0)).claim
    for asked in (Guarantee(max_fnr=None), Guarantee(max_fpr=None)):
        problems = list(Abstain().problems(replace(claim, asked=asked)))
        assert any("must have no budget" in problem for problem in problems)
        assert "what is certified does not follow from what was asked" in problems


@every_strategy
def test_what_another_strategy_decided_is_a_contradiction(strategy: Overlap) -> None:
    normal, anomalous = np.arange(300.0), np.arange(250.0, 550.0)
    for word, other in WORDS.items():
        # where the classes overlap, always and if needed are the same
        same = other.word.removesuffix("_if_needed") == strategy.word.removesuffix("_if_needed")
        if not same and {other.tag, strategy.tag} != {"abstain"}:
            claim: Claim = calibrate_quietly(normal, anomalous, overlap=other).claim
            assert list(strategy.problems(claim)) != [], word


def test_holding_if_needed_and_always_differ_where_one_threshold_keeps_both() -> None:
    normal, anomalous = np.arange(300.0), np.arange(290.0, 590.0)
    for rate in ("fnr", "fpr"):
        always, needed = WORDS[f"hold_{rate}"], WORDS[f"hold_{rate}_if_needed"]
        for strategy, other in ((always, needed), (needed, always)):
            claim = calibrate_quietly(normal, anomalous, overlap=other).claim
            assert list(other.problems(claim)) == []
            assert list(strategy.problems(claim)) != []
