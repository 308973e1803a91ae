"""An account: what a result says, as plain data, and in every format: lines, a terminal, a page, a picture.

People read its texts, programs its values; renderers know no more.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from hashlib import sha256
from html import unescape
from importlib import import_module
from importlib.resources import files
from io import BytesIO, StringIO
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pac_wrap.base.files import whole_file, write_text
from pac_wrap.base.text import escape_markdown
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich.console import RenderableType

REPORTS: Final = (".html", ".md", ".json", ".svg", ".png")
_PICTURES: Final = (".svg", ".png", ".pdf")
# files, fonts and connections are not allowed at all, and no style or script but those of the page itself
_POLICY: Final = "default-src 'none'; style-src {}; {}base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_FULL: Final = len(BLOCKS) - 1
# a cell of rich's drawings, and how far it reaches below the line that its letters stand on
_CELL, _DESCENT = (12.2, 24.4), 4.4
_TEXT: Final = re.compile(
    r'<text (?P<style>class="[^"]*") x="(?P<left>[^"]*)" y="(?P<base>[^"]*)"[^>]*>(?P<row>[^<]*)</text>'
)


@dataclass(frozen=True, slots=True)
class Status:
    """Whether something holds: a word that is seen from afar, a few words, and the exit code of a command.

    `word` is "certified", "raised", "partly", "none" or "broken".
    """

    word: str
    words: str
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the short account: a name, empty where a line goes on, and a text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """Sentences in a list; programs find them under `key`."""

    items: tuple[str, ...]
    lead: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts below their columns; `value` is what programs read, by default a record for each row.

    `words` are the columns that hold words, and are broken where a terminal is narrow; `verbatim`, whether
    the texts come from outside.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: tuple[int, ...] = (0,)
    verbatim: bool = False
    framed: bool = False
    key: str = ""
    data: Any = None

    @property
    def value(self) -> Any:
        """What programs read."""
        if self.data is not None:
            return self.data
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A picture: its kind, what it is drawn from, and a table where nothing can be drawn."""

    kind: str
    data: Any
    caption: str = ""
    alt: str = ""
    instead: Table | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file that stands in the account."""

    name: str
    content: str


Item = str | Points | Table | Figure | File


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an account under a title; without items it is for programs alone, which find it by `key`."""

    title: str = ""
    items: tuple[Item, ...] = ()
    name: str = ""
    folded: bool = False
    key: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """All that a result says, in the order in which it is said.

    `facts` are the short account, `sections` the long one; `of` names what is told, and `form` the format
    and the schema of its JSON. `picture` is the figure that stands for all of it.
    """

    title: str = ""
    subtitle: str = ""
    status: Status = Status("certified", "")
    headline: str = ""
    warnings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    facts: tuple[Fact, ...] = ()
    of: str = "certificate"
    form: tuple[str, int] | None = None
    picture: Figure | None = None

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield each key with what programs read under it."""
        for section in self.sections:
            if section.key:
                yield section.key, section.value
            for item in section.items:
                if isinstance(item, (Points, Table)) and item.key:
                    yield item.key, item.items if isinstance(item, Points) else item.value

    def __getitem__(self, key: str) -> Any:
        return dict(self.values())[key]

    def table(self, key: str) -> Table:
        """Return the table that programs find under a key."""
        items = (item for section in self.sections for item in section.items)
        return next(item for item in items if isinstance(item, Table) and item.key == key)


def only(**values: Any) -> tuple[Section, ...]:
    """Return sections that programs alone read."""
    return tuple(Section(key=key, value=value) for key, value in values.items())


def sentence(text: str) -> str:
    """Return a text as a sentence: with a capital, and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def facts_of(name: str, texts: "Iterator[str] | list[str] | tuple[str, ...]") -> Iterator[Fact]:
    """Yield a fact for each text; the first has the name."""
    for place, text in enumerate(texts):
        yield Fact("" if place else name, text)


# by the name of a class, since a module is loaded for what it tells of alone
_BUILDERS: Final = {
    "Report": ("certificate", "account_of_certificate"),
    "Certificate": ("certificate", "account_of_certificate"),
    "GroupCertificate": ("groups", "account_of_groups"),
    "ClassCertificate": ("results", "account_of_classes"),
    "Curve": ("results", "account_of_curve"),
    "Verification": ("results", "account_of_verification"),
    "Monitor": ("monitor", "account_of_monitor"),
}
_IN_SHORT: Final = {
    "Certificate": ("sentences", "account_in_short"),
    "GroupCertificate": ("groups", "groups_in_short"),
}


def account_of(result: Any, *about: Any, brief: bool = False, **more: Any) -> Account:
    """Return what there is to say of a result; `brief`, only its short account.

    A certificate takes its calibration scores, or a mapping of kinds to such, and `metrics`, `detector`,
    `prevalence`, `source`, `in_time`; one of groups the scores of some groups, `detector` and `measured`.
    """
    builders = _BUILDERS | (_IN_SHORT if brief else {})
    names = (one.__name__ for one in type(result).__mro__)
    module, function = next(builders[name] for name in names if name in builders)
    account: Account = getattr(import_module(f"pac_wrap.report.{module}"), function)(result, *about, **more)
    return account


