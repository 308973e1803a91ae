"""Put the pages of `results` together: docs/reproduction.md, docs/adbench.md, and tables in two other pages.

No number is typed here. Usage: python docs/reproduction/build.py
"""

import csv
import json
import re
from pathlib import Path
from textwrap import fill

from pac_wrap_paper.studies import QUESTIONS

HERE = Path(__file__).parent
PAGE = HERE.parent / "reproduction.md"
ADBENCH = HERE.parent / "adbench.md"
README = HERE.parents[1] / "README.md"
SERIES = HERE.parent / "guide" / "series.md"
RESULTS = HERE.parents[1] / "results"
WIDTH = 140
LINK = re.compile(r"(!\[[^\]]*\]\()")
BLOCK = re.compile(r"(<!-- adbench -->\n).*?(<!-- end of adbench -->)", re.DOTALL)
UNITS = re.compile(r"(<!-- units -->\n).*?(<!-- end of units -->)", re.DOTALL)
# thresholds that the README names: their names in the README, and the rates they are set up for
NAMED = {
    "contamination 0.1": ("PyOD's contamination, 0.1", "10 % alarms"),
    "95th percentile of normals": ("95th percentile of normal scores", "FPR ≤ 5 %"),
    "greatest F1": ("greatest F1", "the rates it shows"),
    "TunedThresholdClassifierCV": ("`TunedThresholdClassifierCV`", "the rates it shows"),
    "conformal (crepes)": ("class-conditional conformal (crepes)", "both ≤ 5 % on average"),
    "MAPIE, FPR": ("MAPIE's controller", "FPR ≤ 5 %, confidence 95 %"),
    "abstain": ('**`overlap="abstain"`**', "both ≤ 5 %, confidence 95 % each"),
    "raise": ('**`overlap="raise"`**', "the ceilings it certifies, the same"),
    "hold_fnr": ('**`overlap="hold_fnr"`**', "FNR ≤ 5 %, and the FPR it certifies, the same"),
    "curve at F1": ("**`certify_curve`, at the greatest F1**", "the ceilings it certifies, the same"),
}


def build_page(results: Path) -> str:
    """Return the page on the paper: an introduction, the results of each question, and how each was run."""
    return _page(results, HERE / "introduction.md", [name for name in QUESTIONS if name != "adbench"])


def build_adbench(results: Path) -> str:
    """Return the page on ADBench, which is no question of the paper."""
    return _page(results, HERE / "adbench.md", ["adbench"])


def _page(results: Path, introduction: Path, questions: list[str]) -> str:
    parts = [introduction.read_text(encoding="utf-8").rstrip()]
    for question in questions:
        section = (results / f"{question}.md").read_text(encoding="utf-8").rstrip()
        parts += [LINK.sub(r"\1../results/", section), _made(results / f"{question}.json")]
    return "\n\n".join(parts) + "\n"


