"""Hostile names and cells through every command and the public functions: nothing that they hide gets out."""

import csv
import json
import os
import pty
import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pac_wrap import (
    Algorithm1,
    Certificate,
    Guarantee,
    Hold,
    PACWrap,
    PACWrapError,
    calibrate,
    calibrate_labelled,
)
from pac_wrap.method.comparison import compare_scores
from pac_wrap.report.render import write as write_report
from pac_wrap.report.sentences import Origin, Report
from pac_wrap_paper.data import load
from support.patience import LIMIT
from support.shell import CERTIFICATE, SCRIPT, Done, invoke, write
from support.slow import slow_but

TEXTS = {
    "colours": "\x1b[2J\x1b[31mred",
    "title": "\x1b]0;owned\x07",
    "C1": "\x9b2J\x85\x90",
    "a fake line": "x\npac-wrap: verified",
    "overwritten": "bad\rfine\x08\x7f",
    "turned": "\u202egnp.exe\u2066",
    "line ends": "\u2028\u2029\x0b\x0c\x1c",
    "nothing to see": "\u200b\ufeff\U000e0041\x01",
    "markup": "[bold red]x[/bold red] [/] [link=https://a.b]c[/link]",
    "HTML and Markdown": "<img src=x onerror=alert(1)>|`a`|[b](javascript:1)",
    "long": "\x1b" * 20_000,
}
RNG = np.random.default_rng(0)
SCORES = np.r_[RNG.normal(0, 1, 100), RNG.normal(6, 1, 100)]
LABELS = np.repeat([0, 1], 100)

# a text goes the same way, whatever file it comes from: of Parquet one tells whether it does
every_text_of_a_table = pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (TEXTS["colours"], ".parquet"),
        *(
            pytest.param(text, ".csv", marks=[pytest.mark.slow] * (place > 3))
            for place, text in enumerate(TEXTS.values())
        ),
    ],
    ids=["colours of Parquet", *TEXTS],
)
every_text = pytest.mark.parametrize("text", slow_but(4, TEXTS.values()), ids=TEXTS)


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder of the test's own, so that names are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def harmless(done: Done) -> Done:
    """Return how a command ended, if it printed nothing but lines that can be seen, and few."""
    for stream in (done.out, done.err):
        hidden = [sign for sign in stream.replace("\n", "") if not sign.isprintable()]
        assert hidden == [], (hidden, done)
        assert len(stream) < 30_000
    assert "\npac-wrap: verified" not in done.out + done.err
    return done


def shown(*arguments: object, stdin: bytes | None = None) -> Done:
    return harmless(invoke(*arguments, stdin=stdin))


def table(name: str, columns: dict[str, Any]) -> Path:
    """Write a CSV, or a Parquet file if it is named so."""
    if name.endswith(".parquet"):
        pq.write_table(pa.table({key: pa.array(list(cells)) for key, cells in columns.items()}), name)
        return Path(name)
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return Path(name)


