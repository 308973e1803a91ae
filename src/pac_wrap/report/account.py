"""The account of a result as plain data: texts for people, values for programs, and nothing of formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Status:
    """Whether something holds: one word for the sign of a page, a few words, and an exit code."""

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
    """Rows of texts under columns; `words` are columns that may break, `verbatim` marks texts of users."""

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
        """The value for programs, by default a record for each row."""
        records = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return records if self.data is None else self.data


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A picture: its kind, its data, and a table for formats without pictures."""

    kind: str
    data: Any
    caption: str = ""
    alt: str = ""
    instead: Table | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file within the account."""

    name: str
    content: str


Item = str | Points | Table | Figure | File


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an account under a title; without items only programs see it, under `key`."""

    title: str = ""
    items: tuple[Item, ...] = ()
    name: str = ""
    folded: bool = False
    key: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """The account of a result: `facts` in short, `sections` at length; `form` is the format of its JSON."""

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
        """Yield each key with its value for programs."""
        for section in self.sections:
            if section.key:
                yield section.key, section.value
            for item in section.items:
                if isinstance(item, (Points, Table)) and item.key:
                    yield item.key, item.items if isinstance(item, Points) else item.value

    def __getitem__(self, key: str) -> Any:
        return dict(self.values())[key]


def only(**values: Any) -> tuple[Section, ...]:
    """Return sections for programs alone."""
    return tuple(Section(key=key, value=value) for key, value in values.items())


def facts_of(name: str, texts: "Iterator[str] | list[str] | tuple[str, ...]") -> Iterator[Fact]:
    """Yield a fact for each text; the first has the name."""
    for place, text in enumerate(texts):
        yield Fact("" if place else name, text)


# by the names of classes, so that only the module in use is loaded; last the one of a short account
_BUILDERS: Final = {
    "Report": ("certificate.account_of_certificate",),
    "Traffic": ("traffic.account_of_traffic", "traffic.traffic_in_short"),
    "Certificate": ("certificate.account_of_certificate", "sentences.account_in_short"),
    "GroupCertificate": ("groups.account_of_groups", "groups.groups_in_short"),
    "ClassCertificate": ("results.account_of_classes",),
    "Curve": ("results.account_of_curve",),
    "Verification": ("results.account_of_verification",),
    "Monitor": ("monitor.account_of_monitor",),
}


def account_of(result: Any, *about: Any, brief: bool = False, **more: Any) -> Account:
    """Return the account of a result and what is told about it; `brief`, only its short account."""
    of_traffic = ("Traffic",) * (getattr(result, "traffic", None) is not None)
    names = (*of_traffic, *(one.__name__ for one in type(result).__mro__))
    builders = next(_BUILDERS[name] for name in names if name in _BUILDERS)
    module, _, function = builders[-1 if brief else 0].partition(".")
    account: Account = getattr(import_module(f"pac_wrap.report.{module}"), function)(result, *about, **more)
    return account
