"""The site that `make docs` builds: links lead somewhere, nothing needs the network, and it can be read."""

import fcntl
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from support.browser import complaints, show
from support.pages import ROOT
from support.patience import until

pytestmark = pytest.mark.slow
DOCS = ROOT / "docs"
HTML = DOCS / "_build" / "html"
NEEDED = ("sphinx", "myst_nb", "furo", "sphinx_copybutton", "numpydoc", "sphinx-mathjax-offline")
PAGES = [
    "index",
    "start",
    "planner",
    "faq",
    "guide/tables",
    "examples",
    "examples/fraud",
    "theory",
    "reproduction",
    "benchmarks",
    "api",
    "api/pac_wrap.PACWrap",
    "cli",
    "schema",
    "decisions",
    "changelog",
]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the site, built if it is not, or not as the sources are."""
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed: pip install 'pac-wrap-ad[docs]'")
    HTML.parent.mkdir(exist_ok=True)
    with (HTML.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker builds, the others find it built
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "--fail-on-warning",
            "--keep-going",
            "--quiet",
            str(DOCS),
            str(HTML),
        ]
        # notebooks run by `make docs` are cached; others run in a folder of their own, where `..` is another
        data = os.environ.get("PAC_WRAP_DATA")
        environment = os.environ | ({"PAC_WRAP_DATA": str(Path(data).resolve())} if data else {})
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return HTML


class Page(HTMLParser):
    """The addresses that a page names, with the tags that name them, and those that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "data", "poster") and value:
                self.links.append((tag, value))
            elif name in ("id", "name") and value:
                self.places.add(value)


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> Iterator[Path]:
    yield from (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)


def test_every_link_leads_to_a_file_and_a_place_that_are_there(site: Path) -> None:
    lost, followed = [], 0
    for path in pages(site):
        for _, link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            followed += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file()
            if there and parts.fragment and target.suffix == ".html":
                there = unquote(parts.fragment) in page(target).places
            if not there:
                lost.append((path.name, link))
    assert lost == []
    assert followed > 10_000


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    for path in pages(site):
        foreign = [link for tag, link in page(path).links if tag != "a" and re.match(r"(https?:)?//", link)]
        assert foreign == [], path
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), (
            style
        )


def test_what_the_code_cites_of_the_theory_is_a_link(site: Path) -> None:
    theory = page(site / "theory.html").places
    source = (DOCS / "theory.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\\tag\{(\d+)\}", source)
    assert {f"eq-{number}" for number in numbers} <= theory
    assert {f"theorem-{number}" for number in range(1, 28)} <= theory
    cited = {link for _, link in page(site / "api" / "pac_wrap.Monitor.html").links}
    assert "../theory.html#eq-84" in cited


def test_every_public_name_and_every_command_has_its_place(site: Path) -> None:
    import pac_wrap

    for name in pac_wrap.__all__:
        if name != "__version__":
            found = [
                path
                for path in (site / "api").glob(f"pac_wrap.{name}*.html")
                if f"pac_wrap.{name}" in page(path).places
            ]
            assert found, name
    commands = {place for place in page(site / "cli.html").places if place.startswith("pac-wrap-")}
    assert {"pac-wrap-calibrate", "pac-wrap-decide", "pac-wrap-monitor", "pac-wrap-data-list"} <= commands


def test_a_notebook_that_was_not_run_says_so(site: Path) -> None:
    for path in sorted((DOCS / "examples").glob("*.ipynb")):
        needs = json.loads(path.read_text(encoding="utf-8"))["metadata"]["pac_wrap"]["needs"]
        text = (site / "examples" / f"{path.stem}.html").read_text(encoding="utf-8")
        if "data" in needs and not os.environ.get("PAC_WRAP_DATA"):
            assert "it was not run here, since" in text
        assert "cell_output" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_at_both_widths_and_in_both_schemes(
    browser: Any, site: Path, name: str, width: int, scheme: str
) -> None:
    show(browser, site / f"{name}.html", width, scheme)
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert complaints(browser) == []
    broken = (
        "return [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"
    )
    assert browser.execute_script(broken) == []


def test_mathematics_is_drawn_from_the_file_system(browser: Any, site: Path) -> None:
    show(browser, site / "theory.html", 390)
    until(lambda: len(found(browser, "mjx-container")) > 1000, "the formulas are drawn")
    assert found(browser, "mjx-merror") == []
    # a formula in a line is not broken, so it has to be shorter than one
    wide = (
        "return [...document.querySelectorAll('mjx-container:not([display])')]"
        ".filter(one => one.getBoundingClientRect().right > 390).map(one => one.parentElement.textContent)"
    )
    assert browser.execute_script(wide) == []


def test_search_works_without_a_server(browser: Any, site: Path) -> None:
    browser.get((site / "search.html").as_uri() + "?q=recalibrate")
    links = "#search-results li a"
    until(lambda: any("recalibrate" in text for text in found(browser, links)), "a page is found")


def test_a_click_copies_code_without_prompts_and_outputs(browser: Any, site: Path) -> None:
    show(browser, site / "api" / "pac_wrap.tails.min_samples.html")
    until(lambda: found(browser, "button.copybtn") != [], "there is a button")
    browser.execute_script(
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value; });"
    )
    browser.find_element("css selector", "button.copybtn").click()
    until(lambda: browser.execute_script("return window.copied") is not None, "it is copied")
    lines = browser.execute_script("return window.copied").splitlines()
    assert lines
    assert all(line.startswith("min_samples(") for line in lines)


def found(browser: Any, selector: str) -> list[str]:
    """Return the texts of what a selector finds."""
    script = "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)"
    texts: list[str] = browser.execute_script(script, selector)
    return texts
