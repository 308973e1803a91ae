from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError
from pac_wrap.binomial import upper_bound
from pac_wrap.guarantee import Budget, Guarantee
from strategies import exact_budget, exact_tail, rate, refusal


def test_five_percent_each_is_the_default() -> None:
    guarantee = Guarantee()
    assert (guarantee.max_fpr, guarantee.max_fnr) == (0.05, 0.05)
    assert (guarantee.delta_fpr, guarantee.delta_fnr) == (0.05, 0.05)


def test_joint_delta_adds_the_promised_sides_only() -> None:
    assert Guarantee(delta_fpr=0.25, delta_fnr=0.5).joint_delta == 0.75
    assert Guarantee(max_fnr=None, delta_fpr=0.25, delta_fnr=0.5).joint_delta == 0.25
    assert Guarantee(max_fpr=None, delta_fpr=0.25, delta_fnr=0.5).joint_delta == 0.5


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
def test_a_delta_cannot_be_left_out(name: str) -> None:
    options: dict[str, Any] = {name: None}
    assert f"{name} must lie strictly" in refusal(lambda: Guarantee(**options))


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


def test_each_side_takes_its_own_ceiling_and_its_share_of_delta() -> None:
    guarantee = Guarantee(max_fpr=0.1, max_fnr=0.2, delta_fpr=0.3, delta_fnr=0.4)
    assert Budget.fpr(50, guarantee) == Budget.of(50, 0.1, 0.3)
    assert Budget.fnr(50, guarantee) == Budget.of(50, 0.2, 0.4)
    assert Budget.fpr(50, guarantee, shares=3) == Budget.of(50, 0.1, 0.3 / 3)
    assert Budget.fnr(50, guarantee, shares=8) == Budget.of(50, 0.2, 0.05)


@given(st.integers(1, 60), rate, st.data())
def test_spent_errors_buy_the_smallest_rate(n: int, delta: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n - 1))
    budget = Budget.spent(errors, n, delta)
    assert budget is not None
    assert budget.rate == upper_bound(errors, n, delta)
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
    assert words in refusal(lambda: Budget(n, rate, delta, 0, 1.0))
    assert words in refusal(lambda: Budget.of(n, rate, delta))


@pytest.mark.parametrize("name", ["max_fpr", "max_fnr"])
def test_ceilings_that_no_number_of_labels_certifies_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1e-15"):
        Guarantee(**{name: 1e-16})
    least = Guarantee(**{name: 1e-15})
    assert Budget.of(0, getattr(least, name), 5e-324).missing < 2**63


@pytest.mark.parametrize("confidence", [1.0000000000000002, -0.1, float("nan")])
def test_a_confidence_that_is_no_probability_is_refused(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        Budget(100, 0.05, 0.05, 1, confidence)
