"""Generated CSV files of every kind that was ever misread, and what Python's csv module reads in them."""

import csv
import io
import random
import re
from dataclasses import dataclass
from math import isnan
from typing import Final

from pac_wrap.tables.columns import number

SCORE: Final = "s"
LABEL: Final = "y"
_ODD_CELLS: Final = (
    *(
        "",
        " ",
        "x",
        "a b",
        " lead",
        "trail ",
        "'tis",
        "dogs'",
        "it's",
        "see #12",
        "#",
        "# 1",
        "//",
        "--",
        "/*",
    ),
    *(
        "\\",
        "\\n",
        'a\\"b',
        "é",
        "日本",
        "\u2028",
        "\u0085",
        "\x0b",
        "\x0c",
        "\x1f",
        "\ufeff",
        "null",
        "NULL",
    ),
    *(
        "NA",
        "nan",
        "true",
        ";",
        ",",
        "|",
        "\t",
        '"',
        '""',
        'a"b',
        '"a"b',
        "a\nb",
        "a\r\nb",
        "a\rb",
        "\n",
        "a,b;c",
    ),
    *("0x10", "1_000", "1,5", "007", "1e5", "+5", "1.50", "=1+1", "%s", "{0}", "$", "`", "~", "2024-01-01"),
)
_NUMBERS: Final = (
    "0.1",
    "-1",
    "+2.5",
    ".5",
    "5.",
    " 7 ",
    "\t8",
    "1e5",
    "1E-5",
    "-0.0",
    "inf",
    "-Infinity",
    "00012",
)
_NO_NUMBERS: Final = (
    *(
        "",
        "nan",
        "-NaN",
        " ",
        "x",
        "1_000",
        "true",
        "0x10",
        "1.0d",
        "1.5f",
        "1,5",
        "nan(7)",
        "+-5",
        "--5",
        "1e",
        ".",
    ),
    *(
        "\u0661",
        "1 000",
        "\xa01",
        "inf.",
        "NULL",
        "1e400",
        "9" * 400,
        "-" + "9" * 400,
        "1e-400",
        "1'000",
        "1__0",
    ),
)
_LABELS: Final = ("0", "1", "0", "1", "true", "FALSE", "1.0", "ok", "o'k", '"', "a,b", "", " 1")
_BYTES: Final = (
    b'"',
    b"'",
    b"#",
    b"\\",
    b"\r",
    b"\n",
    b",",
    b";",
    b"|",
    b"\t",
    b"\0",
    b"\xff",
    b'""',
    b"\n\n",
    b" ",
)


@dataclass(frozen=True)
class Reading:
    """What csv reads up to the first row that is none, if there is one; what is `excused` may be refused."""

    wanted: tuple[str, ...]
    cells: list[list[str]]
    names: list[str]
    bad_row: int | None
    excused: bool

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of the wanted columns."""
        places = [self.names.index(name) for name in self.wanted]
        return [tuple(row[place] for place in places) for row in self.cells]

    @property
    def bad_score(self) -> int | None:
        """The first row whose score is no number or missing, counted from 1."""
        for place, row in enumerate(self.rows, 1):
            if (value := number(row[0])) is None or isnan(value):
                return place
        return None


def generate(seed: int) -> tuple[bytes, str]:
    """Return the bytes of a CSV file with a column of scores, and words for how it was made."""
    rng = random.Random(seed)
    delimiter = rng.choice(",,,;\t|")
    width = rng.choice((1, 2, 2, 3, 4, 6))
    names = [SCORE, LABEL, "id", "note", "city", "Größe"][:width]
    rng.shuffle(names)
    strange = rng.random() < 0.3  # scores that are none
    tame = rng.random() < 0.4  # nothing needs quotes
    rows = [
        [_cell(rng, name, strange, tame) for name in names] for _ in range(rng.choice((0, 1, 2, 3, 5, 12)))
    ]
    style = rng.choice(("as needed", "as needed", "as needed", "all", "some", "none"))
    ending = rng.choice(("\n", "\n", "\n", "\r\n", "\r\n", "mixed"))
    lines = [
        delimiter.join(_quoted(rng, cell, delimiter, style, width) for cell in row) for row in [names, *rows]
    ]
    made = [f"{delimiter!r} {width} columns {len(rows)} rows quotes {style} ending {ending!r}"]
    if rng.random() < 0.15 and len(lines) > 1:
        made.append("ragged")
        place = rng.randrange(1, len(lines))
        lines[place] = rng.choice(
            (lines[place] + delimiter, delimiter + lines[place], lines[place].partition(delimiter)[0])
        )
    if rng.random() < 0.2:
        made.append("blank lines")
        for _ in range(rng.choice((1, 1, 3))):
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(("", "", "", " ")))
    text = "".join(line + (rng.choice(("\n", "\r\n")) if ending == "mixed" else ending) for line in lines)
    if rng.random() < 0.3:
        made.append("no final line end")
        text = text.removesuffix("\n").removesuffix("\r")
    content = text.encode()
    if rng.random() < 0.15:
        made.append("byte order mark")
        content = b"\xef\xbb\xbf" + content
    if rng.random() < 0.15:
        place, extra = rng.randrange(len(content) + 1), rng.choice(_BYTES)
        made.append(f"{extra!r} put in at {place}")
        content = content[:place] + extra + content[place:]
    return content, ", ".join(made)


def read_by_csv(content: bytes) -> Reading | None:
    """Return what the csv module reads, with the delimiter that `csvform` names; None if no header fits."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
        excused = "\0" in text
    except UnicodeDecodeError:
        text, excused = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), True
    excused = excused or re.search("\r(?!\n)", text) is not None
    names: list[str]
    for wanted in ((SCORE, LABEL), (SCORE,)):
        for delimiter in ",;\t|":
            try:
                names = next((row for row in _reader(text, delimiter) if row), [])
            except csv.Error:
                continue
            if set(wanted) <= set(names):
                twins = len({name.lower() for name in names}) < len(names)  # which are refused
                return _reading(text, delimiter, wanted, names, excused or twins)
    return None


def _reading(text: str, delimiter: str, wanted: tuple[str, ...], names: list[str], excused: bool) -> Reading:
    cells: list[list[str]] = []
    started = False
    try:
        for row in _reader(text, delimiter):
            if not started:
                started = bool(row)
                continue
            found = row or ([""] if len(names) == 1 else [])
            if found and len(found) != len(names):
                return Reading(wanted, cells, names, len(cells) + 1, excused)
            cells += [found] if found else []
    except csv.Error:
        return Reading(wanted, cells, names, len(cells) + 1, excused)
    return Reading(wanted, cells, names, None, excused)


def _reader(text: str, delimiter: str) -> "csv.Reader":  # type: ignore[name-defined]  # typeshed hides it
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _cell(rng: random.Random, name: str, strange: bool, tame: bool) -> str:
    if name == SCORE:
        if strange and rng.random() < 0.2:
            return rng.choice(_NO_NUMBERS)
        return rng.choice(_NUMBERS) if rng.random() < 0.3 else repr(rng.gauss(0, 2))
    cell = rng.choice(_LABELS) if name == LABEL else rng.choice(_ODD_CELLS)
    return re.sub('["\r\n,;|\t]', "", cell) if tame else cell


def _quoted(rng: random.Random, cell: str, delimiter: str, style: str, width: int) -> str:
    needed = any(mark in cell for mark in (delimiter, '"', "\r", "\n")) or (width == 1 and not cell)
    if style == "all" or (style == "some" and rng.random() < 0.5) or (style != "none" and needed):
        return '"' + cell.replace('"', '""') + '"'
    return cell
