"""The explorer by keyboard, mouse and touch: it follows at once, and what it saves is verified."""

import json
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate
from pac_wrap.report.numbers import ceiling
from pac_wrap.report.pictures import Window
from support.browser import complaints, downloaded, dragged, show
from support.explored import told
from support.reports import curve_for, report
from support.shell import succeeded


def readout(browser: Any) -> dict[str, str]:
    return dict(
        browser.execute_script(
            "return [...document.querySelectorAll('#readout dd')]"
            ".map(one => [one.dataset.of, one.textContent])"
        )
    )


def chosen(browser: Any) -> float:
    """Return the threshold of the certificate that would be saved."""
    text = browser.execute_script("return document.querySelector('[data-of=rule]').textContent")
    return float(text.replace("\N{MINUS SIGN}", "-"))


def expected(name: str, threshold: float, low: float, high: float, points: int = 1000) -> dict[str, str]:
    curve = curve_for(report(name))
    assert curve is not None
    places = curve.steps()[0]
    exact = float(places[np.abs(places - threshold).argmin()])
    words = told(curve, exact, exact, low, high, points)
    del words["right"]
    return words


def test_the_threshold_moves_by_keyboard(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html")
    before, slider = chosen(browser), browser.find_element("id", "threshold")
    assert readout(browser) == expected("overlapping", before, 0.5, 0.5)
    slider.send_keys("\ue014" * 5)  # arrow right
    after = chosen(browser)
    assert after > before
    assert (
        readout(browser)
        == expected("overlapping", after, 0.5, 0.5)
        != expected("overlapping", before, 0.5, 0.5)
    )
    assert "FPR at most" in slider.get_attribute("aria-valuetext")
    assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    share = browser.find_element("id", "prevalence")
    share.clear()
    share.send_keys("0.01-0.03")
    assert readout(browser) == expected("overlapping", after, 0.01, 0.03)
    day = browser.find_element("id", "points")
    day.clear()
    day.send_keys("50,000")
    assert readout(browser) == expected("overlapping", after, 0.01, 0.03, 50_000)
    day.send_keys("x")
    assert day.get_attribute("aria-invalid") == "true"
    assert readout(browser)["alarms"] == "state a number"
    assert readout(browser)["precision"] == expected("overlapping", after, 0.01, 0.03)["precision"]
    share.send_keys("x")
    assert share.get_attribute("aria-invalid") == "true"
    assert readout(browser)["alarms"] == "state a share"
    assert complaints(browser) == []


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_the_threshold_is_dragged(browser: Any, folder: Path, kind: str) -> None:
    show(browser, folder / "overlapping.html", 390)
    left, top, width = browser.execute_script(
        "const plot = document.getElementById('plot'); plot.scrollIntoView({block: 'center'});"
        "const box = plot.getBoundingClientRect(); return [box.left, box.top + 60, box.width]"
    )
    low, high = explorer_window("overlapping")
    dragged(browser, kind, left + 0.5 * width, left + 0.6 * width, top)
    assert chosen(browser) == pytest.approx(low + 0.6 * (high - low), abs=0.05)
    assert readout(browser) == expected("overlapping", chosen(browser), 0.5, 0.5)
    assert complaints(browser) == []


def test_a_ceiling_is_dragged(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html")
    browser.find_element("css selector", "input[value=two]").click()
    before = readout(browser)
    left, top, width, line = browser.execute_script(
        "const plot = document.getElementById('plot'); plot.scrollIntoView({block: 'center'});"
        "const box = plot.getBoundingClientRect();"
        "const circles = document.querySelectorAll('#handles circle');"
        "return [box.left, box.top + 60, box.width, parseFloat(circles[1].getAttribute('cx')) / 100]"
    )
    dragged(browser, "mouse", left + line * width, left + (line - 0.05) * width, top)
    after = readout(browser)
    assert after["fnr"] == before["fnr"]  # the other ceiling stays
    assert float(after["fpr"].split()[2]) > float(before["fpr"].split()[2])
    low, high = explorer_window("overlapping")
    curve = curve_for(report("overlapping"))
    assert curve is not None
    assert after["fpr"] == f"at most {ceiling(curve.fpr(low + (line - 0.05) * (high - low)))}"


def explorer_window(name: str) -> tuple[float, float]:
    given = report(name)
    assert given.normal is not None
    assert given.anomalous is not None
    rule = given.certificate.rule
    window = Window.around((given.normal, given.anomalous), [rule.normal_below, rule.anomaly_from])
    return window.low, window.high


def saved(browser: Any, folder: Path) -> Path:
    link = browser.find_element("id", "save")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
    return downloaded(browser, link, folder)


def test_the_certificate_of_a_typed_threshold_is_saved_shown_and_verified(
    browser: Any, folder: Path, tmp_path: Path
) -> None:
    given = report("overlapping")
    assert given.normal is not None
    assert given.anomalous is not None
    show(browser, folder / "overlapping.html")
    typed = browser.find_element("id", "typed")
    typed.clear()
    typed.send_keys("0.75")
    path = saved(browser, tmp_path)
    assert path.name == "certificate-from-0.75.json"
    curve = curve_for(given)
    assert curve is not None
    assert path.read_text(encoding="utf-8") == curve.at(0.75).to_json()
    assert Certificate.load(path).verify(given.normal, given.anomalous)
    assert "anomaly from 0.75 on" in succeeded("show", path)
    typed.send_keys("x")
    assert typed.get_attribute("aria-invalid") == "true"
    # what the slider then says stands there, and is right
    browser.find_element("id", "threshold").send_keys("\ue014")  # arrow right
    assert float(typed.get_attribute("value")) > 0.0
    assert typed.get_attribute("aria-invalid") == "false"
    assert complaints(browser) == []


def test_two_ceilings_are_marked_as_exploration_only(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html")
    browser.find_element("css selector", "input[value=two]").click()
    curve = curve_for(report("overlapping"))
    assert curve is not None
    for name in ("max-fpr", "max-fnr"):
        browser.find_element("id", name).send_keys("\ue011" + "\ue014" * 4)  # home, arrow right
    assert browser.find_element("id", "uncertain").is_displayed()
    assert not browser.find_element("id", "certain").is_displayed()
    normal, anomalous = curve.normal, curve.anomalous
    words = told(curve, anomalous.scores[4], nextafter(normal.scores[4], inf), 0.5, 0.5)
    del words["right"]
    assert readout(browser) == words
    assert words["fpr"] == f"at most {ceiling(normal.bounds[4])}"
    command = f"pac-wrap calibrate \u2026 --max-fpr {normal.bounds[4]} --max-fnr {anomalous.bounds[4]}"
    assert browser.find_element("css selector", "[data-of=command]").text == command
    for name in ("max-fpr", "max-fnr"):
        browser.find_element("id", name).send_keys("\ue010")  # end: high ceilings need no second threshold
    assert browser.find_element("id", "certain").is_displayed()
    assert complaints(browser) == []


def test_the_page_is_whole_without_scripts_and_fetches_nothing(browser: Any, folder: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, folder / "overlapping.html", 390)
        assert not browser.find_element("id", "explorer").is_displayed()
        assert browser.find_element("id", "figure-curve").is_displayed()
        assert "both bounds alike" in browser.find_element("tag name", "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.get_log("performance")
    show(browser, folder / "overlapping.html")
    browser.find_element("id", "threshold").send_keys("\ue014")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    fetched = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert fetched == [(folder / "overlapping.html").as_uri()]
