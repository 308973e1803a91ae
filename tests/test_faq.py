"""Every number of the FAQ that is marked is computed again, and every question has one."""

import re
from decimal import ROUND_CEILING, Context, Decimal
from math import floor, log, log1p
from statistics import NormalDist

import pytest

import pac_wrap
from pac_wrap import tails
from pac_wrap.detectors.safety import WITNESSES
from pac_wrap.method.curves.band import band_of
from pac_wrap.tails.bounds import cdf
from pac_wrap.tails.levels import first_success, look_budgets
from support.pages import ROOT

PAGE = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
MARKED = re.compile(r"([\d.,]+)<!-- = (.+?) -->")


def achievable(n: int, errors: int) -> str:
    """Return the least ceiling in percent, rounded up to three digits."""
    rate = tails.upper_bound(errors, n, 0.05)
    return f"{Context(prec=3, rounding=ROUND_CEILING).multiply(Decimal(repr(rate)), 100).normalize():f}"


def quoted(page: str, pattern: str) -> str:
    """Return a number that another page states: it is measured in the tests of what that page says."""
    found = set(re.findall(pattern, (ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert len(found) == 1, (pattern, found)
    return str(found.pop())


NAMES = {name: getattr(home, name) for home in (pac_wrap, tails) for name in home.__all__} | {
    "LOOKS": range(20, 2001, 20),
    "NormalDist": NormalDist,
    "WITNESSES": WITNESSES,
    "SEPARATED": pac_wrap.calibrate(range(1000), range(2000, 3000)),
    "AUDITED": pac_wrap.plan(
        pac_wrap.Guarantee(None, 0.1, max_alarms=0.01, reviews=pac_wrap.Reviews(audits=0.05)),
        guess_prevalence=0.01,
    ),
    "achievable": achievable,
    "band_of": band_of,
    "cdf": cdf,
    "first_success": first_success,
    "floor": floor,
    "log": log,
    "log1p": log1p,
    "look_budgets": look_budgets,
    "quoted": quoted,
}


def written(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_the_numbers_of_an_answer_are_computed_again(question: str, answer: str) -> None:
    found = MARKED.findall(answer)
    assert found, f"{question}: no number"
    assert answer.count("<!--") == len(found)
    for text, expression in found:
        assert text == written(eval(expression, dict(NAMES))), expression


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_an_answer_leads_to_theory_and_code(question: str, answer: str) -> None:
    last = answer.strip().partition("*More:*")[2]
    (anchor,) = re.findall(r"\]\(theory\.md#([^)]+)\)", last)
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", theory, flags=re.MULTILINE)
    assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}
    numbered = set(re.findall(r"\\tag\{(\d+)\}|\((\d+)\)\n", theory))
    known = {number for pair in numbered for number in pair}
    cited = set(re.findall(r"\((\d+)\)", last))
    assert cited <= known
    for theorem in re.findall(r"Theorems? ([\d, and]+\d|\d+)", last):
        for number in re.findall(r"\d+", theorem):
            assert re.search(rf"\*\*Theorem {number}\b", theory)
    names = re.findall(r"`(\w+)(?:\.[\w.]+)?[`(]", last)
    assert set(names) & {*pac_wrap.__all__, *tails.__all__, "pac_wrap"}, f"{question}: no name of the library"


def test_every_question_that_was_asked_has_an_answer() -> None:
    assert len(QUESTIONS) == 20
