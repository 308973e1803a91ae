"""docs/reliability.md, made of its introduction and of the counts of one run; no number is typed."""

from pathlib import Path

from torture.record import Record, Tally

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
COUNTS = FOLDER / "counts.json"


def build_page(record: Record) -> str:
    """Return the page for one run."""
    tried = sum(tally.tried for tally in record.tallies)
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
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
    ]
    return "\n\n".join(parts) + "\n"


def happened(tally: Tally) -> str:
    """Return the outcomes of one class in words, the most frequent first."""
    if tally.skipped:
        return f"not tried here: {tally.skipped}"
    ordered = sorted(tally.outcomes.items(), key=lambda pair: (-pair[1], pair[0]))
    words = [f"{name} {count:,}" for name, count in ordered]
    return "; ".join([f"**not handled {len(tally.failures):,}**"] * bool(tally.failures) + words)
