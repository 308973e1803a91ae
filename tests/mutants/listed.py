"""The list of mutants and what became of them, in a file."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mutants.change import FOLDERS, Mutant
from mutants.reached import PACKAGE
from mutants.run import Outcome

CHANGES: Final = PACKAGE / "changes.csv"
OUTCOMES: Final = PACKAGE / "outcomes.json"
KILLED: Final = "killed", "time"


@dataclass(frozen=True)
class Listed:
    """A mutant, its outcomes before the suite became faster and now, and why it changes nothing, if so.

    `by` is the test that killed it last, which is tried first; where it has another name by now, others do.
    """

    mutant: Mutant
    before: str = ""
    now: str = ""
    by: str = ""
    equivalent: str = ""


def read_list() -> list[Listed]:
    """Return the committed mutants with their outcomes."""
    with CHANGES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [
        Listed(Mutant(file, function, kind, old, new, int(number)), *rest)
        for file, function, kind, old, new, number, *rest in rows
    ]


def write_list(listed: Sequence[Listed]) -> None:
    """Write the mutants with their outcomes, and the counts of these."""
    with CHANGES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Mutant._fields, "before", "now", "by", "equivalent"])
        writer.writerows([*one.mutant, one.before, one.now, one.by, one.equivalent] for one in listed)
    OUTCOMES.write_text(json.dumps(counts(listed), indent=2) + "\n", encoding="utf-8")


def with_outcome(listed: Sequence[Listed], mutant: Mutant, column: str, outcome: Outcome) -> list[Listed]:
    """Return the list with a new outcome of one mutant in the column `before` or `now`."""
    changed = []
    for one in listed:
        if one.mutant == mutant:
            one = replace(one, by=outcome.test if "::" in outcome.test else one.by)
            what = outcome.outcome
            one = replace(one, before=what) if column == "before" else replace(one, now=what)
        changed.append(one)
    return changed


def counts(listed: Sequence[Listed]) -> dict[str, dict[str, dict[str, float]]]:
    """Return how many mutants of each folder were killed, and the share among those that change behaviour.

    `both` compares the mutants that were tried before and now.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for folder in (*FOLDERS, "all"):
        some = [one for one in listed if folder in (_folder(one.mutant), "all")]
        found[folder] = {"before": _shares([(one.before, one.equivalent) for one in some])}
        found[folder]["now"] = _shares([(one.now, one.equivalent) for one in some])
        both = [(one.before in KILLED, one.now in KILLED) for one in some if one.before and one.now]
        before, now = (sum(pair[which] for pair in both) for which in (0, 1))
        lost = sum(was and not still for was, still in both)
        found[folder]["both"] = {"tried": len(both), "killed before": before, "killed now": now, "lost": lost}
    return found


def _shares(outcomes: Sequence[tuple[str, str]]) -> dict[str, float]:
    tried = [("equivalent" if reason else outcome) for outcome, reason in outcomes if outcome]
    killed = sum(outcome in KILLED for outcome in tried)
    matter = len(tried) - tried.count("equivalent")
    return {
        **dict(sorted(Counter(tried).items())),
        "share killed": round(killed / max(1, len(tried)), 4),
        "share killed of those that change behaviour": round(killed / max(1, matter), 4),
    }


def _folder(mutant: Mutant) -> str:
    return Path(mutant.file).parts[2]
