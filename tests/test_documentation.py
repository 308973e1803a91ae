"""Every public name says what it takes, what it returns, what it refuses, and shows it in an example.

Pages and code write numbers with a leading zero, and avoid the phrases that readers had to read twice.
"""

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import pac_wrap
from pac_wrap.method.strategies.interface import Strategy
from support.pages import ROOT

SUBMODULES = [
    "pac_wrap.series",
    "pac_wrap.scoring",
    "pac_wrap.tails",
    "pac_wrap.validation",
    "pac_wrap_paper.detectors",
]
LISTED = re.findall(
    r"^   ([a-z]\w*(?:\.\w+)*|[A-Z]\w*)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.M
)
# what public functions return, and errors beside the usual ones: known by their modules
RESULTS = [
    name
    for name in LISTED
    if name.startswith(("method.", "detectors.", "errors.")) and "LSTM" not in name and "DevNet" not in name
]
# errors and warnings are raised, enumerations are looked up: nobody passes them anything
CALLED = [
    name
    for name in pac_wrap.__all__
    if callable(found := getattr(pac_wrap, name))
    and not (inspect.isclass(found) and issubclass(found, (BaseException, Enum)))
]
# what is public beside the package's own names
ENGINE = ("calibrate", "certify_curve", "decide", "score")
ELSEWHERE = {
    **{name: import_module(name).__all__ for name in SUBMODULES},
    "pac_wrap_paper.baselines": ("cpad", "cpad_budget", "f1_max", "percentile"),
    "pac_wrap.engines.spark": ENGINE,
    "pac_wrap.engines.dask": ENGINE,
    "pac_wrap.tables.database": ("calibrate",),
}


