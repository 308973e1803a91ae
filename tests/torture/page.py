"""docs/reliability.md, made of its introduction and of the counts of one run; no number is typed."""

import json
from pathlib import Path

from torture.record import Record, Tally
from torture.soak import Soak

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
COUNTS = FOLDER / "counts.json"
SOAK = FOLDER / "soak.json"


def read_soak() -> Soak:
    """Return the soak that was run last."""
    return Soak(**json.loads(SOAK.read_text(encoding="utf-8")))


def build_page(record: Record, soak: Soak) -> str:
    """Return the page for one run of attacks and one soak."""
    tried = sum(tally.tried for tally in record.tallies)
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
    kills = sum(soak.signals.values())
    outcome = "every one of them was handled" if not record.failed else f"**{record.failed:,} were not**"
    parts = [
        (FOLDER / "introduction.md").read_text(encoding="utf-8").rstrip(),
        "## Counts",
        f"Run of {record.date}, seed {record.seed}, {record.minutes:g} minutes on two cores: {tried:,} faults"
        f" were tried, and {outcome}.",
        "\n".join(
            [
                "| class of fault | tried | what happened |",
                "|---|---:|---|",
                *(
                    f"| **{tally.name}**: {tally.what} | {tally.tried:,} | {happened(tally)} |"
                    for tally in record.tallies
                ),
            ]
        ),
        f"*[counts.json](reliability/counts.json); {versions}*",
        "## The soak",
        soak.told(),
        "*[soak.json](reliability/soak.json), by* `PYTHONPATH=tests python -m torture.soak --points"
        f" {soak.points} --kills {kills} --write`",
    ]
    return "\n\n".join(parts) + "\n"


def happened(tally: Tally) -> str:
    """Return the outcomes of one class in words, the most frequent first."""
    if tally.skipped:
        return f"not tried here: {tally.skipped}"
    ordered = sorted(tally.outcomes.items(), key=lambda pair: (-pair[1], pair[0]))
    words = [f"{name} {count:,}" for name, count in ordered]
    return "; ".join([f"**not handled {len(tally.failures):,}**"] * bool(tally.failures) + words)