def write(result: Any, path: str | os.PathLike[str], *about: Any, **more: Any) -> None:
    """Write the account of a result in the format of the file's name, whole or not at all."""
    account = result if isinstance(result, Account) else None
    if account is None or account.picture is None:
        check_ending(path)
    content = rendered(account_of(result, *about, **more) if account is None else account, path)
    with whole_file(path) as file:
        put(file, content)


def put(file: Path, content: str | bytes) -> None:
    """Write what was rendered into a file that `whole_file` gave."""
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        write_text(file, content)


def rendered(account: Account, path: str | os.PathLike[str]) -> str | bytes:
    """Return an account in the format that a file's name asks for."""
    ending = Path(path).suffix.lower()
    if ending in _PICTURES and account.picture is not None:
        return drawn(account.picture, ending)
    check_ending(path)
    if ending in _PICTURES:
        raise InputError(f"{Path(path).name} is a picture, for which the scores are not at hand")
    return {".html": html, ".md": markdown, ".json": as_json}[ending](account)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose format no report has, before any work is done."""
    if Path(path).suffix.lower() not in REPORTS:
        raise InputError(
            f"a report is written as .html, .md or .json, or drawn as .svg or .png, got {Path(path).name!r};"
            " print the HTML file to get a PDF"
        )


def short(result: Any) -> str:
    """Return the short account of a result as lines."""
    account = result if isinstance(result, Account) else account_of(result, brief=True)
    return "\n".join(f"{fact.name:<10} {fact.text}" for fact in account.facts)


def terminal(account: Account) -> "RenderableType":
    """Return the sections of an account for a terminal."""
    from rich.console import Group
    from rich.text import Text

    shown: list[RenderableType] = []
    for section in account.sections:
        for item in section.items:
            if isinstance(item, Table):
                shown.append(_terminal_table(item))
            elif isinstance(item, (str, Points)):
                shown += map(Text, (item,) if isinstance(item, str) else item.items)
    return Group(*shown)


def _terminal_table(table: Table) -> "RenderableType":
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(
        title=Text(table.caption, style="italic") if table.caption else None,
        title_justify="left",
        box=HEAVY_HEAD if table.framed else SIMPLE_HEAD,
        padding=(0, 1) if table.framed else (0, 1, 0, 0),
        pad_edge=table.framed,
    )
    for place, name in enumerate(table.columns):
        # a number is never cut, nor is it broken where a column of words can be
        of_words = place in table.words
        whole = not of_words and len(table.words) > 1
        justify: Literal["left", "right"] = "left" if of_words else "right"
        drawn.add_column(Text(name), justify=justify, no_wrap=whole, overflow="fold", min_width=4 * of_words)
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    return drawn


def screen_svg(shown: "RenderableType", title: str, width: int = 84) -> str:
    """Return what the terminal shows as an SVG drawing that loads nothing from the network."""
    from rich.console import Console
    from rich.terminal_theme import DIMMED_MONOKAI
    from rich.text import Text

    console = Console(
        record=True, width=width, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(shown, Text())  # the last line would lose its descenders
    svg = console.export_svg(title=title, theme=DIMMED_MONOKAI)
    return _TEXT.sub(_bars, re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))


def _bars(text: re.Match[str]) -> str:
    """Return a row of blocks as a drawing: in most fonts the letters leave gaps between the rows."""
    row = unescape(text["row"]).replace("\xa0", " ")
    if not row.strip() or set(row) - set(BLOCKS):
        return text[0]
    left, bottom = float(text["left"]), float(text["base"]) + _DESCENT
    heights = [BLOCKS.index(block) * _CELL[1] / _FULL for block in row]
    tops = " ".join(f"V{bottom - height:.2f} h{_CELL[0]}" for height in heights)
    outline = f"M{left} {bottom:.2f} {tops} V{bottom:.2f} Z"
    return f'<path {text["style"]} shape-rendering="crispEdges" d="{outline}"/>'


def as_json(account: Account) -> str:
    """Return what programs read as strict JSON."""
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
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def markdown(account: Account) -> str:
    """Return an account as Markdown, without figures; of a short one, its facts in a table."""
    if not account.sections:
        rows = "".join(f"| {fact.name} | {escape_markdown(fact.text)} |\n" for fact in account.facts)
        return f"| {account.of} | |\n|---|---|\n{rows}"
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
    text: str = _template("page.html.j2").render(
        account=account, policy=policy, style=style, script=script, explorer=explorer
    )
    return text


def notebook(result: Any, lines: int | None = None) -> str:
    """Return the short account of a result as a notebook shows it: HTML without script or style."""
    account = account_of(result, brief=True)
    text: str = _template("notebook.html.j2").render(account=account, facts=account.facts[:lines])
    return text.strip()


def drawn(picture: Figure, ending: str) -> str | bytes:
    """Return a figure that matplotlib draws, as SVG text or as the bytes of another format."""
    from pac_wrap.report.figures import ceilings, scores, styling

    name = f"plot_{picture.kind}"
    axes = getattr(ceilings if hasattr(ceilings, name) else scores, name)(*picture.data)
    figure = axes.get_figure(root=True)
    figure.set_facecolor("#FFFFFF")  # a file does not know the page it will stand on
    if ending == ".svg":  # the same bytes for the same result
        return styling.to_svg(figure, alt=picture.alt) + "\n"
    image = BytesIO()
    figure.savefig(image, format=ending[1:], dpi=144)
    return image.getvalue()


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


def _template(name: str) -> Any:
    return _environment().get_template(name)