def _made(record: Path) -> str:
    made = json.loads(record.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    files = ", ".join(
        f"[{path.name}](../results/{path.name})"
        for path in sorted(record.parent.glob(f"{made['question']}*.csv"))
    )
    return f"*Made by* `{made['command']}` *with {versions}. Rows:* {files}"


def with_adbench(readme: str, results: Path) -> str:
    """Return the README with the table of ADBench between its two marks."""
    if BLOCK.search(readme) is None:
        raise SystemExit("the README needs the lines <!-- adbench --> and <!-- end of adbench -->")
    return BLOCK.sub(lambda found: f"{found[1]}{_block(results)}{found[2]}", readme)


def with_units(guide: str, results: Path) -> str:
    """Return the guide to series with the table of the study of units between its two marks."""
    if UNITS.search(guide) is None:
        raise SystemExit("the guide to series needs the lines <!-- units --> and <!-- end of units -->")
    heads = "series", "held out", "unit", "promise about", *(f"{rate} exceeded" for rate in ("FPR", "FNR"))
    lines = [
        f"| {' | '.join([*heads, 'warned', 'nothing promised'])} |",
        f"|{'---|' * 4}{'---:|' * 4}",
    ]
    for row in _rows(results, "broken", "units"):
        counts = [(row[f"{rate} exceeded count"], row[f"{rate} exceeded n"]) for rate in ("FPR", "FNR")]
        rates = [f"{count} of {n}" if n else "\N{EN DASH}" for count, n in counts]
        shares = [_percent(row[name]) for name in ("warned", "nothing promised")]
        said = [row[name] for name in ("data", "held out", "unit", "promise about")]
        lines.append(f"| {' | '.join([*said, *rates, *shares])} |")
    return UNITS.sub(lambda found: "\n".join([found[1], *lines, "", found[2]]), guide)


def _block(results: Path) -> str:
    """Return the README's table of ADBench: how often a rate is above, and the share of points decided."""
    above = {
        (row["threshold"], row["set up for"].partition(":")[0]): row for row in _rows(results, "exceeded")
    }
    decided = {row["threshold"]: row for row in _rows(results, "price")}
    tables, detectors = _rows(results, "tables"), _rows(results, "detectors")
    command = json.loads((results / "adbench.json").read_text(encoding="utf-8"))["command"]

    def cell(threshold: str, rate: str) -> str:
        row = above.get((threshold, rate))
        if row is None or not row["divisions above it mean"]:
            return "\N{EN DASH}"
        chance = row["chance at most"]
        allowed = f" (at most {_percent(chance)})" if chance and threshold != "conformal (crepes)" else ""
        return _percent(row["divisions above it mean"]) + allowed

    lines = [
        "| threshold | set up for | FPR above it | FNR above it | points decided |",
        "|---|---|---:|---:|---:|",
    ]
    for threshold, (name, promise) in NAMED.items():
        first = cell(threshold, "FPR")
        if (threshold, "share") in above:
            first = f"alarms: {cell(threshold, 'share')}"
        share = _percent(decided[threshold]["decided mean"])
        lines.append(f"| {name} | {promise} | {first} | {cell(threshold, 'FNR')} | {share} |")
    before = (
        f"Measured on {len(tables)} tables of ADBench with {len(detectors)} detectors: half of the held-out"
        " rows calibrates, and the rates are counted on the other half. The table shows how often a rate is"
        " above the value that the threshold was set up for, on average over tables:"
    )
    after = (
        "The other half is a random sample too, so its rate may be above a ceiling that the rate of all rows"
        " keeps. *At most* bounds the chance of a rate above the ceiling on the other half, by"
        " [Theorem 28](docs/theory.md)."
        " On all held-out rows, from which the calibration rows are drawn, no promise of ours"
        f" is broken in more than {_percent(_worst(results))} of the divisions. Made by `{command}`;"
        " [docs/adbench.md](docs/adbench.md) has every table, the losses, and a leaderboard of detectors by"
        " what can be certified."
    )
    picture = (
        "![ADBench, table by table: promised, reached, broken, and the price](results/adbench-tables.svg)"
    )
    return "\n\n".join([fill(before, WIDTH), "\n".join(lines), fill(after, WIDTH), picture]) + "\n"


def _worst(results: Path) -> str:
    return max((row["broken on all rows"] for row in _rows(results, "kept")), key=float)


def _percent(share: str) -> str:
    value = 100 * float(share)
    return f"{value:.0f} %" if value >= 0.95 or value == 0 else f"{value:.1f} %"


def _rows(results: Path, table: str, question: str = "adbench") -> list[dict[str, str]]:
    with (results / f"{question}-{table}.csv").open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


if __name__ == "__main__":
    PAGE.write_text(build_page(RESULTS), encoding="utf-8", newline="\n")
    ADBENCH.write_text(build_adbench(RESULTS), encoding="utf-8", newline="\n")
    readme = with_adbench(README.read_text(encoding="utf-8"), RESULTS)
    README.write_text(readme, encoding="utf-8", newline="\n")
    guide = with_units(SERIES.read_text(encoding="utf-8"), RESULTS)
    SERIES.write_text(guide, encoding="utf-8", newline="\n")
