"""The page of a certificate of kinds or of groups: what both say in the same order, and in every format."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pac_wrap.base.files import write_whole
from pac_wrap.report.pages.content import BREAKS, NOT_PROMISED
from pac_wrap.report.pages.formats import Pictures, check_suffix, markdown, page
from pac_wrap.report.pages.pictures import Multiple
from pac_wrap.report.subject import VerdictRow
from pac_wrap.report.words.sentences import Status

# small histograms that a page has at most
MOST_MULTIPLES: Final = 24
# of a name where many are listed
LONGEST_NAME: Final = 60
SHORT_NAME: Final = 24
_SECTIONS: Final = "parts.j2"
# characters of a certificate that stands in its page
_LONGEST: Final = 100_000
AGAIN: Final = "Calibrate again, on fresh points, when the detector is retrained or the data change."


@dataclass(frozen=True, slots=True)
class Listing:
    """A table: its caption, its heads, and rows of as many texts; `heading` if it is a section of its own."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    heading: str = ""

    @property
    def columns(self) -> dict[str, int]:
        """The place of each head, as templates take it."""
        return {head: place for place, head in enumerate(self.heads)}

    @property
    def records(self) -> list[dict[str, str]]:
        """The rows for programs."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class PartsContent:
    """All that a page of kinds or groups says, in the order in which it is said."""

    of: str
    title: str
    subtitle: str
    status: Status
    promise: str
    warnings: tuple[str, ...]
    heading: str
    tables: tuple[Listing, ...]
    lead: tuple[str, ...]
    multiples: tuple[Multiple, ...]
    multiples_caption: str
    next_steps: tuple[str, ...]
    listing: Listing | None
    verdicts: tuple[VerdictRow, ...]
    assumptions: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    certificate: str
    more_not_promised: tuple[str, ...] = ()
    # the rates on labelled points that did not calibrate, where there are such
    measured: Listing | None = None
    pictures: Pictures | None = field(default=None, repr=False)

    @property
    def breaks(self) -> tuple[str, ...]:
        """What would break the promises."""
        return BREAKS

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What the promises do not cover."""
        return (*self.more_not_promised, *NOT_PROMISED)

    @property
    def embedded(self) -> bool:
        """Whether the certificate stands in the page."""
        return len(self.certificate) <= _LONGEST


def render_parts(content: PartsContent, path: str | os.PathLike[str]) -> str:
    """Return a page of kinds or groups in the format that a file's name asks for: .html, .md or .json."""
    check_suffix(path)
    ending = Path(path).suffix.lower()
    if ending == ".json":
        return _as_json(content)
    if ending == ".md":
        return markdown(_SECTIONS, content=content)
    return page("report.html.j2", sections=_SECTIONS, content=content, shown=content.pictures)


def write_parts(content: PartsContent, path: str | os.PathLike[str]) -> None:
    """Write a page of kinds or groups; the file appears whole or not at all."""
    write_whole(path, render_parts(content, path))


def _as_data(listing: Listing | None) -> dict[str, Any] | None:
    return None if listing is None else {"caption": listing.caption, "rows": listing.records}


def _as_json(content: PartsContent) -> str:
    data: Mapping[str, Any] = {
        "format": f"pac-wrap report of {content.of}",
        "schema": 1,
        "title": content.title,
        "status": content.status.words,
        "promise": content.promise,
        "warnings": content.warnings,
        content.of: [row for one in content.tables for row in one.records],
        "said": content.lead,
        "next_steps": content.next_steps,
        "measured": _as_data(content.measured),
        "listing": _as_data(content.listing),
        "verdicts": [{"verdict": row.name, "scores": row.scores} for row in content.verdicts],
        "assumptions": content.assumptions,
        "breaks": content.breaks,
        "not_promised": content.not_promised,
        "versions": dict(content.versions),
        "digests": dict(content.digests),
        "certificate": json.loads(content.certificate) if content.embedded else None,
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
