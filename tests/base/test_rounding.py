"""No promise is rounded in its own favour, wherever it is printed: ceilings up, confidences down."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from rich.console import RenderableType

from pac_wrap import Guarantee, calibrate
from pac_wrap.base.floats import (
    ceiling_up,
    confidence_left,
    float_below,
    kept_together,
    rounded_down,
    rounded_up,
)
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.comparison import compare_scores
from pac_wrap.method.metrics import evaluate
from pac_wrap.report import sentences
from pac_wrap.report.account import account_of
from pac_wrap.report.numbers import ceiling, confidence, sure
from pac_wrap.report.render import terminal
from pac_wrap.report.results import account_of_comparison, account_of_evaluation, account_of_plan
from pac_wrap.tails.bounds import upper_bound
from support.kept import with_ceiling
from support.shell import text_of

RNG = np.random.default_rng(8)
# of all sizes down to 1e-12, and close to 1, where a confidence would be rounded to certainty
RATES = np.concatenate([10.0 ** RNG.uniform(-12, 0, 2000), 1.0 - 10.0 ** RNG.uniform(-15, -1, 1000)]).tolist()
NORMAL, ANOMALOUS = np.arange(100.0), np.arange(50.0, 150.0)
NUMBER = r"([0-9.]+(?:E-[0-9]+)?)"


def numbers_after(text: str, words: str, unit: float = 1.0) -> list[float]:
    """Return every number that follows the words."""
    return [float(found) / unit for found in re.findall(words + NUMBER, text)]


def test_one_number_is_never_in_its_own_favour() -> None:
    for rate in [*RATES[::10], 0.05, 1e-15, 5e-324, 0.1 + 0.2, 1 - 2.0**-53]:
        exact = Decimal(repr(float(rate)))
        assert exact <= Decimal(rounded_up(rate)) <= exact * Decimal("1.001"), rate
        assert exact <= Decimal(ceiling(rate).removesuffix(" %")) / 100, rate
        assert Decimal(rounded_down(rate)) <= exact, rate
        assert Decimal(sure(rate).removesuffix(" %")) / 100 <= exact, rate
        with localcontext(prec=400):
            left = 1 - exact
            assert Decimal(rounded_down(confidence_left(rate))) <= left < 1, rate
            assert Decimal(confidence(rate).removesuffix(" %")) / 100 <= left, rate
            twice = Decimal(confidence(rate, rate).removesuffix(" %")) / 100
            assert twice <= max(1 - 2 * exact, Decimal(0)), rate


def test_numbers_of_numpy_are_written_too() -> None:
    assert rounded_up(np.float64(0.05)) == "0.05"
    assert rounded_down(np.float64(0.95)) == "0.95"
    assert rounded_down(confidence_left(np.float64(0.05))) == "0.95"


def test_deltas_are_added_as_they_were_written() -> None:
    assert rounded_down(confidence_left(0.1, 0.2)) == "0.7"
    assert confidence(0.1, 0.2) == "70 %"
    assert confidence(0.7, 0.7) == "0 %"
    certificate = calibrate(NORMAL, ANOMALOUS, Guarantee(delta_fpr=0.1, delta_fnr=0.2), overlap="raise")
    assert "both together with 70 % confidence." in str(certificate)


def test_confidences_are_multiplied_as_they_were_written() -> None:
    assert kept_together(0.95, 0.95) == Decimal("0.9025")
    assert kept_together(confidence_left(0.1), confidence_left(0.2)) == Decimal("0.72")
    for deltas in RNG.uniform(0.0, 1.0, (400, 2)).tolist():
        exact = Fraction(1)
        for delta in deltas:
            exact *= 1 - Fraction(repr(delta))
        found = kept_together(*map(confidence_left, deltas))
        assert Fraction(found) <= exact
        assert Fraction(repr(float_below(found))) <= exact
        assert exact - Fraction(repr(float_below(found))) < Fraction(1, 10**15)


def promised(certificate: Certificate) -> Iterator[tuple[str, float, str, float]]:
    """Return texts that print a promise, each with the words and unit of its ceilings and confidences."""
    asked = certificate.guarantee
    yield str(asked), 1.0, "confidence ", 1.0
    yield str(certificate).split("\n\n")[1], 1.0, "confidence ", 1.0
    yield sentences.promise(certificate), 100.0, "with ", 100.0
    yield " ".join(sentences.notes(certificate)), 100.0, "(?:onfidence|at least) ", 100.0
    yield " ".join(row["meaning"] for row in account_of(certificate)["verdicts"]), 100.0, "confidence ", 100.0


def test_every_text_that_prints_a_promise_rounds_it_against_itself() -> None:
    # rounded to the nearest, half of the numbers would be in their own favour
    seen, trials = [0] * 5, 15
    for rate, delta in RNG.uniform(0.04, 0.6, (trials, 2)).tolist():
        certificate = calibrate(NORMAL, ANOMALOUS, Guarantee(rate, rate, delta, delta))
        for place, (text, unit, words, share) in enumerate(promised(certificate)):
            ceilings = numbers_after(text, r"(?:<= |t most )", unit)
            confidences = numbers_after(text, words, share)
            assert all(found >= rate * (1 - 1e-15) for found in ceilings), text
            # a side on its own has at most 1 - delta; what is printed for exact tails may be more
            if place not in (1, 2, 3):
                assert all(found <= (1 - delta) * (1 + 1e-15) for found in confidences), text
            elif place > 1:
                sure = [*certificate.confidences.values(), certificate.confidence]
                assert all(found <= max(sure) for found in confidences), text
                if place == 2:
                    assert confidences == [pytest.approx(certificate.confidence, abs=1e-2)], text
                    assert confidences[0] <= certificate.confidence, text
            seen[place] += len(ceilings) + len(confidences)
    assert min(seen) > trials


def test_the_exact_confidence_of_a_budget_is_rounded_down() -> None:
    for n in range(59, 500, 40):
        certificate = calibrate(np.arange(float(n)), np.arange(float(n)) + 1000)
        shown = {row["name"]: row for row in account_of(certificate)["reached"]}[
            "Exact confidence of that budget"
        ]
        assert certificate.fpr.budget is not None
        assert float(shown["normal"].removesuffix(" %")) <= 100 * certificate.fpr.budget.confidence


def relaxed(rate: float) -> Certificate:
    """Return a certificate whose FPR ceiling is `rate`; only for showing it."""
    certificate = calibrate(NORMAL, ANOMALOUS)
    return with_ceiling(with_ceiling(certificate, "fpr", rate), "fnr", rate)


TABLES: dict[str, Callable[[float], tuple[RenderableType, str]]] = {
    "plan": lambda rate: (terminal(account_of_plan(Guarantee(max(rate, 1e-9), max(rate, 1e-9)))), "<= "),
    "evaluation": lambda rate: (
        terminal(account_of_evaluation(relaxed(rate), evaluate([0, 1], [0, 1]))),
        r"F[PN]R +",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_rounds_its_ceilings_up(name: str) -> None:
    for rate in RATES[::100]:
        shown, words = TABLES[name](rate)
        found = numbers_after(text_of(shown, 200), words)
        assert len(found) == 2
        assert min(found) >= rate


def test_what_labels_can_promise_is_rounded_up() -> None:
    for labels in range(11, 3000, 69):
        lines = re.findall(
            r"│ +(\d+) │ +([0-9.]+) │", text_of(terminal(account_of_plan(Guarantee(), labels=labels)), 200)
        )
        assert len(lines) == 5
        for errors, rate in lines:
            assert float(rate) >= upper_bound(int(errors), labels, 0.05)


def test_the_bounds_of_a_comparison_are_rounded_up() -> None:
    scores, labels = np.concatenate([NORMAL, ANOMALOUS]), np.repeat([False, True], 100)
    for delta in np.linspace(0.0112345, 0.2, 5):
        asked = Guarantee(0.0512345, 0.05, float(delta), float(delta))
        (one,) = compare_scores({"a": (scores, labels)}, asked)
        shown = text_of(terminal(account_of_comparison([one], asked)), 200).splitlines()
        text = next(line for line in shown if line[:3] == " a ")
        found = [float(word) for word in text.replace("*", "").split()[2:]]
        exact = [one.abstained, one.common_ceiling, one.fnr_at(0.0512345), one.fpr_at(0.05)]
        assert all(a >= b for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize("rate", [0.0760340738721584, 0.1, 1e-15, 0.9999999999999, 1 / 3, 0.5])
def test_a_computed_ceiling_has_twelve_digits_and_is_never_lower(rate: float) -> None:
    up = ceiling_up(rate)
    assert rate <= up <= rate * (1 + 1e-11)
    assert up == float(f"{up:.11e}")
