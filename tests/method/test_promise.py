import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from math import copysign, nextafter
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError, TotalVariation
from pac_wrap.base.floats import ceiling_up
from pac_wrap.method.promise import Certified, Error, Guarantee, Population, Promise
from pac_wrap.tails.bounds import Budget, upper_bound
from support.strategies import calibrate_quietly, exact_budget, exact_tail, rate, refusal

open_rate = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


def test_five_percent_each_is_the_default() -> None:
    guarantee = Guarantee()
    assert (guarantee.max_fpr, guarantee.max_fnr) == (0.05, 0.05)
    assert (guarantee.delta_fpr, guarantee.delta_fnr) == (0.05, 0.05)


def test_the_deltas_of_the_promised_sides_alone_add_up() -> None:
    assert Guarantee(delta_fpr=0.25, delta_fnr=0.5).confidence == 0.25
    assert Guarantee(max_fnr=None, delta_fpr=0.25, delta_fnr=0.5).confidence == 0.75
    assert Guarantee(max_fpr=None, delta_fpr=0.25, delta_fnr=0.5).confidence == 0.5


def test_text_names_the_promised_sides_only() -> None:
    both = Guarantee(max_fpr=0.01, max_fnr=0.1, delta_fpr=0.05, delta_fnr=0.2)
    assert str(both) == "FPR <= 0.01 (confidence 0.95), FNR <= 0.1 (confidence 0.8)"
    assert str(Guarantee(max_fpr=None)) == "FNR <= 0.05 (confidence 0.95)"
    assert str(Guarantee(max_fnr=None)) == "FPR <= 0.05 (confidence 0.95)"


@pytest.mark.parametrize("name", ["max_fpr", "max_fnr", "delta_fpr", "delta_fnr"])
@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -1, 5, float("nan"), float("inf"), "0.05", True])
def test_every_rate_must_lie_strictly_between_0_and_1(name: str, value: Any) -> None:
    message = refusal(lambda: Guarantee(**{name: value}))
    assert f"{name} must lie strictly between 0 and 1, got {value!r}" in message
    assert "0.05" in message


@pytest.mark.parametrize("name", ["delta_fpr", "delta_fnr"])
def test_a_delta_that_is_left_out_is_the_usual_one(name: str) -> None:
    options: dict[str, Any] = {name: None}
    assert Guarantee(**options) == Guarantee()
    # of what is promised by itself too, also where the other delta is another
    assert Guarantee(0.1, 0.2, delta_fpr=0.3) == Guarantee(0.1, 0.2, 0.3, 0.05)


def test_a_confidence_is_shared_equally_among_the_ceilings() -> None:
    # exact decimals: (1 - 0.95) / 2 is 0.025000000000000022 in doubles
    both = Guarantee(max_fpr=0.01, max_fnr=0.1, confidence=0.95)
    assert (both.delta_fpr, both.delta_fnr) == (0.025, 0.025)
    # they stay so only where the counts do not decide
    assert both != Guarantee(0.01, 0.1, 0.025, 0.025)
    assert both.fixed == Guarantee(0.01, 0.1, 0.025, 0.025)
    fixed = both.fixed
    assert fixed.fixed is fixed
    assert both.confidence == 0.95
    assert str(both) == "FPR <= 0.01 (confidence 0.975), FNR <= 0.1 (confidence 0.975)"
    assert Guarantee(confidence=0.9).fixed == Guarantee()


@pytest.mark.parametrize(("side", "other"), [("fpr", "fnr"), ("fnr", "fpr")])
def test_a_single_ceiling_gets_all_that_the_confidence_leaves(side: str, other: str) -> None:
    options: dict[str, Any] = {f"max_{other}": None, "confidence": 0.95}
    alone = Guarantee(**options)
    (promise,) = alone.promises
    assert promise.name == side.upper()
    assert promise.delta == getattr(alone, f"delta_{side}") == 0.05
    assert alone.confidence == 0.95


@given(open_rate, st.booleans())
def test_what_is_promised_together_is_never_less_sure_than_asked(confidence: float, single: bool) -> None:
    asked = Guarantee(max_fnr=None if single else 0.05, confidence=confidence)
    assert asked.confidence >= confidence
    deltas = [Fraction(repr(promise.delta)) for promise in asked.promises]
    left = 1 - Fraction(repr(confidence))
    assert sum(deltas) <= left
    # and nothing is given away: one double more would be too much, or lost among 28 digits
    more = sum(Fraction(repr(nextafter(promise.delta, 1.0))) for promise in asked.promises)
    assert more > left - Fraction(1, 10**27)


