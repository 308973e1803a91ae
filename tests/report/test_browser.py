"""The HTML report in a real browser: headless Chromium, driven through Debian's chromedriver."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.method.certificate import Certificate
from pac_wrap.report.figures import style
from support.reports import FIGURE_COLOURS, FOREIGN, HOSTILE, page, report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
refused = pytest.importorskip("selenium.common.exceptions")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromium-driver are not both installed"
)
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
NAMES = ("relaxed", "overlapping", "vacuous")
NARROW = 36 * 16
PALETTES = {
    scheme: [getattr(style(scheme == "dark"), name) for name in FIGURE_COLOURS]
    for scheme in ("light", "dark")
}

# texts of siblings that overlap by more than a pixel, and texts of a figure that leave it
CLASHES = """
const clashes = [];
const box = node => { const r = node.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const overlap = (a, b) => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1.5
  && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1.5;
const pairs = (nodes) => {
  const boxes = nodes.map(box);
  for (let i = 0; i < nodes.length; i++) for (let j = i + 1; j < nodes.length; j++)
    if (overlap(boxes[i], boxes[j])) clashes.push([nodes[i].textContent, nodes[j].textContent]);
};
const seen = node => node.getClientRects().length > 0 && getComputedStyle(node).position !== 'absolute';
for (const parent of document.querySelectorAll('body, main, section, figure, ul, div, table, tbody, tr'))
  pairs([...parent.children].filter(node => seen(node) && node.textContent.trim()));
for (const svg of document.querySelectorAll('svg')) {
  if (!seen(svg)) continue;
  const texts = [...svg.querySelectorAll('text')].filter(node => node.textContent.trim());
  const [left, top, right, bottom] = box(svg);
  for (const text of texts) {
    const [l, t, r, b] = box(text);
    if (Math.min(l - left, t - top, right - r, bottom - b) < -1.5) clashes.push([text.textContent]);
  }
  pairs(texts);
}
return clashes;
"""

# the least contrast between a text and what lies behind it
CONTRAST = """
const luminance = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = node => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!colour.endsWith(', 0)') && colour !== 'transparent') return colour;
  }
  throw new Error('no background');
};
let least = 21;
for (const node of document.querySelectorAll('main *')) {
  const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  if (!own || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const colour = node instanceof SVGElement ? style.fill : style.color;
  const [high, low] = [luminance(colour), luminance(ground(node))].sort((a, b) => b - a);
  least = Math.min(least, (high + 0.05) / (low + 0.05));
}
return least;
"""

FIGURES = """
return [...document.querySelectorAll('figure')].map(figure => {
  const [caption, drawing] = ['figcaption', 'svg']
    .map(name => figure.querySelector(name).getBoundingClientRect());
  return [drawing.left, drawing.right, drawing.height, caption.width];
});
"""

# what each part of a figure is painted with, where it is painted in a colour
COLOURS = """
return [...document.querySelectorAll('svg *')].flatMap(node => ['fill', 'stroke']
  .filter(kind => /^#/.test(node.getAttribute(kind))).map(kind => getComputedStyle(node)[kind]));
"""

# elements whose content is wider than they are, other than the containers that scroll on purpose
WIDE = """
return [...document.querySelectorAll('main, main *:not(svg *)')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0
    && !node.closest('.scroll, thead, svg'))
  .map(node => node.tagName + '.' + node.className);
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("reports")
    for name in NAMES:
        (target / f"{name}.html").write_text(page(name), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def show(browser: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
    """Open a file at a width and in a colour scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(file.as_uri())


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 600, 768, 1280])
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
    assert len(figures) == page(name).count("<figure ")
    for left, right, height, caption in figures:
        assert 0 <= left < left + 250 < right <= width
        assert height > 150
        assert caption > 180
    drawn = set(browser.execute_script(COLOURS))
    assert drawn <= {rgb(colour) for colour in PALETTES[scheme]}
    assert len(drawn) >= 4


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
    assert FOREIGN.label in shown
    assert browser.find_elements("css selector", "script, img, iframe, object, embed, link, base") == []
    assert browser.title == f"Error rates of {HOSTILE}"


def test_the_policy_stops_scripts_even_if_one_gets_in(browser: Any, folder: Path) -> None:
    show(browser, folder / "vacuous.html")
    browser.execute_script(
        "const element = document.createElement('script'); element.textContent = 'window.ran = 1';"
        "document.body.append(element);"
    )
    assert browser.execute_script("return window.ran") is None
    assert any("Content Security Policy" in text for text in complaints(browser))


def test_the_certificate_can_be_saved(browser: Any, folder: Path, tmp_path: Path) -> None:
    show(browser, folder / "relaxed.html")
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    browser.find_element("css selector", "a[download]").click()
    target = tmp_path / "certificate.json"
    for _ in range(100):
        if target.exists():
            break
        time.sleep(0.05)
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
    assert "At most 25" in pages[0]
    tau = report("relaxed").certificate.rule.anomaly_from
    assert f"from {tau:.6g} on" in pages[0].replace("\N{NO-BREAK SPACE}", " ")
    assert '"checksum"' in read.decode()
    assert "Save certificate.json" not in read.decode()


def test_a_phone_shows_the_heads_of_stacked_cells(browser: Any, folder: Path) -> None:
    show(browser, folder / "overlapping.html", 320)
    before = browser.execute_script(
        "return [...document.querySelector('tbody tr').children]"
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
