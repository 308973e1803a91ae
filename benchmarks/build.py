"""Put the saved results into benchmarks/README.md and docs/guide/cluster.md; no number is typed here.

python -m benchmarks.build
"""

from pathlib import Path

from benchmarks.lines import NAMES
from benchmarks.record import load
from benchmarks.table import growth_table, render, summary

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
SCALE = HERE.parent / "docs" / "guide" / "cluster.md"
LARGE = ("calibrate", "verdicts", "files", "spark", "dask", "pipe")
MARKS = ("<!-- measured -->", "<!-- end -->")


def build_page(results: Path) -> str:
    """Return the page: findings by hand, the aims that are met, and the tables of every line."""
    paths = [path for name in NAMES if (path := results / f"{name}.json").exists()]
    loaded = [load(path) for path in paths]
    parts = [
        (HERE / "findings.md").read_text(encoding="utf-8").rstrip(),
        "## Aims",
        summary(result for result, _ in loaded),
    ]
    for (result, made), path in zip(loaded, paths, strict=True):
        versions = ", ".join(f"{name} {number}" for name, number in made.items())
        parts += [render(result), f"*[{path.name}](results/{path.name}), {result.scale} sizes; {versions}*"]
    return "\n\n".join(parts) + "\n"


def build_scale(results: Path, page: str) -> str:
    """Return the page on scale with its table of measured growth, between two marks, made anew."""
    loaded = [load(results / f"{name}.json")[0] for name in LARGE if (results / f"{name}.json").exists()]
    before, _, rest = page.partition(MARKS[0])
    return before + MARKS[0] + "\n" + growth_table(loaded) + "\n" + MARKS[1] + rest.partition(MARKS[1])[2]


def write_page() -> None:
    """Write both pages from the saved results."""
    PAGE.write_text(build_page(HERE / "results"), encoding="utf-8", newline="\n")
    scale = build_scale(HERE / "results", SCALE.read_text(encoding="utf-8"))
    SCALE.write_text(scale, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_page()
