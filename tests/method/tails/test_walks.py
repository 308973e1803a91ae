"""The walk of errors and its local delta: enumerated, against exact fractions, and at its edges."""

from fractions import Fraction
from itertools import product
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.tails.bounds import cdf, error_budget
from pac_wrap.tails.levels import (
    MOST_LOOKS,
    first_success,
    local_delta,
    look_budgets,
    looks_of,
)

rates = st.floats(0.01, 0.95)
deltas = st.floats(0.001, 0.5)


def enumerated(rate: Fraction, looks: list[int], budgets: list[int]) -> list[Fraction]:
    """Return the chance of a first success at each look, from every sequence of errors there is."""
    found = [Fraction(0)] * len(looks)
    for errors in product((0, 1), repeat=looks[-1]):
        hits = sum(errors)
        weight = rate**hits * (1 - rate) ** (looks[-1] - hits)
        for j, (n, budget) in enumerate(zip(looks, budgets, strict=True)):
            if sum(errors[:n]) <= budget:
                found[j] += weight
                break
    return found


def walked(rate: Fraction, looks: list[int], budgets: list[int]) -> list[Fraction]:
    """Return the same label by label, in fractions: a second way that also goes far."""
    hit, scale = rate.as_integer_ratio()
    alive, found, at = {0: 1}, [], 0  # numerators over scale**at
    for n, budget in zip(looks, budgets, strict=True):
        for _ in range(n - at):
            after: dict[int, int] = {}
            for count, ways in alive.items():
                after[count] = after.get(count, 0) + ways * (scale - hit)
                after[count + 1] = after.get(count + 1, 0) + ways * hit
            alive = after
        at = n
        found.append(Fraction(sum(ways for count, ways in alive.items() if count <= budget), scale**at))
        alive = {count: ways for count, ways in alive.items() if count > budget}
    return found


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=3),
)
def test_every_sequence_of_errors_enumerated(numerator: int, steps: list[tuple[int, int]]) -> None:
    rate = Fraction(numerator, 16)
    looks = np.cumsum([step for step, _ in steps]).tolist()
    budgets = (np.cumsum([rise for _, rise in steps]) - 1).tolist()
    expected = enumerated(rate, looks, budgets)
    assert walked(rate, looks, budgets) == expected
    assert first_success(float(rate), looks, budgets) == pytest.approx([float(one) for one in expected])


@pytest.mark.parametrize(("rate", "local", "every", "up_to"), [(0.05, 0.0074, 20, 240), (0.5, 0.01, 7, 70)])
def test_the_programme_agrees_with_exact_fractions(rate: float, local: float, every: int, up_to: int) -> None:
    looks = list(looks_of(every, up_to))
    budgets = look_budgets(rate, local, looks)
    exact = walked(Fraction(rate), looks, budgets)
    found = first_success(rate, looks, budgets)
    assert found == pytest.approx([float(one) for one in exact], rel=1e-13, abs=0.0)
    assert float(found.sum()) == pytest.approx(float(sum(exact)), rel=1e-13)


def test_one_look_is_the_binomial_tail() -> None:
    for n, budget, rate in ((100_000, 4_800, 0.05), (59, 0, 0.05), (1, 0, 0.999_999_999), (7, 7, 0.3)):
        found = first_success(rate, [n], [budget])
        assert float(found[0]) == pytest.approx(cdf(budget, n, rate), rel=1e-11)


def test_a_rate_next_to_one_keeps_its_counts() -> None:
    assert first_success(1.0 - 2**-53, [100_000], [99_999])[0] == pytest.approx(1.11e-11, rel=1e-2)


def test_the_local_deltas_of_the_usual_looks() -> None:
    # theory-independent references: a first programme, label by label, gave .0074 and .0061
    assert round(local_delta(0.05, 0.05, 20, 2000), 4) == 0.0074
    assert round(local_delta(0.05, 0.05, 1, 2000), 4) == 0.0061
    looks = looks_of(20, 2000)
    budgets = look_budgets(0.05, local_delta(0.05, 0.05, 20, 2000), looks)
    assert 0.04999 < first_success(0.05, looks, budgets).sum() <= 0.05


def test_what_looking_again_costs_without_it() -> None:
    looks = looks_of(20, 2000)
    assert first_success(0.05, looks, look_budgets(0.05, 0.05, looks)).sum() == pytest.approx(0.242, abs=5e-4)


def test_labels_until_a_true_rate_of_two_percent_is_certified() -> None:
    looks = looks_of(20, 2000)
    chances = first_success(0.02, looks, look_budgets(0.05, local_delta(0.05, 0.05, 20, 2000), looks))
    assert looks[int(np.searchsorted(chances.cumsum(), 0.5))] == 240
    assert chances.sum() > 0.999_999

    def power(n: int) -> float:
        budget = error_budget(n, 0.05, 0.05)
        return 0.0 if budget is None else cdf(budget, n, 0.02)

    assert next(n for n in range(1, 1000) if power(n) >= 0.9) == 311


@given(rates, deltas, st.integers(1, 10), st.integers(1, 8))
def test_the_local_delta_is_the_largest_of_eight_digits(
    rate: float, delta: float, every: int, count: int
) -> None:
    looks = list(looks_of(every, every * count))
    local = local_delta(rate, delta, every, every * count)
    assert float(f"{local:.7e}") == local
    assert local <= delta
    assert local >= float(f"{delta / count:.7e}") * (1 - 1e-7)

    def ever(level: float) -> float:
        exact = walked(Fraction(rate), looks, look_budgets(rate, level, looks))
        return float(sum(exact))

    assert ever(local) <= delta
    above = local + 10.0 ** (np.floor(np.log10(local)) - 7)
    assert above > delta or ever(float(f"{above:.7e}")) > delta * (1 - 1e-9)


@given(rates, st.floats(0.0, 1.0), deltas)
def test_a_larger_rate_succeeds_less_often(rate: float, share: float, local: float) -> None:
    looks = list(looks_of(5, 60))
    budgets = look_budgets(rate, local, looks)
    larger = rate + share * (0.99 - rate)
    at_ceiling, above = (first_success(one, looks, budgets).cumsum() for one in (rate, larger))
    assert (above <= at_ceiling + 1e-12).all()


def test_the_largest_plan_takes_seconds_at_most() -> None:
    started = process_time()
    local = local_delta(0.5, 0.05, 10, 20_000)
    assert process_time() - started < 20.0
    assert 0.05 / MOST_LOOKS < local < 0.05


@pytest.mark.parametrize(
    ("every", "up_to", "message"),
    [
        (0, 10, "every must be a whole number, 1 or more, got 0"),
        (20, 2.5, "up_to must be a whole number, 0 or more, got 2.5"),
        (20, 10, "every must not exceed up_to, got 20 and 10; lower every"),
        (20, 10**12, "up_to must be at most 20,000 labels of a class, got 1,000,000,000,000"),
        (
            1,
            2001,
            "every = 1 up to 2,001 makes 2,001 looks; at most 2,000 are possible, so look every 2 labels or"
            " less often",
        ),
    ],
)
def test_looks_that_are_refused(every: int, up_to: int, message: str) -> None:
    with pytest.raises(InputError) as error:
        looks_of(every, up_to)
    assert str(error.value) == message
