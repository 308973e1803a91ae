"""Put the pages of `results` together into docs/reproduction.md; no number is typed here.

Usage: python docs/reproduction/build.py
"""

import json
import re
from pathlib import Path

from pac_wrap.paper.studies import QUESTIONS

HERE = Path(__file__).parent
PAGE = HERE.parent / "reproduction.md"
RESULTS = HERE.parents[1] / "results"
LINK = re.compile(r"(!\[[^\]]*\]\()")


def build_page(results: Path) -> str:
    """Return the page: an introduction, then what each question's run wrote, and how each was run."""
    parts = [(HERE / "introduction.md").read_text(encoding="utf-8").rstrip()]
    for question in QUESTIONS:
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


if __name__ == "__main__":
    PAGE.write_text(build_page(RESULTS), encoding="utf-8", newline="\n")
