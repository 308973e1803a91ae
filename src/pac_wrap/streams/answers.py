"""What is written beside a row: its verdict, its prediction set, and the file it came from if asked for."""

import csv
import json
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any, Final, NamedTuple

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.text import is_unicode

# the columns that an answer fills
ADDED: Final = ("verdict", "prediction_set")
# 1 for label 0, 2 for label 1, added up
_SETS: Final = ("{}", "{0}", "{1}", "{0,1}")
# every set with every verdict; the code of an answer is its place here
ANSWERS: Final = [(str(verdict), text) for text in _SETS for verdict in (-1, 0, 1)]


class ScoredRows(NamedTuple):
    """A few rows with their scores: each as cells or as an object, and its own text where that can stand."""

    scores: Scores
    rows: list[Any]
    texts: list[str]
    groups: list[Any] | None = None
    # the columns of the table so far, where each row has its own
    names: Iterable[str] = ()


class Asked(NamedTuple):
    """What is to be decided and written: the column of scores, whether as CSV, what else.

    `source` is the column in which the name of each row's file is written, if it is, and `group` that of the
    groups, if each has its own rule.
    """

    score: str
    as_csv: bool
    on_missing: OnMissing = "abstain"
    source: str | None = None
    group: str | None = None

    @property
    def wanted(self) -> list[str]:
        """The columns that a table must have."""
        return [self.score] if self.group is None else [self.score, self.group]

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that are added to those of a table."""
        return ADDED if self.source is None else (self.source, *ADDED)


class Endings:
    """How a row from a table of a name ends, for each code of an answer: as cells, as CSV and as JSON."""

    def __init__(self, name: str, asked: Asked) -> None:
        source = asked.source
        self.cells = [answer if source is None else (name, *answer) for answer in ANSWERS]
        self.csv = [f",{csv_text([cells])}" for cells in self.cells]
        named = "" if source is None else f",{json_text(source)}:{json_text(name)}"
        self.json = [f'{named},"verdict":{one},"prediction_set":"{labels}"}}\n' for one, labels in ANSWERS]


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV."""
    listed, out = list(rows), StringIO(newline="")
    usual = csv.writer(out, lineterminator="\n")
    usual.writerows(listed)
    if "\r" in out.getvalue():  # older versions of csv do not quote it
        out = StringIO(newline="")
        usual = csv.writer(out, lineterminator="\n")
        quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in listed:
            (quoted if any("\r" in cell for cell in row) else usual).writerow(row)
    return out.getvalue()


def not_utf8(row: list[str], same: str) -> str | None:
    """Return what is wrong with a row that is not UTF-8 and is to change its format; `same` would keep it."""
    text = "".join(row)
    whole = text.isascii() or is_unicode(text)
    return None if whole else f"is not UTF-8; --format {same} keeps it as it is"


def json_text(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)
