"""A certificate of a given threshold is believed only if it follows from the bands of its classes."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, CertificateError, Guarantee, InputError, certify_curve
from pac_wrap.method.curves.band import Given
from pac_wrap.method.promise import Promise
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import asked_of
from pac_wrap.tails import upper_bound
from pac_wrap.tails.bounds import Budget
from support.kept import with_ceiling, with_clause
from support.strategies import decided

RNG = np.random.default_rng(3)
CURVE = certify_curve(RNG.normal(0, 1, 20_000), RNG.normal(2, 1, 400))
MADE = CURVE.at(1.5)


def promise_of(certificate: Certificate) -> Promise:
    promise = certificate.fpr.asked
    assert promise is not None
    return promise


def with_budget(**changes: Any) -> Certificate:
    """Return the certificate with another budget of the FPR, and all that is said to follow from it."""
    assert MADE.fpr.budget is not None
    budget = replace(MADE.fpr.budget, **changes)
    promise = replace(promise_of(MADE), ceiling=budget.rate)
    return with_clause(MADE, "fpr", budget=budget, asked=promise, certified=promise)


def plain_budget() -> Certificate:
    """Return what a forger would like: the bound of one threshold that was fixed beforehand."""
    assert MADE.fpr.budget is not None
    errors = MADE.fpr.budget.errors
    assert errors is not None
    found = Budget.of(20_000, upper_bound(errors, 20_000, 0.05), 0.05)
    return with_budget(rate=found.rate, delta=found.delta, confidence=found.confidence)


def test_it_is_what_its_curve_says() -> None:
    assert Certificate.from_json(MADE.to_json()) == MADE


WRONG: dict[str, Callable[[], Certificate]] = {
    "the level of one threshold": plain_budget,
    "a lower bound": lambda: with_budget(rate=CURVE.fpr(1.5) / 2),
    "errors that are no rank": lambda: with_budget(errors=60),
    "no errors at all": lambda: with_budget(errors=None),
    "a threshold too low": lambda: replace(MADE, overlap=Given(-3.0)),
    "a threshold too high": lambda: replace(MADE, overlap=Given(5.0)),
    "another rule": lambda: replace(MADE, rule=CURVE.at(1.6).rule),
    "a delta that is not the curve's": lambda: with_clause(
        MADE,
        "fpr",
        asked=replace(promise_of(MADE), delta=0.01),
        certified=replace(promise_of(MADE), delta=0.01),
    ),
    "counted crossings": lambda: with_clause(MADE, "fpr", beyond=3),
    "another ceiling": lambda: with_ceiling(MADE, "fpr", 0.01),
    "more points than any band": lambda: with_clause(MADE, "fpr", n=10**9),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_follow_from_the_bands_is_refused(name: str) -> None:
    with pytest.raises(CertificateError, match=r"contradicts itself|not possible"):
        Certificate.from_json(WRONG[name]().to_json())


def looser() -> Certificate:
    """Return a bound that is true, but not that of the band."""
    assert MADE.fpr.budget is not None
    found = Budget.of(20_000, MADE.fpr.budget.rate * 1.0001, MADE.fpr.budget.delta)
    return with_budget(rate=found.rate, confidence=found.confidence)


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        (
            lambda: replace(MADE, overlap=Given(-3.0), rule=Rule(-3.0, -3.0)),
            "does not lie between",
        ),
        (
            lambda: replace(MADE, overlap=Given(5.0), rule=Rule(5.0, 5.0)),
            "does not lie between",
        ),
        (
            lambda: with_clause(MADE, "fpr", asked=replace(promise_of(MADE), ceiling=0.5)),
            "must be the bounds of the curve|together",
        ),
        (looser, "the budget of normal points"),
    ],
)
def test_where_all_else_fits_the_one_thing_that_does_not_is_named(
    forged: Callable[[], Certificate], sentence: str
) -> None:
    with pytest.raises(CertificateError, match=sentence):
        Certificate.from_json(forged().to_json())


@pytest.mark.parametrize("threshold", [inf, -inf, nan, "1", None, True])
def test_a_threshold_is_a_finite_number(threshold: Any) -> None:
    with pytest.raises(InputError, match="finite number"):
        Given(threshold)


def test_it_asks_for_no_rank_and_counts_its_promises() -> None:
    asked = MADE.guarantee
    assert list(MADE.overlap.ranks(asked_of(asked), (20_000, 400))) == []
    assert MADE.overlap.tried(asked, (20_000, 400)) == len(CURVE.normal.ranks) + len(CURVE.anomalous.ranks)


def test_both_ends_of_a_step_have_the_same_bounds_and_beyond_them_others() -> None:
    low, high = MADE.thresholds.alarm_from, MADE.thresholds.clear_below
    assert low is not None
    assert high is not None
    assert CURVE.fpr(low) == CURVE.fpr(1.5) < CURVE.fpr(nextafter(low, -inf))
    assert CURVE.fnr(high) == CURVE.fnr(1.5) < CURVE.fnr(nextafter(high, inf))


def test_the_thresholds_are_those_of_the_errors_that_each_class_has_there() -> None:
    normal, anomalous = np.arange(300.0), np.arange(150.0, 450.0)
    found = decided(Given(250.0), Guarantee(), normal, anomalous)
    assert found.fpr is not None
    assert found.fnr is not None
    assert found.fpr.errors is not None
    assert found.fnr.errors is not None
    assert found.thresholds.alarm_from == nextafter(normal[-1 - found.fpr.errors], inf)
    assert found.thresholds.clear_below == anomalous[found.fnr.errors]
    # bounds that hold at every threshold at once, for classes that are independent samples
    assert Given.multiplies
