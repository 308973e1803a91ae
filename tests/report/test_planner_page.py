"""The planner of the documentation: its tables are current, and its answers are those of the library."""

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner_page
from pac_wrap import DensityRatio, Guarantee, TotalVariation, calibrate, plan
from pac_wrap.base.floats import rounded_down
from pac_wrap.report.numbers import ceiling
from pac_wrap.tails import min_samples, upper_bound
from pac_wrap.tails.bounds import Budget
from support.browser import CLASHES, CONTRAST, complaints, dragged, show

COSTS = json.loads(planner_page.COSTS.read_text(encoding="utf-8"))
CEILINGS = (1e-4, 0.001, 0.01, 0.0317, 0.05, 0.1, 0.25, 0.5)
# a tail that meets its delta exactly is among them: 2^-n
DELTAS = (0.001, 0.01, 0.025, 0.05, 0.125, 0.25, 0.5)
LABELS = (1, 2, 3, 10, 58, 59, 140, 865, 2261, 20_000)
# the colours of the site's theme, in which the planner stands
THEME = """
:root { --color-foreground-primary: #000000; --color-foreground-secondary: #5a5c63;
  --color-background-primary: #ffffff; --color-background-secondary: #f8f9fb; }
@media (prefers-color-scheme: dark) { :root {
  --color-foreground-primary: #cfd0d0; --color-foreground-secondary: #9ca0a5;
  --color-background-primary: #131416; --color-background-secondary: #1a1c1e; } }
body { background: var(--color-background-primary); }
"""
ARROW_RIGHT = "\ue014"


def floored(value: Decimal | float) -> str:
    """Return a confidence in percent as the page writes it, with four digits and rounded down."""
    return f"{rounded_down(value, 100, 4)} %"


def test_the_tables_of_the_planner_are_current() -> None:
    text = planner_page.PAGE.read_text(encoding="utf-8")
    assert text.count("\n| ") > 30
    assert planner_page.page(text, COSTS) == text, "run `make planner`"


def test_costs_that_are_looked_up_are_those_of_the_library() -> None:
    cells = [
        (name, delta, rate)
        for name in COSTS
        for delta in planner_page.DELTAS
        for rate in planner_page.CEILINGS
    ]
    labels = {"curve": planner_page.curve_labels, "raise": planner_page.raise_labels}
    assert set(labels) == set(COSTS)
    for name, delta, rate in random.Random(0).sample(cells, 20):
        assert COSTS[name][repr(delta)][repr(rate)] == labels[name](rate, delta)
    # what the theory's section 10 says
    assert COSTS["curve"]["0.05"]["0.05"] == 119


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Path]:
    """A page with the planner and nothing else, opened."""
    file = tmp_path / "page.html"
    planner_page.write_files(tmp_path, COSTS)
    file.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<title>Planner</title><style>{THEME}</style><link rel="stylesheet" href="planner.css">'
        '<body><main><div id="planner">no script</div></main>'
        '<script defer src="planner.js"></script>',
        encoding="utf-8",
    )
    show(browser, file)
    yield file
    assert complaints(browser) == []


def answers(browser: Any) -> dict[str, str]:
    script = (
        "return [...document.querySelectorAll('#planner td')].map(one => [one.dataset.of, one.textContent])"
    )
    return dict(browser.execute_script(script))


def fill(browser: Any, **values: str) -> None:
    for name, value in values.items():
        field = browser.find_element("id", name.replace("_", "-"))
        field.clear()
        field.send_keys(value)


@pytest.mark.usefixtures("page")
def test_labels_budgets_and_ceilings_are_those_of_the_library(browser: Any) -> None:
    needed = [(rate, delta, k) for rate in CEILINGS for delta in DELTAS for k in (0, 1, 2, 5, 10, 37)]
    found = browser.execute_script("return arguments[0].map(one => PacWrap.needed(...one))", needed)
    assert found == [min_samples(*one) for one in needed]
    budgets = [(n, rate, delta) for n in LABELS for rate in CEILINGS for delta in DELTAS]
    found = browser.execute_script(
        "return arguments[0].map(([n, rate, delta]) => { const k = PacWrap.budget(n, rate, delta);"
        " return [k, k === null ? null : PacWrap.sure(n, rate, k)]; })",
        budgets,
    )
    made = [Budget.of(*one) for one in budgets]
    assert found == [[one.errors, None if one.errors is None else floored(one.confidence)] for one in made]
    assert sum(one.errors is None for one in made) > 50
    kept = [(n, delta, k) for n in LABELS for delta in DELTAS for k in (0, 1, 2, 5, 10, 100) if k < n]
    found = browser.execute_script(
        "return arguments[0].map(one => PacWrap.ceiling(PacWrap.kept(...one)))", kept
    )
    assert found == [ceiling(upper_bound(k, n, delta)) for n, delta, k in kept]


