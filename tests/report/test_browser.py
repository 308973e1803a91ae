"""The HTML report in a real browser: read at every width, printed, and running nothing but its own script."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee, Monitor, calibrate, calibrate_labelled, calibrate_traffic, certify_curve
from pac_wrap.method.certificate import Certificate
from pac_wrap.report.account import account_of
from pac_wrap.report.render import html
from support.browser import CLASHES, CONTRAST, WIDE, complains, complaints, downloaded, show
from support.reports import FOREIGN, HOSTILE, report

refused = pytest.importorskip("selenium.common.exceptions", reason="selenium is not installed")

NAMES = ("relaxed", "overlapping", "vacuous")
NARROW = 36 * 16

FIGURES = """
return [...document.querySelectorAll('svg.plot')].map(drawing => {
  const box = drawing.getBoundingClientRect();
  return [box.left, box.right, box.height];
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_a_report_can_be_read_at_every_width_and_in_both_schemes(
    browser: Any, folder: Path, name: str, width: int, scheme: str
) -> None:
    show(browser, folder / f"{name}.html", width, scheme)
    assert complaints(browser) == []
    assert browser.execute_script("return innerWidth") == width
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(WIDE) == []
    assert browser.execute_script(CLASHES) == []
    assert browser.execute_script(CONTRAST) >= 4.5
    figures = browser.execute_script(FIGURES)
    # the two large ones, and four small ones of the shift if anything is promised
    assert len(figures) in (2, 6)
    for left, right, height in figures[:2]:
        assert 0 <= left < left + 250 < right <= width
        assert height > 150
    for left, right, height in figures[2:]:
        assert 0 <= left < left + 100 < right <= width
        assert height > 100


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
@pytest.mark.parametrize("name", ["separated", "raised", "vacuous"])
def test_status_promise_and_picture_stand_on_the_first_screen_and_what_to_do_below(
    browser: Any, folder: Path, name: str, width: int, height: int
) -> None:
    show(browser, folder / f"{name}.html", width)
    bottoms = browser.execute_script(
        "return ['.status', '.promise', '#figure-scores svg', '#next']"
        ".map(name => document.querySelector(name).getBoundingClientRect().bottom)"
    )
    assert bottoms == sorted(bottoms)
    assert bottoms[2] <= height
    assert bottoms[3] <= bottoms[2] + 200


def test_wide_tables_scroll_in_their_own_container(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html", NARROW + 5)
    long = "document.querySelector('.scroll td').textContent = 'x'.repeat(500);"
    browser.execute_script(f"{long} document.querySelector('.scroll td').style.whiteSpace = 'nowrap';")
    assert browser.execute_script(
        "const box = document.querySelector('.scroll'); return box.scrollWidth > box.clientWidth"
    )
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= NARROW + 5


def test_nothing_is_fetched(browser: Any, folder: Path) -> None:
    browser.get_log("performance")
    show(browser, folder / "relaxed.html")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    fetched = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert fetched == [(folder / "relaxed.html").as_uri()]


def test_foreign_names_are_shown_and_inert(browser: Any, folder: Path) -> None:
    show(browser, folder / "relaxed.html")
    with pytest.raises(refused.NoAlertPresentException):
        _ = browser.switch_to.alert
    shown = browser.find_element("tag name", "main").text
    assert shown.startswith(f"Error rates of {HOSTILE}")
    assert FOREIGN.label in browser.execute_script("return document.querySelector('main').textContent")
    assert browser.find_elements("css selector", "img, iframe, object, embed, link, base") == []
    assert len(browser.find_elements("css selector", "script")) == 2
    assert browser.title == f"Error rates of {HOSTILE}"


def test_the_policy_stops_scripts_even_if_one_gets_in(browser: Any, folder: Path) -> None:
    show(browser, folder / "vacuous.html")
    browser.execute_script(
        "const element = document.createElement('script'); element.textContent = 'window.ran = 1';"
        "document.body.append(element);"
    )
    assert browser.execute_script("return window.ran") is None
    complains(browser, "Content Security Policy")


def test_the_certificate_can_be_saved(browser: Any, folder: Path, tmp_path: Path) -> None:
    show(browser, folder / "relaxed.html")
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    link = browser.find_element("css selector", "a[download='certificate.json']")
    target = downloaded(browser, link, tmp_path)
    assert target.name == "certificate.json"
    certificate = report("relaxed").certificate
    assert target.read_text(encoding="utf-8") == certificate.to_json()
    assert Certificate.load(target) == certificate
    assert complaints(browser) == []


@pytest.mark.skipif(not shutil.which("pdftoppm"), reason="poppler-utils is not installed")
def test_a_report_prints_light_and_whole(browser: Any, folder: Path, tmp_path: Path) -> None:
    show(browser, folder / "relaxed.html", scheme="dark")
    paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    document = tmp_path / "report.pdf"
    document.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"]))
    subprocess.run(["pdftoppm", "-gray", "-r", "40", document, tmp_path / "page"], check=True)
    sheets = sorted(tmp_path.glob("page-*.pgm"))
    assert 3 <= len(sheets) <= 12
    for sheet in sheets:
        width, height = map(int, sheet.read_bytes().split(b"\n")[1].split())
        ink = np.frombuffer(sheet.read_bytes()[-width * height :], np.uint8).reshape(height, width)
        assert ink.min() < 128, f"{sheet.name} is blank"
        assert ink.mean() > 190, f"{sheet.name} is dark"
        assert ink[:, [0, -1]].min() > 250, f"{sheet.name} is cut off at the side"
    read = subprocess.run(["pdftotext", "-layout", document, "-"], check=True, capture_output=True).stdout
    pages = read.decode().split("\f")
    assert "at most 25" in " ".join(pages[0].split())
    assert "What to do next" in pages[0]
    tau = report("relaxed").certificate.rule.anomaly_from
    assert f"from {tau:.6g} on" in read.decode().replace("\N{NO-BREAK SPACE}", " ")
    assert '"checksum"' in read.decode()
    assert "Save" not in read.decode()


def test_a_phone_shows_the_heads_of_stacked_cells(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html", 320)
    before = browser.execute_script(
        "return [...document.querySelector('#verdicts ~ .scroll tbody tr').children]"
        ".map(cell => getComputedStyle(cell, '::before').content)"
    )
    assert before == [
        "none",
        '"Verdict: "',
        '"Meaning: "',
        '"Normal points: "',
        '"Anomalous points: "',
    ]
    heads = browser.execute_script("return document.querySelector('thead').getBoundingClientRect().width")
    assert heads <= 1
    scrolled = (
        "return [...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth).length"
    )
    assert browser.execute_script(scrolled) == 0


def watched(name: str) -> Monitor:
    """A watch with alarms, and one of groups with names that nobody should choose."""
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(size=1000), rng.normal(2.5, 1, size=1000)
    if name == "alarm":
        certificate = calibrate(normal, anomalous)
        monitor = Monitor(certificate, certify_curve(normal, anomalous))
        scores = rng.normal(1.5, 1, 1500)
        monitor.update(certificate.verdicts(scores), np.zeros(1500), scores=scores, id=HOSTILE)
        return monitor
    names = [HOSTILE, "\u202e" + "w" * 300, *map(str, range(16))]
    labels = np.tile(np.repeat([0, 1], 200), len(names))
    groups = np.repeat(names, 400)
    scores = rng.normal(3.0 * labels)
    grouped = calibrate_labelled(scores, labels, by=groups)
    watch = Monitor(grouped)
    fresh = scores + 2.0 * (groups == names[1]) * (labels == 0)
    order = rng.permutation(labels.size)
    watch.update(grouped.verdicts(fresh, groups)[order], labels[order], groups=groups[order], id=HOSTILE)
    return watch


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1280, "light")])
def test_alarms_can_be_read_and_their_bars_stand_in_the_picture(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    rng = np.random.default_rng(0)
    anomaly = rng.random(20_000) < 0.01
    scores = rng.normal(3.0 * anomaly)
    reviews = np.where(scores > 3.5, anomaly, np.nan)
    certificate = calibrate_traffic(scores, reviews, Guarantee(max_false_alarms="20 per 20,000"))
    account = account_of(certificate, scores, reviews=reviews, source=FOREIGN, detector=HOSTILE)
    (tmp_path / "alarms.html").write_text(html(account), encoding="utf-8")
    show(browser, tmp_path / "alarms.html", width, scheme)
    assert complaints(browser) == []
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(WIDE) == []
    assert browser.execute_script(CLASHES) == []
    assert browser.execute_script(CONTRAST) >= 4.5
    ((left, right, height),) = browser.execute_script(FIGURES)
    assert 0 <= left < left + 250 < right <= width
    assert height > 150
    threshold = browser.execute_script("return document.querySelector('line.flag').getBoundingClientRect().x")
    found = browser.execute_script(
        "return [...document.querySelectorAll('#figure-alarms .plot .bar')].map(bar => {"
        "const box = bar.getBoundingClientRect(); return [bar.classList[1], box.left, box.right]})"
    )
    assert {name for name, *_ in found} == {"right", "wrong", "not_reviewed"}
    # no bar crosses the threshold, and there are some on both sides
    sides = [
        start < threshold - 1.5 for _, start, end in found if start > threshold - 1.5 or end < threshold + 1.5
    ]
    assert len(sides) == len(found)
    assert {True, False} == set(sides)


@pytest.fixture(scope="module")
def watches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("watches")
    for name in ("alarm", "groups"):
        (target / f"{name}.html").write_text(html(account_of(watched(name))), encoding="utf-8")
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["alarm", "groups"])
def test_a_watch_can_be_read_at_every_width_and_in_both_schemes(
    browser: Any, watches: Path, name: str, width: int, scheme: str
) -> None:
    show(browser, watches / f"{name}.html", width, scheme)
    assert complaints(browser) == []
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(WIDE) == []
    assert browser.execute_script(CLASHES) == []
    assert browser.execute_script(CONTRAST) >= 4.5
    figures = browser.execute_script(FIGURES)
    assert len(figures) >= 4
    assert all(0 <= left < left + 250 < right <= width for left, right, _ in figures)
    assert browser.find_elements("css selector", "script, img, iframe, object, embed, link, base") == []
    with pytest.raises(refused.NoAlertPresentException):
        _ = browser.switch_to.alert
    shown = browser.execute_script("return document.querySelector('main').textContent")
    assert "Alarm" in shown
    assert "<script>" in HOSTILE
    assert "script>" in shown
