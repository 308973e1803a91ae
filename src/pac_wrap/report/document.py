"""The order of a report and its tables: sections of text, lists, tables, figures and the certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pac_wrap.report.content import Content
from pac_wrap.report.next_steps import TOLERATED


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; the promise and warnings stand out."""

    text: str
    kind: Literal["plain", "promise", "warning", "status"] = "plain"


@dataclass(frozen=True, slots=True)
class Points:
    """A list, under a line that introduces it."""

    lead: str
    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column heads its rows; `verbatim` cells are foreign text, shown as they are."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Where some figures stand, by their names, in formats that have them."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A file that is shown, and can be saved where the format allows it."""

    name: str
    text: str


Block = Text | Points | Table | Figures | File


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; `name` is its address."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def sections(content: Content) -> tuple[Section, ...]:
    """Return the report in reading order."""
    return (
        Section("promise", "The promise", _promise(content)),
        Section("verdicts", "Verdicts", (_verdicts(content),)),
        Section("figures", "What the scores show", _figures(content)),
        Section("reached", "How it was reached", _reached(content)),
        Section(
            "assumptions",
            "What is assumed, and what would break it",
            (
                Points("The promise assumes:", content.assumptions),
                Points("It would be broken by:", content.breaks),
                Points("It does not cover:", content.not_promised),
            ),
        ),
        Section("next", "What to do next", (Points("", content.next_steps), _plan(content))),
        Section(
            "certificate",
            "The certificate",
            (
                Text("The rule with every digit, as a file that programs read; loading it never runs code."),
                File("certificate.json", content.certificate),
            ),
        ),
        Section("versions", "Versions and digests", _origin(content)),
    )


def _promise(content: Content) -> tuple[Block, ...]:
    return (
        Text(content.promise, "promise"),
        Text(f"Status: {content.status}.", "status"),
        *(Text(warning, "warning") for warning in content.warnings),
        *((Points("", content.notes),) if content.notes else ()),
    )


def _verdicts(content: Content) -> Table:
    return Table(
        "What each score means. The shares are counted on the calibration points; they are no promise."
        " Thresholds are rounded here, and exact in the certificate.",
        ("Score", "Verdict", "Meaning", "Normal points", "Anomalous points"),
        [
            (row.scores, row.name, row.meaning, row.normal_share, row.anomalous_share)
            for row in content.verdicts
        ],
    )


def _figures(content: Content) -> tuple[Block, ...]:
    held_out = Table(
        "Rates measured on labelled points that were not used to calibrate, with exact intervals."
        " Beyond chance: an exact one-sided test at 5 %, for one look at these points.",
        ("Rate", "Measured", "Interval", "Points", "Ceiling", "Finding"),
        [
            (row.name, row.measured, row.interval, row.points, row.ceiling, row.finding)
            for row in content.held_out
        ],
    )
    before, after = Figures(("scores", "log", "boxes", "rates", "held-out")), Figures(("plan",))
    return (before, held_out, after) if content.held_out else (before, after)


def _reached(content: Content) -> tuple[Block, ...]:
    return (
        Table(
            "FPR: the share of normal points that are called anomalies. FNR: the share of anomalous points"
            " that are called normal. k* is the most errors that n points may show.",
            ("What", "Normal points, FPR", "Anomalous points, FNR"),
            [(row.name, row.normal, row.anomalous) for row in content.reached],
        ),
        Points("", content.explanations),
    )


def _plan(content: Content) -> Table:
    return Table(
        content.plan_caption,
        ("Promise", "Needed, none misjudged", f"Needed, {TOLERATED} misjudged", "At hand"),
        [
            (row.promise, f"{row.none_tolerated:,}", f"{row.some_tolerated:,}", row.state)
            for row in content.plan
        ],
    )


def _origin(content: Content) -> tuple[Block, ...]:
    tables = [
        Table("Where the scores came from.", ("What", "Name"), content.origin, verbatim=True),
        Table("Software.", ("What", "Version"), content.versions, verbatim=True),
        Table(
            "Digests guard against mix-ups, not forgery.", ("Of", "Digest"), content.digests, verbatim=True
        ),
    ]
    return tuple(table for table in tables if table.rows)