@pytest.mark.usefixtures("page")
def test_the_tolerance_for_shift_is_that_of_the_library(browser: Any) -> None:
    for tag, tolerances in (
        ("tv", [(rate, TotalVariation(rate * share)) for rate in CEILINGS for share in (0.01, 1 / 3, 0.9)]),
        ("ratio", [(rate, DensityRatio(ratio)) for rate in CEILINGS for ratio in (1.1, 3, 7.7, 1000)]),
    ):
        asked = [(rate, tolerance.size) for rate, tolerance in tolerances]
        script = f"return arguments[0].map(([rate, size]) => PacWrap.tolerances.{tag}(size).before(rate))"
        assert browser.execute_script(script, asked) == [
            tolerance.before(rate) for rate, tolerance in tolerances
        ]
        kept = [
            (n, delta, k, tolerance.size)
            for n in LABELS[3:]
            for delta in DELTAS
            for k in (0, 2)
            for _, tolerance in tolerances
        ]
        script = (
            "return arguments[0].map(([n, delta, k, size]) => {"
            f" const found = PacWrap.kept(n, delta, k, PacWrap.tolerances.{tag}(size));"
            " return found === null ? null : PacWrap.ceiling(found); })"
        )
        made = {(type(tolerance), tolerance.size): tolerance for _, tolerance in tolerances}
        found = browser.execute_script(script, kept)
        for (n, delta, k, size), words in zip(kept, found, strict=True):
            rate = made[type(tolerances[0][1]), size].after(upper_bound(k, n, delta))
            assert words == (ceiling(rate) if rate < 1.0 else None), (tag, n, delta, k, size)
    assert browser.execute_script("return PacWrap.tolerances.tv(0.05).before(0.05)") == 0


def says(browser: Any, guarantee: Guarantee, normal: int, anomalous: int) -> None:
    """Compare the page's answers with those of a plan."""
    found = answers(browser)
    planned = plan(guarantee, normal=normal, anomalous=anomalous)
    for name, one in zip(("fpr", "fnr"), planned.needed, strict=True):
        for errors, labels in zip(one.errors, one.labels, strict=True):
            assert found[f"needed-{errors}-{name}"] == f"{labels:,}"
        budget = one.at_hand
        assert budget is not None
        assert found[f"budget-{name}"] == f"{budget.errors:,}"
        assert found[f"sure-{name}"] == floored(budget.confidence)
        lowest = one.promise.afterwards(upper_bound(0, budget.n, budget.delta))
        assert found[f"kept-{name}"] == ceiling(lowest)
    code = browser.execute_script("return document.querySelector('[data-of=python]').textContent")
    names = {"plan": plan, "Guarantee": Guarantee, "TotalVariation": TotalVariation}
    assert str(eval(code, names)) == str(planned)


@pytest.mark.usefixtures("page")
def test_the_page_says_what_a_plan_says(browser: Any) -> None:
    fill(browser, max_fpr="0.0317", max_fnr="5 %", confidence="97.5 %")
    fill(browser, normal="2,261", anomalous="167", errors_fnr="3")
    says(browser, Guarantee(0.0317, 0.05, 0.025, 0.025), 2261, 167)
    found = answers(browser)
    assert found["kept-own-fnr"] == ceiling(upper_bound(3, 167, 0.025))
    assert found["needed-own-fnr"] == f"{min_samples(0.05, 0.025, 3):,} (3 errors)"
    assert found["curve-fnr"] == f"{COSTS['curve']['0.025']['0.05']:,}"
    assert found["raise-fnr"] == f"{COSTS['raise']['0.025']['0.05']:,}"
    assert found["curve-fpr"] == "only for values on the sliders"
    said = browser.find_element("id", "plan-said")
    assert said.text == "Not yet: 167 anomalous labels may show 2 errors, not 3."
    fill(browser, errors_fnr="2")
    assert said.text.startswith(
        "Enough: 2,261 normal labels may show 55 errors, 167 anomalous labels may show 2"
    )
    # the confidence that a certificate of these numbers states
    made = calibrate(np.arange(2261.0), np.arange(167.0) + 3000, Guarantee(0.0317, 0.05, 0.025, 0.025))
    joint = floored(made.confidence)
    assert said.text.endswith(f"each with a confidence of 97.5 %, both together with {joint}.")


