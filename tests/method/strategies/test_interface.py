from dataclasses import fields, replace
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given

from pac_wrap.method.calibrate import WORDS
from pac_wrap.method.certificate import Overlap, inconsistencies
from pac_wrap.method.promise import Guarantee, Population
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import PLUS, Abstain, Asked, Found, Strategy, asked_of, binding
from pac_wrap.ranks.memory import Rank
from support.strategies import Floats, calibrate_quietly, guarantee, scores

FIVE = Guarantee()
every_strategy = pytest.mark.parametrize("strategy", WORDS.values(), ids=WORDS)


def test_of_kinds_with_the_same_threshold_the_one_that_lacks_labels_binds() -> None:
    asked = [Asked(Population("normal", kind), None, 0.05) for kind in "abc"]
    found = [Found(0.1, 0.05, errors, PLUS, 0.1, 0.05) for errors in (3, -1, 2)]
    assert binding(asked, found, "normal") == (1, PLUS)
    assert binding(asked, [found[0], found[2], found[2]], "normal") == (0, PLUS)


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
    certificate = calibrate_quietly(np.arange(100.0), np.arange(95.0, 195.0), overlap=strategy)
    claim = certificate.claim
    assert list(inconsistencies(certificate)) == []
    assert strategy.summary(claim).count("\n") == 0
    for sentence in strategy.explanation(claim):
        assert sentence.endswith(".")
    assert hash(strategy) == hash(replace(strategy))


@every_strategy
@given(normal=scores(1, 30), anomalous=scores(1, 30), asked=guarantee)
def test_a_strategy_finds_no_problem_in_what_it_decided(
    strategy: Overlap, normal: Floats, anomalous: Floats, asked: Guarantee
) -> None:
    assert list(inconsistencies(calibrate_quietly(normal, anomalous, asked, overlap=strategy))) == []


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


def test_a_ceiling_as_asked_may_not_differ_in_any_digit_and_a_computed_one_in_the_last() -> None:
    normal, anomalous = np.arange(1000.0), np.arange(900.0, 1900.0)
    for overlap, allowed in ((Abstain(), False), (WORDS["hold_fnr"], True)):
        made = calibrate_quietly(normal, anomalous, overlap=overlap)
        assert made.fpr.certified is not None
        assert made.fpr.budget is not None
        ceiling = made.fpr.certified.ceiling * (1 + 1e-12)
        near = replace(
            made.fpr,
            certified=replace(made.fpr.certified, ceiling=ceiling),
            budget=replace(made.fpr.budget, rate=ceiling),
        )
        found = list(inconsistencies(replace(made, clauses=(near, made.fnr))))
        assert (found == []) is allowed


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_a_rule_is_expected_as_it_is_before_rounding(kind: str) -> None:
    scores = np.linspace(0.0, 1.0, 200).astype(kind)
    made = calibrate_quietly(scores, scores)
    assert list(inconsistencies(made)) == []
    low, high = made.rule.normal_below, made.rule.anomaly_from
    for moved in (Rule(low, nextafter(high, inf)), Rule(nextafter(low, -inf), high)):
        assert list(inconsistencies(replace(made, rule=moved))) == [
            "the rule does not follow from alarm_from and clear_below"
        ]


def test_two_thresholds_that_one_ceiling_cannot_have_are_a_contradiction() -> None:
    made = calibrate_quietly(np.arange(100.0), np.arange(95.0, 195.0))
    for side, clause in enumerate(made.clauses):
        clauses = [*made.clauses]
        clauses[side] = replace(clause, asked=None)
        assert list(inconsistencies(replace(made, clauses=tuple(clauses)))) != []


@every_strategy
def test_what_another_strategy_decided_is_a_contradiction(strategy: Overlap) -> None:
    normal, anomalous = np.arange(300.0), np.arange(250.0, 550.0)
    for word, other in WORDS.items():
        # where the classes overlap, always and if needed are the same
        same = other.word.removesuffix("_if_needed") == strategy.word.removesuffix("_if_needed")
        if not same and {other.tag, strategy.tag} != {"abstain"}:
            made = calibrate_quietly(normal, anomalous, overlap=other)
            assert list(inconsistencies(replace(made, overlap=strategy))) != [], word


def test_holding_if_needed_and_always_differ_where_one_threshold_keeps_both() -> None:
    normal, anomalous = np.arange(300.0), np.arange(290.0, 590.0)
    for rate in ("fnr", "fpr"):
        always, needed = WORDS[f"hold_{rate}"], WORDS[f"hold_{rate}_if_needed"]
        for strategy, other in ((always, needed), (needed, always)):
            made = calibrate_quietly(normal, anomalous, overlap=other)
            assert list(inconsistencies(made)) == []
            assert list(inconsistencies(replace(made, overlap=strategy))) != []
