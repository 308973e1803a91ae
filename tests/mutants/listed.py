"""The list of mutants and what became of them, in a file."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mutants.change import FOLDERS, Mutant

CHANGES: Final = Path(__file__).with_name("changes.csv")
KILLED: Final = "killed", "time"


class Listed(NamedTuple):
    """A mutant, its outcomes before the suite became faster and now, and why it changes nothing, if so.

    `by` is the test that killed it last, which is tried first; where it has another name by now, others do.
    """

    mutant: Mutant
    before: str
    now: str
    by: str
    equivalent: str


def read_list() -> list[Listed]:
    """Return the committed mutants with their outcomes."""
    with CHANGES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Listed(Mutant._make([*row[:5], int(row[5])]), *row[6:]) for row in rows]


def write_list(listed: Sequence[Listed]) -> None:
    """Write the mutants with their outcomes."""
    with CHANGES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Mutant._fields, *Listed._fields[1:]])
        writer.writerows([*one.mutant, *one[1:]] for one in listed)


def shares(listed: Sequence[Listed]) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield for each folder and for all, before and now: mutants tried, killed, and those without effect."""
    for folder in (*FOLDERS, "all"):
        some = [one for one in listed if folder in (Path(one.mutant.file).parts[2], "all")]
        for when in ("before", "now"):
            outcomes = [getattr(one, when) for one in some]
            idle = sum(bool(one.equivalent and getattr(one, when)) for one in some)
            yield folder, when, sum(map(bool, outcomes)), sum(one in KILLED for one in outcomes), idle
