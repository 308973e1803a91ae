import json
import os
import re
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NoReturn
from zipfile import ZipFile

import numpy as np
import pytest

from pac_wrap.base.text import visible
from pac_wrap.errors import InputError, OutputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.report.account import Table, account_of
from pac_wrap.report.figures import style
from pac_wrap.report.render import write
from pac_wrap.report.sentences import Origin, Report
from support.patience import LIMIT
from support.reports import (
    FIGURE_COLOURS,
    FOREIGN,
    HOSTILE,
    NAMES,
    make,
    page,
    report,
    to_html,
    to_json,
    to_markdown,
)
from support.strategies import calibrate_quietly

ROOT = Path(__file__).parents[2]
CSS = files("pac_wrap.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
ORDER = ["next", "held-out", "practice", "thresholds", "verdicts", "assumptions"]
# the figure of shift has one for each distance
PANELS = 4
FOLDED = ["shift", "reached", "labels", "certificate", "versions"]


class Page(HTMLParser):
    """What a page consists of: its elements with their attributes, and the text it shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.shown.append(data)

    def all(self, *tags: str) -> Iterator[dict[str, str | None]]:
        return (attributes for tag, attributes in self.elements if tag in tags)


@pytest.fixture(scope="module")
def hostile() -> Page:
    return Page(page("relaxed"))


def test_html_shows_foreign_text_and_never_runs_it(hostile: Page) -> None:
    shown = "".join(hostile.shown)
    for name in (HOSTILE, *map(visible, FOREIGN.tables), FOREIGN.label):
        assert name in shown
    assert {tag for tag, _ in hostile.elements}.isdisjoint({"img", "iframe", "object", "link", "base"})
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)
    policy = next(
        a["content"] for a in hostile.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    hashes = []
    for element in ("style", "script"):
        found = re.search(f"<{element}>(.*?)</{element}>", page("relaxed"), re.S)
        assert found is not None
        hashes.append(f"'sha256-{b64encode(sha256(found.group(1).encode()).digest()).decode()}'")
    assert policy == (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]};"
        " base-uri 'none'; form-action 'none'"
    )
    assert [attributes.get("type") for attributes in hostile.all("script")] == ["application/json", None]
    assert not any("style" in attributes for _, attributes in hostile.elements)


def test_html_refers_to_nothing_outside_itself(hostile: Page) -> None:
    text = page("relaxed")
    assert set(re.findall(r"https?://[^\"' <>]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"@import|@font-face|url\((?!#)", text)
    for _, attributes in hostile.elements:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name) or "#"
            assert target.startswith(("#", "data:application/json;base64,"))


def test_html_is_accessible(hostile: Page) -> None:
    assert next(hostile.all("html"))["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in hostile.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(attributes.get("scope") in ("row", "col") for attributes in hostile.all("th"))
    drawings = [attributes for attributes in hostile.all("svg") if attributes.get("class") == "plot"]
    assert len(drawings) == 2 + PANELS
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"] or "") > 60
    outer = [attributes for attributes in hostile.all("svg") if "viewbox" not in attributes]
    assert all("aria-hidden" in one or one.get("role") == "img" for one in outer)
    labelled = {attributes["for"] for attributes in hostile.all("label") if "for" in attributes}
    for attributes in hostile.all("input"):
        radio = attributes["type"] == "radio"  # which stands within its label
        assert radio or attributes["id"] in labelled or attributes["aria-label"]
    names = [attributes["id"] for _, attributes in hostile.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert len(list(hostile.all("table"))) == len(list(hostile.all("caption")))


def test_no_picture_is_shown_twice_nor_where_there_is_nothing_to_show() -> None:
    def figures(given: Report) -> list[str | None]:
        return [attributes["id"] for attributes in Page(to_html(given)).all("figure")]

    assert figures(report("relaxed")) == ["figure-scores", "figure-curve", "figure-shift"]
    few = Report(calibrate_quietly([], [0.5] * 2), np.empty(0), np.full(2, 0.5))
    assert figures(few) == ["figure-scores"]
    assert figures(Report(report("relaxed").certificate)) == ["figure-shift"]  # which needs no scores
    assert "<script" not in to_html(Report(report("relaxed").certificate))


def test_sections_come_in_the_same_order_everywhere(hostile: Page) -> None:
    assert [attributes["id"] for attributes in hostile.all("h2")] == ORDER + FOLDED
    assert len(list(hostile.all("details"))) == len(FOLDED)
    titles = [line[3:] for line in to_markdown(report("relaxed")).splitlines() if line.startswith("## ")]
    assert titles == re.findall(r"<h2 [^>]*>(.*)</h2>", page("relaxed"))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def palettes() -> tuple[dict[str, str], dict[str, str]]:
    light, dark = re.findall(r":root {(.*?)}", CSS, re.S)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", light)), dict(re.findall(r"--([\w-]+): (#\w{6});", dark))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_keep_their_contrast(scheme: int) -> None:
    colours = palettes()[scheme]
    pairs = [(text, "page") for text in ("text", "muted", "accent")]
    pairs += [("text", "panel"), ("muted", "panel"), ("accent", "panel"), ("warning", "warning-page")]
    pairs += [(f"{name}-text", name) for name in ("good", "part", "bad")]
    drawn = {"line", "faint", "normal", "anomalous"}
    assert {name for pair in pairs for name in pair} | drawn == set(colours)
    for text, ground in pairs:
        high, low = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_pictures_take_their_colours_from_the_page() -> None:
    for name in FIGURE_COLOURS:  # those of the figures that matplotlib draws
        assert [palette[name] for palette in palettes()] == [
            getattr(style(dark), name).lower() for dark in (False, True)
        ]
    assert not re.findall(r'(?:fill|stroke)="#', page("relaxed"))


def test_a_report_is_small_however_many_scores_there_are() -> None:
    big = make(apart=2.0, n=1_000_000, held_out=2.0, source=FOREIGN, overlap="hold_fpr")
    started = time.process_time()
    text = to_html(big)
    assert time.process_time() - started < 10.0  # far less
    assert len(text.encode()) < 1_000_000


def test_the_same_report_gives_the_same_bytes() -> None:
    code = "import sys; from support.reports import page, report, to_json, to_markdown;"
    code += "warnings.simplefilter('ignore'); given = report('vacuous');"
    code += "sys.stdout.write(page('vacuous') + to_markdown(given) + to_json(given))"
    again = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import warnings; {code}"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"},
    ).stdout.decode()
    given_report = report("vacuous")
    assert again == page("vacuous") + to_markdown(given_report) + to_json(given_report)


def test_markdown_tables_hold_whatever_the_names_are() -> None:
    text = to_markdown(report("relaxed"))
    assert "<" not in re.sub(r"```json.*?```", "", text, flags=re.S)
    assert r"a\|b\`c\`.csv" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert r"\[a\](b)\*\_&amp;amp;" in text
    assert "\n# heading" not in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
    fence = re.search(r"```json\n(.*?)```", text, re.S)
    assert fence is not None
    assert Certificate.from_json(fence.group(1)) == report("relaxed").certificate


def test_markdown_leaves_out_what_it_cannot_show() -> None:
    assert "## Measured on held-out points" not in to_markdown(report("vacuous"))
    assert "> **Warning.** The confidence is not guaranteed" in to_markdown(report("uncorrected"))


def strict(text: str) -> object:
    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", NAMES)
def test_json_is_strict_and_carries_the_certificate(name: str) -> None:
    data = strict(to_json(report(name)))
    assert isinstance(data, dict)
    assert Certificate.from_json(json.dumps(data["certificate"])) == report(name).certificate
    assert data["promise"] == account_of(report(name)).headline
    assert [row["code"] for row in data["verdicts"]] in ([0, -1, 1], [0, 1])
    assert (data["held_out"] is None) == (report(name).metrics is None)


def test_json_keeps_foreign_text_and_has_no_infinite_bounds() -> None:
    data = json.loads(to_json(report("relaxed")))
    assert data["source"] == {"tables": list(FOREIGN.tables), "score": HOSTILE, "label": FOREIGN.label}
    far = np.array([inf] * 200)
    odd = Report(calibrate_quietly(np.zeros(200), far, overlap="abstain_always"), np.zeros(200), far)
    shown = json.loads(to_json(odd))
    assert [one["threshold"] for one in shown["certificate"]["clauses"]] == [5e-324, "inf"]
    # a rule that a score of inf is to reach begins at the largest double
    abstained = shown["verdicts"][1]
    assert (abstained["from"], abstained["below"]) == (5e-324, sys.float_info.max)
    vacuous = json.loads(to_json(report("vacuous")))["verdicts"][1]
    assert (vacuous["from"], vacuous["below"]) == (None, None)


def origin_of(given: Report) -> tuple[tuple[str, ...], ...]:
    (last,) = [one for one in account_of(given).sections if one.name == "versions"]
    table = last.items[0]
    assert isinstance(table, Table)
    assert table.caption == "Origin of the scores."
    return table.rows


def test_foreign_text_is_one_line_and_writable() -> None:
    odd = replace(report("vacuous"), source=Origin(("\udcff\x00\u202e", "a" * 1000), "\r\n", "\u2028"))
    for text in (to_markdown(odd), to_json(odd)):
        text.encode()
    origin = origin_of(odd)
    table = {row[0]: row[1] for row in origin}
    assert table["Column of scores"] == r"\r\n"
    assert table["Column of labels"] == r"\u2028"
    assert len(table["Table of scores"]) == 203
    assert origin[0][1] == r"\udcff\x00\u202e"


def test_many_tables_are_counted_not_listed() -> None:
    many = replace(report("vacuous"), source=Origin(tuple(f"{i}.csv" for i in range(1200)), "s", "y"))
    origin = origin_of(many)
    assert len(origin) == 13
    assert ("More tables", "1,190") in origin


@pytest.mark.parametrize("one", [True, False], ids=["one empty class", "infinite scores"])
def test_strange_scores_can_be_reported(one: bool) -> None:
    normal = np.empty(0) if one else np.array([-inf] * 40 + [inf] * 40)
    anomalous = np.array([0.0] * 80 if one else [inf] * 80)
    odd = Report(calibrate_quietly(normal, anomalous), normal, anomalous)
    assert to_html(odd).count('class="plot"') == 2 + PANELS
    if not one:
        assert (
            "Not drawn: 40 normal at \N{MINUS SIGN}inf (left); 40 normal and 80 anomalous at inf"
            in to_html(odd)
        )
    assert strict(to_json(odd))
    assert "nan" not in to_markdown(odd).lower()


@pytest.mark.parametrize("suffix", [".html", ".md", ".json", ".JSON"])
def test_the_name_of_the_file_chooses_the_format(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report{suffix}"
    write(report("vacuous"), target)
    if suffix == ".html":
        expected = page("vacuous")
    else:
        expected = (to_markdown if suffix == ".md" else to_json)(report("vacuous"))
    assert target.read_text(encoding="utf-8") == expected
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("name", ["report.pdf", "report"])
def test_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.html, \.md or \.json") as caught:
        write(report("vacuous"), tmp_path / name)
    assert repr(name) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nothing was written"):
        write(report("vacuous"), tmp_path / "missing" / "report.md")


def test_a_wheel_holds_the_templates(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    environment = {"PATH": "/usr/bin:/bin", "CC": "no-such-compiler", "HOME": str(tmp_path)}
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True, timeout=LIMIT)
    (wheel,) = (tmp_path / "dist").iterdir()
    folder = Path(str(files("pac_wrap.report"))) / "templates"
    with ZipFile(wheel) as archive:
        packed = {Path(name).name for name in archive.namelist() if "/report/templates/" in name}
    assert packed == {path.name for path in folder.iterdir()} >= {"page.html.j2", "explorer.js", "page.css"}
