"""What a result says, as plain data: texts for people, values for programs; renderers know no more."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Status:
    """Whether something holds: a word that is seen from afar, a few words, and the exit code of a command."""

    word: str  # certified, raised, partly, none or broken
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
    """Rows of texts below their columns; `words` are columns that break, `verbatim` texts from outside."""

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
        """What programs read: by default a record for each row."""
        records = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return records if self.data is None else self.data


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
    """All that a result says: `facts` in short, `sections` at length, `picture` at a glance.

    `of` names what is told, and `form` the format and the schema of its JSON.
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
    """Return the account of a result; `brief`, only its short account.

    A certificate takes its calibration scores, or a mapping of kinds to such, and `metrics`, `detector`,
    `prevalence`, `source`, `in_time`; one of groups the scores of some groups, `detector` and `measured`.
    """
    builders = _BUILDERS | (_IN_SHORT if brief else {})
    names = (one.__name__ for one in type(result).__mro__)
    module, function = next(builders[name] for name in names if name in builders)
    account: Account = getattr(import_module(f"pac_wrap.report.{module}"), function)(result, *about, **more)
    return account