@pytest.mark.parametrize(
    "deltas", [{"delta_fpr": 0.05}, {"delta_fnr": 0.05}, {"delta_fpr": 0.1, "delta_fnr": 0.1}]
)
def test_a_confidence_together_with_a_delta_is_refused(deltas: dict[str, Any]) -> None:
    message = refusal(lambda: Guarantee(confidence=0.9, **deltas))
    assert "give either confidence or deltas" in message
    # nor can it be given to a guarantee whose deltas are there already
    assert message == refusal(lambda: replace(Guarantee(), confidence=0.9))  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.5, 95, float("nan"), float("inf"), "0.95", True])
def test_a_confidence_must_lie_strictly_between_0_and_1(value: Any) -> None:
    message = refusal(lambda: Guarantee(confidence=value))
    assert f"confidence must lie strictly between 0 and 1, got {value!r}" in message


def test_the_confidence_of_all_promises_is_what_their_deltas_leave() -> None:
    assert Guarantee().confidence == 0.9
    assert Guarantee(max_fnr=None, delta_fnr=0.5).confidence == 0.95
    for deltas in ((0.5, 0.5), (0.6, 0.7)):
        nothing = Guarantee(0.05, 0.05, *deltas)
        assert copysign(1.0, nothing.confidence) == 1.0
        assert nothing.confidence == 0.0


def test_each_promise_says_whom_it_is_about_and_what_counts_as_an_error() -> None:
    asked = Guarantee(max_fpr=0.1, max_fnr=0.2, delta_fpr=0.3, delta_fnr=0.4)
    fpr = Promise(Population("normal"), Error.FALSE_ALARM, ceiling=0.1, delta=0.3)
    fnr = Promise(Population("anomalous"), Error.MISS, ceiling=0.2, delta=0.4)
    assert (asked.fpr, asked.fnr) == asked.promises == (fpr, fnr)
    assert (fpr.name, fnr.name) == ("FPR", "FNR")
    assert [str(promise.of) for promise in asked.promises] == ["normal points", "anomalous points"]
    assert [str(promise.error) for promise in asked.promises] == ["false alarm", "miss"]
    assert str(fpr) == "FPR <= 0.1 (confidence 0.7)"
    assert str(asked) == f"{fpr}, {fnr}"


def test_a_side_without_a_ceiling_is_no_promise() -> None:
    fpr, fnr = Guarantee(max_fnr=None), Guarantee(max_fpr=None)
    assert (fpr.fnr, fnr.fpr) == (None, None)
    assert fpr.promises == (fpr.fpr,)
    assert fnr.promises == (fnr.fnr,)


@pytest.mark.parametrize(
    ("population", "text"),
    [
        (Population("anomalous", kind="worm"), "anomalous points of kind 'worm'"),
        # a name comes from a file: what would steer a terminal is shown, not done
        (Population("normal", kind="\x1b[31m"), "normal points of kind '\\x1b[31m'"),
    ],
)
def test_a_population_may_be_one_kind(population: Population, text: str) -> None:
    assert str(population) == text


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, float("nan")])
@pytest.mark.parametrize("side", ["fpr", "fnr"])
def test_numbers_of_a_clause_in_a_file_are_checked_under_the_name_of_its_rate(
    side: str, value: float
) -> None:
    clause = getattr(calibrate_quietly(np.zeros(5), np.ones(5)), side)
    written = clause.to_form(0.05)
    tiny: Any = {f"max_{side}": 1e-16}
    assert written.clause() == clause
    for wrong in (replace(written, ceiling=value), replace(written, certified=Certified(value))):
        assert f"max_{side} must lie strictly" in refusal(wrong.clause)
    for wrong in (replace(written, delta=value), replace(written, certified=Certified(0.1, value))):
        assert f"delta_{side} must lie strictly" in refusal(wrong.clause)
    assert f"max_{side} must be at least 1e-15" in refusal(replace(written, ceiling=1e-16).clause)
    assert f"max_{side} must be at least 1e-15" in refusal(lambda: replace(Guarantee(), **tiny))


def test_numbers_of_a_promise_become_plain_floats() -> None:
    promise = Guarantee(np.float64(0.25), delta_fpr=np.float64(0.5)).fpr
    assert promise is not None
    assert (type(promise.ceiling), type(promise.delta)) == (float, float)


@pytest.mark.parametrize("value", [Guarantee(), Guarantee(max_fpr=None, confidence=0.5), Guarantee().fpr])
def test_promises_survive_pickling_and_are_equal_by_value(value: object) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)
    assert value != Guarantee(0.3, 0.3)


def test_one_side_must_be_promised() -> None:
    assert "promise at least one" in refusal(lambda: Guarantee(max_fpr=None, max_fnr=None))