@every_text_of_a_table
def test_columns_that_are_not_there_or_there_twice(text: str, suffix: str) -> None:
    path = table(f"a{suffix}", {text: SCORES, f"{text}2": SCORES, "label": LABELS})
    for score, label in ((f"{text}3", "label"), ("score", text), (text, text), (text, f"{text}2")):
        assert shown("calibrate", path, "--score", score, "--label", label).code == 2
    assert shown("decide", CERTIFICATE, path, "--score", "score").code == 2
    assert "Traceback" in shown("--debug", "decide", CERTIFICATE, path, "--score", "score").err
    with open("twins.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[text, text, "label"], [1, 2, 0]])
    assert shown("calibrate", "twins.csv", "--score", text, "--label", "label").code == 2
    assert shown("decide", CERTIFICATE, "-", "--score", text, stdin=Path("twins.csv").read_bytes()).code == 2


@every_text_of_a_table
def test_labels(text: str, suffix: str) -> None:
    path = table(f"a{suffix}", {"score": [0.5, 1.5, 2.5], text: [text, "ok", "other"]})
    for options in (
        (),
        ("--anomaly-label", text),
        ("--anomaly-label", "ok"),
        ("--anomaly-label", f"{text}!"),
    ):
        assert shown("calibrate", path, "--score", "score", "--label", text, *options).code == 2
        assert shown("evaluate", CERTIFICATE, path, "--score", "score", "--label", text, *options).code == 2


@every_text
def test_cells_where_numbers_should_be(text: str) -> None:
    for name in ("a.csv", "a.parquet"):
        path = table(name, {text: ["1.5", text, "2.5"], "label": [0, 1, 1]})
        assert shown("calibrate", path, "--score", text, "--label", "label").code == 2
        assert shown("decide", CERTIFICATE, path, "--score", text, "-o", "out.csv").code == 2
    # what was decided before it is data, and stays as it is
    first = table("first.csv", {text: [text, "1.5"]}).read_bytes()
    assert shown("decide", CERTIFICATE, "-", "--score", text, stdin=first).code == 2
    line = json.dumps({"s": text, text: 1}).encode()
    assert shown("decide", CERTIFICATE, "-", "--score", "s", stdin=line).code == 2
    assert shown("decide", CERTIFICATE, "-", "--score", "t", stdin=line).code == 2
    write(Path("a.jsonl"), line)
    assert shown("calibrate", "a.jsonl", "--score", "s", "--label", text).code == 2
    assert shown("calibrate", write(Path("b.jsonl"), b"{" + line), "--score", "s", "--label", "l").code == 2


@every_text
def test_files(text: str, workplace: Path) -> None:
    name = text.replace("/", "")[:40]
    good = table("good.csv", {"score": SCORES, "label": LABELS})
    columns = ("--score", "score", "--label", "label")
    for missing in (f"{name}.csv", f"{name}/a.csv", f"{name}*.csv", f"{text[:5000]}.csv"):
        assert shown("calibrate", missing, *columns).code == 2
    for made in (f"{name}.csv", f"{name}.odd", f"{name}.npy", f"{name}.parquet"):
        write(workplace / made, b"")
        assert shown("calibrate", made, *columns).code == 2
        write(workplace / made, b"\x93NUMPY junk")
        assert shown("calibrate", made, *columns).code == 2
        assert shown("show", made).code == 2
        assert shown("verify", CERTIFICATE, made, *columns).code == 2
    (workplace / f"{name}.d").mkdir()
    assert shown("calibrate", f"{name}.d", *columns).code == 2
    assert shown("show", f"{name}.d").code == 2
    assert shown("show", f"{name}.json").code == 2
    for output in (f"{name}.odd", f"nowhere{name}/a.json", f"{name}.d"):
        assert shown("calibrate", good, *columns, "--report", output).code == 2
        assert shown("decide", CERTIFICATE, good, "--score", "score", "-o", output).code == 2
    assert shown("calibrate", good, *columns, "-o", good).code == 2


@every_text
def test_values_of_options_and_names_of_data_sets(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = table("good.csv", {"score": SCORES, "label": LABELS})
    columns = ("--score", "score", "--label", "label")
    for option in ("--max-fpr", "--delta-fpr", "--confidence", "--overlap", "--engine"):
        assert shown("calibrate", good, *columns, option, text).code == 2
    for words in (
        ("data", "where", text),
        ("data", "get", text),
        ("reproduce", text),
        (text,),
        (f"--{text}",),
    ):
        assert shown(*words).code == 2
    monkeypatch.setenv("PAC_WRAP_DATA", text.replace("\0", "")[:1000])
    shown("data", "where")
    shown("data", "where", "thyroid")
    shown("data", "list")


@pytest.mark.filterwarnings("default::pac_wrap.errors.UpsideDownWarning")
@every_text
def test_names_that_are_compared_are_shown_and_not_run(text: str) -> None:
    path = table("a.parquet", {text: SCORES, f"{text}2": -SCORES, "label": LABELS})
    done = shown("compare", path, "--score", text, "--score", f"{text}2", "--label", "label")
    assert done.code == 0
    assert "note: " in done.err
    if text == TEXTS["markup"]:
        # folded over several lines of its column
        names = "".join(line[:22] for line in done.out.splitlines()).replace(" ", "")
        assert "[boldred]x[/boldred][/][link=https://a.b]" in names


def reported(text: str, suffix: str) -> str:
    """Return a report with a text for every name in it, which must all be visible."""
    certificate = calibrate(SCORES[:100], SCORES[100:])
    source = Origin((f"{text}.csv",), text, text)
    write_report(Report(certificate, SCORES[:100], SCORES[100:], source, detector=text), f"report{suffix}")
    page = Path(f"report{suffix}").read_text(encoding="utf-8")
    assert page.replace("\n", "").replace("\N{NO-BREAK SPACE}", "").isprintable()
    return page


@every_text
def test_names_in_a_report(text: str) -> None:
    page = reported(text, ".md")
    table_of_names = page.split("Origin of the scores.")[1].split("Software.")[0].strip().splitlines()
    assert len(table_of_names) == 6
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in table_of_names} == {3}
    assert "<img" not in page
    assert "[b](" not in page


def test_names_in_a_page() -> None:
    texts = [text[:60] for text in TEXTS.values()]
    page = reported("".join(texts[-2:] + texts[:-2]), ".html")
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert page.count("<script") == 2  # its own


def test_markup_in_a_certificate_shown_as_markdown_is_text(tmp_path: Path) -> None:
    done = shown("show", CERTIFICATE, "--format", "markdown")
    promise, table = done.out.split("\n\n")
    assert promise.startswith("In the long run, ")
    rows = table.splitlines()
    assert len(rows) > 5
    assert all(row.count("|") == 3 and row.startswith("|") and row.endswith("|") for row in rows)
    assert "<" not in done.out


CALLS: dict[str, Callable[[str], object]] = {
    "a ceiling": lambda text: Guarantee(max_fpr=text),  # type: ignore[arg-type]
    "a strategy": lambda text: calibrate([0.0], [1.0], overlap=text),
    "a rate that is held": lambda text: Hold(text),  # type: ignore[arg-type]
    "an option": lambda text: Algorithm1(growth=text),  # type: ignore[arg-type]
    "scores": lambda text: calibrate([text], [1.0]),
    "labels": lambda text: calibrate_labelled([0.0, 1.0, 2.0], [text, "a", "b"]),
    "an anomaly label": lambda text: calibrate_labelled([0.0, 1.0], ["a", "b"], anomaly_label=text),
    "JSON": Certificate.from_json,
    "a data set": load,
    "a report": lambda text: write_report(
        Report(calibrate([0.0], [1.0]), np.array([0.0]), np.array([1.0])), f"{text}.x"
    ),
    "a polarity": lambda text: PACWrap("precomputed", polarity=text).fit([[0.0], [1.0]], [0, 1]),  # type: ignore[arg-type]
    "labels of rows": lambda text: PACWrap("precomputed").fit([[0.0], [1.0], [2.0]], [text, "a", "b"]),
}


@every_text
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refusal_in_python_shows_nothing_hidden(call: Callable[[str], object], text: str) -> None:
    with pytest.raises(PACWrapError) as caught:
        call(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 30_000


@every_text
def test_a_warning_in_python_shows_nothing_hidden(text: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare_scores({text: (SCORES, LABELS == 0)}, Guarantee())
    assert caught
    assert all(str(one.message).isprintable() for one in caught)


def test_on_a_terminal_only_our_own_styling_gets_out() -> None:
    names = [TEXTS["colours"], TEXTS["title"], TEXTS["markup"]]
    table("a.parquet", dict.fromkeys(names, SCORES) | {"label": LABELS})
    words = [str(SCRIPT), "compare", "a.parquet", "--label", "label"]
    main, terminal = pty.openpty()
    words += [word for name in names for word in ("--score", name)]
    wide = os.environ | {"TERM": "xterm-256color", "COLUMNS": "160"}
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=wide
    ) as process:
        os.close(terminal)
        seen = b""
        try:
            while chunk := os.read(main, 65_536):
                seen += chunk
        except OSError:  # how a terminal says that the other side is gone
            pass
        finally:
            os.close(main)
        assert process.wait(timeout=LIMIT) == 0
    styled = re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\r", "", seen.decode())
    assert styled.replace("\n", "").isprintable()
    assert r"\x1b[2J" in styled
    assert "\x1b[2J" not in seen.decode()