def sections(text: str) -> dict[str, str]:
    """Return the numpydoc sections of a docstring by their titles."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(section: str) -> set[str]:
    """Return the names that a section of parameters explains."""
    heads = re.findall(r"^([\w*, ]+?) : ", section, flags=re.M)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def explained(found: Any, relatives: Any = pac_wrap) -> set[str]:
    """Return the parameters that a docstring explains, or has explained by a relative that it names."""
    text = inspect.getdoc(found) or ""
    own = documented(sections(text).get("Parameters", ""))
    assert own <= parameters(found)
    for named in re.findall(r"parameters\s+are\s+those\s+of\s+`([\w.]+)`", text):
        home = relatives if hasattr(relatives, named) else pac_wrap
        own |= explained(attrgetter(named)(home), relatives) & parameters(found)
    return own


def parameters(found: Any) -> set[str]:
    """Return the names of what a function or class takes."""
    given = inspect.signature(found).parameters.values()
    return {one.name for one in given if one.name not in ("self", "cls") and not one.name.startswith("_")}


def methods() -> Iterator[tuple[str, Any]]:
    """Yield the public methods that take something, of every public class."""
    for name in CALLED:
        found = getattr(pac_wrap, name)
        if inspect.isclass(found):
            for own, method in vars(found).items():
                function = method.__func__ if isinstance(method, (classmethod, staticmethod)) else method
                # an interface is documented where it is defined, and the codec says what it reads from a file
                inherited = own in vars(Strategy) or own == "from_form"
                if inspect.isfunction(function) and not own.startswith("_") and not inherited:
                    yield f"{name}.{own}", function


@pytest.mark.parametrize("name", CALLED)
def test_a_public_name_is_documented_in_sections(name: str) -> None:
    found = getattr(pac_wrap, name)
    text = inspect.getdoc(found) or ""
    assert re.match(r"[A-Z][^\n]+\.(\n|$)", text), "the first line is a sentence"
    written = sections(text)
    assert explained(found) == parameters(found)
    assert ">>> " in written.get("Examples", "")
    if inspect.isfunction(found) and "parameters are those of" not in text:
        assert written.get("Returns")
        assert written.get("Raises")


@pytest.mark.parametrize("name", sorted({*pac_wrap.__all__} - {*CALLED, "__version__"}))
def test_what_is_raised_or_looked_up_has_an_example_too(name: str) -> None:
    found = getattr(pac_wrap, name)
    assert re.match(r"[A-Z][^\n]+\.(\n|$)", inspect.getdoc(found) or ""), "the first line is a sentence"
    # that of all errors, or of all warnings, is for each of them
    family = [one for one in (pac_wrap.PACWrapError, pac_wrap.PACWrapWarning) if issubclass(found, one)]
    assert ">>> " in sections(inspect.getdoc((family or [found])[0]) or "").get("Examples", "")


METHODS = [
    (name, method)
    for name, method in methods()
    if not dataclasses.is_dataclass(method) and parameters(method)
]


@pytest.mark.parametrize(("name", "method"), METHODS, ids=[name for name, _ in METHODS])
def test_a_public_method_says_what_it_takes(name: str, method: Any) -> None:
    text = inspect.getdoc(method) or ""
    assert explained(method, getattr(pac_wrap, name.partition(".")[0])) == parameters(method)
    # the first line of what returns something says what that is, if no section does
    returns = re.search(r"\b[Rr]eturn\b", text.partition("\n")[0]) or sections(text).get("Returns")
    assert returns or inspect.signature(method).return_annotation is None


@pytest.mark.parametrize("name", CALLED)
def test_help_shows_a_signature(name: str) -> None:
    assert "**" not in str(inspect.signature(getattr(pac_wrap, name)))


@pytest.mark.parametrize(
    "path", [f"{module}.{name}" for module, names in ELSEWHERE.items() for name in names]
)
def test_a_name_of_a_public_module_is_documented_with_an_example(path: str) -> None:
    module, _, name = path.rpartition(".")
    if name.startswith("LSTM"):
        pytest.importorskip("torch", reason="torch is not installed")
    found = getattr(import_module(module), name)
    written = sections(inspect.getdoc(found) or "")
    # a dataclass that is a result explains its attributes, and a relative of a function what is its own
    explained = documented(written.get("Parameters") or written.get("Attributes", ""))
    assert explained
    assert explained <= parameters(found)
    assert dataclasses.is_dataclass(found) or ">>> " in written.get("Examples", "")


@pytest.mark.parametrize("path", RESULTS)
def test_a_result_is_described_where_it_lives(path: str) -> None:
    module, _, name = path.rpartition(".")
    found = getattr(import_module(f"pac_wrap.{module}"), name)
    assert found.__module__ == f"pac_wrap.{module}"
    assert re.match(r"[A-Z][^\n]+\.(\n|$)", inspect.getdoc(found) or ""), "the first line is a sentence"


def test_the_index_of_the_reference_has_every_public_name_once() -> None:
    public = [name for name in pac_wrap.__all__ if name != "__version__"]
    public += [
        re.sub(r"^pac_wrap(_paper)?\.", "", f"{module}.{name}")
        for module, names in ELSEWHERE.items()
        for name in names
    ]
    assert sorted(LISTED) == sorted([*public, *RESULTS])


# a number without its leading zero: not an ending of a file name, a format, a pattern, or a decimal place
NUMBER = re.compile(r"(?<![\w.)\]/\\}*?+%:])\.(?!0$)\d")
PHRASES = re.compile(
    "|".join(
        (
            r"\bwhoever\b",
            r"manieth",
            r"\bso many of (?:them|its|the)\b",
            r"\bwealth\b",
            r"\b(?:leav(?:e|es|ing)|left) (?:no )?room\b",
            r"\broom (?:for (?:a |the )?(?:shift|drift|label|wrong|density)|in the promise)",
            r"(?-i:\bReturn (?:what|the same)\b)",
            r"\bat once with (?:confidence )?[x\d]",
            r"\blabels that are not clean\b",
            r"\bworld that moves\b",
            r"\bcry wolf\b",
            r"\b(?:alarms?|points|they|rows|labels|thresholds?|series) (?:is|are) worth\b",
            r"\bthat which\b",
            r"\bwhat is promised is\b",
        )
    ),
    re.IGNORECASE,
)
# what the search finds and may: the start of its line or literal, by file, each with its reason
ALLOWED: dict[tuple[str, str], str] = {
    ("CHANGELOG.md", "`Watch.wealth`"): "an old name, beside the new one",
}


def prose(text: str) -> str:
    """Return a page without its blocks of code and its comments."""
    text = re.sub(r"^( *)(```+).*?^\1\2[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def literals(source: str) -> Iterator[str]:
    """Yield the literals and the comments of a module; x stands for each value of an f-string."""
    tree = ast.parse(source)
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            parts |= {*ast.walk(node.format_spec)}
        if isinstance(node, ast.JoinedStr) and node not in parts:
            parts |= {*node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value
    yield from re.findall(r"^ *# .*|(?<=  )# .*", source, flags=re.MULTILINE)


@cache
def written() -> list[tuple[str, str]]:
    """Return every text that a reader may see, with its file."""
    return [*_written()]


def _written() -> Iterator[tuple[str, str]]:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"]:
        if "_build" not in path.parts:
            yield _place(path), prose(path.read_text(encoding="utf-8"))
    for path in (ROOT / "docs" / "examples").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield _place(path), "".join(cell["source"])
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]:
        for text in literals(path.read_text(encoding="utf-8")):
            yield _place(path), text


def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def avoided(text: str) -> list[str]:
    """Return the lines of a text that have a number without a leading zero or a phrase that we avoid."""
    joined = " ".join(text.split())
    found = [*NUMBER.finditer(joined), *PHRASES.finditer(joined)]
    return [joined[max(one.start() - 40, 0) : one.end() + 20] for one in found]


def test_what_readers_see_has_leading_zeros_and_no_phrase_that_we_avoid() -> None:
    found = [
        f"{place}: {excerpt}"
        for place, text in written()
        for excerpt in avoided(text)
        if not any(place == file and part in excerpt for file, part in ALLOWED)
    ]
    assert not found, "\n".join(found)


def test_the_search_for_words_finds_them_in_every_kind_of_text() -> None:
    assert len(avoided("a ceiling of .05 (or .1), -.5")) == 3
    assert avoided("0.05, 1.5e-3, scores.01.csv, (.)\\.1, version 3.11.2, %.17g") == []
    for phrase in ("Whoever reads", "every so\nmanieth step", "so many of them", "wealth", "leaves room"):
        assert avoided(f"A sentence. {phrase}."), phrase
    assert "".join(literals('x = f"{1:.5f} at .{2}"  # .05')) == "x at .x# .05"
    assert prose("a\n```\n.05\n```\nb<!-- .05 -->") == "a\n\nb"
    files = {place for place, _ in written()}
    assert {
        "README.md",
        "docs/guide/shift.md",
        "docs/examples/fraud.ipynb",
        "src/pac_wrap/errors.py",
    } <= files


def test_every_exception_to_the_words_is_still_needed() -> None:
    texts = {(place, excerpt) for place, text in written() for excerpt in avoided(text)}
    for (file, part), reason in ALLOWED.items():
        assert reason
        assert any(place == file and part in excerpt for place, excerpt in texts), (file, part)