@pytest.mark.usefixtures("page")
def test_with_a_tolerance_for_shift_the_page_says_what_a_plan_says(browser: Any) -> None:
    fill(
        browser, max_fpr="5 %", max_fnr="5 %", normal="2,261", anomalous="400", errors_fpr="1", errors_fnr="1"
    )
    browser.execute_script(
        "const tolerance = document.getElementById('tolerance'); tolerance.value = 'tv';"
        "tolerance.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    fill(browser, size="0.02")
    says(browser, Guarantee(0.05, 0.05, shift=TotalVariation(0.02)), 2261, 400)
    assert answers(browser)["shifted-fnr"] == "99 instead of 59"
    assert answers(browser)["curve-fnr"] == "only without a shift"
    assert "after every shift of that size" in browser.find_element("id", "plan-said").text
    shell = browser.execute_script("return document.querySelector('[data-of=shell]').textContent")
    assert shell == "pac-wrap plan --max-fpr 0.05 --max-fnr 0.05 --delta 0.05 --shift tv:0.02"
    fill(browser, size="0.05")
    assert "the shift uses up the whole FPR ceiling" in browser.find_element("id", "plan-said").text


@pytest.mark.usefixtures("page")
def test_what_cannot_be_planned_with_is_marked(browser: Any) -> None:
    fill(browser, max_fnr="5")
    assert browser.find_element("id", "max-fnr").get_attribute("aria-invalid") == "true"
    assert answers(browser)["needed-0-fnr"] == "\N{EN DASH}"
    assert "no usable number" in browser.find_element("id", "plan-said").text
    fill(browser, max_fnr="0.05", anomalous="35")
    assert answers(browser)["budget-fnr"] == "too few, 24 missing"
    assert browser.find_element("id", "plan-said").text == "Not yet: 35 anomalous labels are 24 too few."


@pytest.mark.usefixtures("page")
def test_sliders_move_by_keyboard(browser: Any) -> None:
    fill(browser, max_fpr="5 %")
    slider = browser.find_element("id", "max-fpr-slider")
    slider.send_keys(ARROW_RIGHT)
    assert browser.find_element("id", "max-fpr").get_attribute("value") == "10 %"
    assert slider.get_attribute("aria-valuetext") == "10 %"
    assert answers(browser)["needed-0-fpr"] == f"{min_samples(0.1, 0.05)}"
    confidence = browser.find_element("id", "confidence-slider")
    confidence.send_keys(ARROW_RIGHT)
    assert browser.find_element("id", "confidence").get_attribute("value") == "97.5 %"
    assert answers(browser)["needed-0-fpr"] == f"{min_samples(0.1, 0.025)}"


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_a_point_of_the_picture_is_dragged(browser: Any, kind: str) -> None:
    x, y = browser.execute_script(
        "const plot = document.getElementById('plan-plot'); plot.scrollIntoView({block: 'center'});"
        "const one = document.querySelector('#plan-handles .anomalous').getBoundingClientRect();"
        "return [one.left + one.width / 2, one.top + one.height / 2]"
    )
    dragged(browser, kind, x, x + 60, y)
    labels = int(browser.find_element("id", "anomalous").get_attribute("value").replace(",", ""))
    assert labels > 140
    assert browser.find_element("id", "max-fnr").get_attribute("value") == "5 %"
    assert browser.find_element("id", "normal").get_attribute("value") == "2,000"
    budget = Budget.of(labels, 0.05, 0.05)
    assert answers(browser)["budget-fnr"] == f"{budget.errors:,}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_planner_can_be_read_at_every_width_and_in_both_schemes(
    browser: Any, page: Path, width: int, scheme: str
) -> None:
    show(browser, page, width, scheme)
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(CLASHES) == []
    assert browser.execute_script(CONTRAST) >= 4.5


def test_nothing_is_fetched_but_its_own_files(browser: Any, page: Path) -> None:
    browser.get_log("performance")
    show(browser, page)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    fetched = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert all(url.startswith("file:") for url in fetched)
    assert len(fetched) == 3
