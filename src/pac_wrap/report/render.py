"""An account in every format: lines, a terminal, Markdown, a page, JSON, a picture."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from math import isfinite, isnan
from pathlib import Path
from shutil import get_terminal_size
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, Final, Literal

from pac_wrap.base.files import write_whole
from pac_wrap.base.text import escape_markdown, sentence
from pac_wrap.errors import InputError
from pac_wrap.report.account import Account, Fact, Figure, File, Item, Points, Table, account_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich.console import RenderableType

REPORTS: Final = (".html", ".md", ".json", ".svg", ".png")
# columns of text that no terminal shows, and of the names in it
WIDTH: Final = 80
_NAMES: Final = 10
_PICTURES: Final = (".svg", ".png", ".pdf")
# files, fonts and connections are not allowed at all, and no style or script but those of the page itself
_POLICY: Final = "default-src 'none'; style-src {}; {}base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")


def write(result: Any, path: str | os.PathLike[str], *about: Any, **more: Any) -> None:
    """Write the account of a result in the format of the file's name, whole or not at all."""
    if not isinstance(result, Account):
        check_ending(path)
        result = account_of(result, *about, **more)
    write_whole(path, rendered(result, path))


def rendered(account: Account, path: str | os.PathLike[str]) -> str | bytes:
    """Return an account in the format that a file's name asks for."""
    ending = Path(path).suffix.lower()
    if ending not in _PICTURES or account.picture is None:
        check_ending(path)
        if ending in _PICTURES:
            raise InputError(f"{Path(path).name} cannot be drawn without the scores")
        return {".html": html, ".md": markdown, ".json": as_json}[ending](account)
    from pac_wrap.report import figures

    figure = getattr(figures, f"plot_{account.picture.kind}")(*account.picture.data).get_figure(root=True)
    figure.set_facecolor("#FFFFFF")  # a file does not know the page it will stand on
    if ending == ".svg":  # the same bytes for the same result
        return figures.to_svg(figure, account.picture.alt) + "\n"
    image = BytesIO()
    figure.savefig(image, format=ending[1:], dpi=144)
    return image.getvalue()


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose format no report has, before any work is done."""
    if Path(path).suffix.lower() not in REPORTS:
        raise InputError(
            f"a report is written as .html, .md or .json, or drawn as .svg or .png, got {Path(path).name!r};"
            " print the HTML file to get a PDF"
        )


def short(result: Any, width: int | None = WIDTH, more: Iterable[Fact] = ()) -> str:
    """Return the headline of a result, and its facts beside their names, in lines of a width."""
    account = result if isinstance(result, Account) else account_of(result, brief=True)
    width = get_terminal_size((WIDTH, 24)).columns if width is None else width
    lines = [*_lines(account.headline, width), ""] if account.headline else []
    for fact in (*account.facts, *more):
        lines += _lines(fact.text, width, f"{fact.name:<{_NAMES}} ")
    return "\n".join(lines)


def _lines(text: str, width: int, start: str = "") -> list[str]:
    """Return a text in lines that break at spaces alone, and not within "5 %"."""
    wrapper = TextWrapper(width, start, " " * len(start), break_long_words=False, break_on_hyphens=False)
    tied = _TIED.sub("\N{NO-BREAK SPACE}", text)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapper.wrap(tied)]


def terminal(account: Account) -> "RenderableType":
    """Return the sections of an account for a terminal."""
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table as Drawn
    from rich.text import Text

    shown: list[RenderableType] = []
    for item in (item for section in account.sections for item in section.items):
        if isinstance(item, (str, Points)):
            shown += map(Text, (item,) if isinstance(item, str) else item.items)
        if not isinstance(item, Table):
            continue
        title = Text(item.caption, style="italic") if item.caption else None
        box, padding = (HEAVY_HEAD, (0, 1, 0, 1)) if item.framed else (SIMPLE_HEAD, (0, 1, 0, 0))
        drawn = Drawn(title=title, title_justify="left", box=box, padding=padding, pad_edge=item.framed)
        for place, name in enumerate(item.columns):
            # a number is never cut, nor is it broken where a column of words can be
            of_words = place in item.words
            whole, least = not of_words and len(item.words) > 1, 4 * of_words
            justify: Literal["left", "right"] = "left" if of_words else "right"
            drawn.add_column(Text(name), justify=justify, no_wrap=whole, overflow="fold", min_width=least)
        for row in item.rows:
            drawn.add_row(*map(Text, row))
        shown.append(drawn)
    return Group(*shown)


def as_json(account: Account) -> str:
    """Return the records for programs as strict JSON."""
    head: dict[str, Any] = {}
    if account.form is not None:
        head = {"format": account.form[0], "schema": account.form[1], "title": account.title}
        head |= {"status": account.status.words, "promise": account.headline, "warnings": account.warnings}
    return json.dumps(plain(head | dict(account.values())), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: infinities are "inf" and "-inf", what is no number is null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def markdown(account: Account) -> str:
    """Return an account as Markdown, without figures; of a short one, its facts in a table."""
    if not account.sections:
        rows = "".join(f"| {fact.name} | {escape_markdown(fact.text)} |\n" for fact in account.facts)
        said = f"{escape_markdown(account.headline)}\n\n" if account.headline else ""
        return f"{said}| {account.of} | |\n|---|---|\n{rows}"
    return "\n\n".join(block for block in _blocks(account) if block) + "\n"


def _blocks(account: Account) -> Iterator[str]:
    yield f"# {escape_markdown(account.title)}"
    yield escape_markdown(account.subtitle)
    said = " ".join(map(escape_markdown, account.headline.splitlines()))
    yield f"**{escape_markdown(sentence(account.status.words))}** {said}"
    for warning in account.warnings:
        yield f"> **Warning.** {escape_markdown(warning)}"
    for section in account.sections:
        if section.items and section.title:
            yield f"## {escape_markdown(section.title)}"
        for item in section.items:
            yield from _markdown_item(item)


def _markdown_item(item: Item | None) -> Iterator[str]:
    if isinstance(item, str):
        yield escape_markdown(item)
    elif isinstance(item, Points):
        yield escape_markdown(item.lead)
        yield "\n".join(f"- {escape_markdown(one)}" for one in item.items)
    elif isinstance(item, Table):
        yield escape_markdown(item.caption)
        rows = [item.columns, ("---",) * len(item.columns), *item.rows]
        yield "\n".join(f"| {' | '.join(map(escape_markdown, row))} |" for row in rows)
    elif isinstance(item, File):
        yield f"{item.name}:\n\n```json\n{item.content}```"
    elif isinstance(item, Figure):
        yield from _markdown_item(item.instead)


def html(account: Account) -> str:
    """Return an account as one HTML file, with its pictures; nothing but its own script may run in it."""
    items = [item for section in account.sections for item in section.items]
    explorer = next((one for one in items if isinstance(one, Figure) and one.kind == "explorer"), None)
    script = "" if explorer is None else "".join(map(_asset, ("numbers.js", "controls.js", "explorer.js")))
    style = _asset("controls.css") + _asset("page.css")
    policy = _POLICY.format(_hash(style), f"script-src {_hash(script)}; " if script else "")
    page = _environment().get_template("page.html.j2")
    return page.render(account=account, policy=policy, style=style, script=script, explorer=explorer)


def notebook(result: Any, lines: int | None = None) -> str:
    """Return the short account of a result as a notebook shows it: HTML without script or style."""
    account = account_of(result, brief=True)
    page = _environment().get_template("notebook.html.j2")
    return page.render(account=account, facts=account.facts[:lines]).strip()


def _asset(name: str) -> str:
    return files("pac_wrap.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> "Environment":
    """Return the templates, in which every text that is put in is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("pac_wrap.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["base64"] = lambda text: b64encode(text.encode()).decode()
    made.filters["tied"] = lambda text: _TIED.sub("\N{NO-BREAK SPACE}", text)
    made.filters["kind"] = lambda item: type(item).__name__
    made.filters["capital"] = lambda text: f"{text[:1].upper()}{text[1:]}"
    return made