def test_numbers_become_plain_floats() -> None:
    guarantee = Guarantee(max_fpr=np.float64(0.25), delta_fpr=float(np.float32(0.5)))
    assert type(guarantee.max_fpr) is float
    assert guarantee == Guarantee(max_fpr=0.25, delta_fpr=0.5)


def test_a_guarantee_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Guarantee().max_fpr = 0.5  # type: ignore[misc]  # frozen on purpose


@given(st.integers(0, 60), rate, rate)
def test_budget_keeps_its_definition_and_its_exact_confidence(n: int, rate: float, delta: float) -> None:
    budget = Budget.of(n, rate, delta)
    assert (budget.n, budget.rate, budget.delta) == (n, rate, delta)
    assert budget.errors == exact_budget(n, rate, delta)
    if budget.errors is None:
        assert budget.confidence == 1.0
        assert budget.missing > 0
        assert Budget.of(n + budget.missing, rate, delta).errors == 0
        assert Budget.of(n + budget.missing - 1, rate, delta).errors is None
    else:
        exact = float(1 - exact_tail(budget.errors, n, rate))
        assert budget.confidence == pytest.approx(exact, rel=1e-12)
        assert budget.confidence >= (1 - delta) * (1 - 1e-12)
        assert budget.missing == 0


def test_missing_labels_at_five_percent() -> None:
    assert Budget.of(0, 0.05, 0.05).missing == 59
    assert Budget.of(58, 0.05, 0.05).missing == 1
    assert Budget.of(59, 0.05, 0.05).missing == 0


def test_each_side_takes_its_own_ceiling_and_delta() -> None:
    guarantee = Guarantee(max_fpr=0.1, max_fnr=0.2, delta_fpr=0.3, delta_fnr=0.4)
    fpr, fnr = guarantee.promises
    assert fpr.budget(50) == Budget.of(50, 0.1, 0.3)
    assert fnr.budget(50) == Budget.of(50, 0.2, 0.4)


@given(st.integers(1, 60), rate, st.data())
def test_spent_errors_buy_the_smallest_rate(n: int, delta: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n - 1))
    budget = Budget.spent(errors, n, delta)
    assert budget is not None
    assert budget.rate == ceiling_up(upper_bound(errors, n, delta))
    assert budget.errors == exact_budget(n, budget.rate, delta) == errors
    # the tail meets delta, so nothing of the confidence is given away
    assert budget.confidence == pytest.approx(1 - delta, rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 40])
def test_nothing_but_errors_certifies_nothing(n: int) -> None:
    assert Budget.spent(n, n, 0.05) is None


@pytest.mark.parametrize(
    ("n", "rate", "delta", "words"),
    [
        (-1, 0.05, 0.05, "n must be a whole number"),
        (59, 1.0, 0.05, "rate must lie strictly"),
        (59, 0.05, 0.0, "delta must lie strictly"),
    ],
)
def test_an_impossible_budget_is_refused(n: int, rate: float, delta: float, words: str) -> None:
    assert words in refusal(lambda: Budget.of(n, rate, delta))


@pytest.mark.parametrize("name", ["max_fpr", "max_fnr"])
def test_ceilings_that_no_number_of_labels_certifies_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1e-15"):
        Guarantee(**cast(Any, {name: 1e-16}))
    least = Guarantee(**cast(Any, {name: 1e-15}))
    assert Budget.of(0, getattr(least, name), 5e-324).missing < 2**63


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("20 per 50,000", (20.0, 50_000)),
        (" 20/50000 ", (20.0, 50_000)),
        ("0.5 / 1,000", (0.5, 1000)),
        ("1e-4", 1e-4),
        (".001", 0.001),
    ],
)
def test_a_ceiling_about_traffic_is_read_as_people_write_it(text: str, limit: Any) -> None:
    assert Guarantee(max_false_alarms=text).max_false_alarms == limit


@pytest.mark.parametrize(
    "text",
    ["20/0", "20", "20,5/50000", "20/5e4.5", "20/x", "x/50000", "1/2/3", "", "/", "-1/50", "50/20", "1/2.5"],
)
def test_other_texts_are_no_ceiling_about_traffic(text: str) -> None:
    assert refusal(lambda: Guarantee(max_false_alarms=text)).startswith("max_false_alarms must")


@pytest.mark.parametrize(
    "way", [TotalVariation(0.01), (TotalVariation(0.01), None), (None, TotalVariation(0.01))]
)
def test_no_promise_about_traffic_drops_a_shift_that_it_should_tolerate(way: Any) -> None:
    """Shifts are for classes, of which there may be no promise; they were left out then."""
    assert "without kinds, shift" in refusal(lambda: Guarantee(max_false_alarms=0.01, shift=way))
    assert Guarantee(max_false_alarms=0.01, shift=(None, None)) == Guarantee(max_false_alarms=0.01)
