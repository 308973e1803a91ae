"""Run the code on the pages of the guide, and write its outputs below it, or return them for comparison.

Usage: python docs/guide/run.py [PAGE ...] (with PAC_WRAP_DATA set; all pages unless some are named)
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pac_wrap.base.files import scratch_folder

HERE = Path(__file__).parent
# each page, with the data files that its commands need
PAGES: dict[Path, tuple[str, ...]] = {HERE.parent / name: () for name in ("start.md", "schema.md")}
PAGES |= {
    HERE / f"{name}.md": ()
    for name in (
        "scores",
        "detectors",
        "traffic",
        "database",
        "streams",
        "series",
        "groups",
        "shift",
        "monitoring",
    )
}
PAGES[HERE / "tables.md"] = ("annthyroid_21feat_normalised.csv",)
# commands with what they print, and Python with what it prints in a block of its own
BLOCK = re.compile(
    r"```console\n(?P<shell>.*?)```|```python\n(?P<python>.*?)```(?P<text>\n\n```text\n.*?```)?", re.DOTALL
)

# whose versions may change a number on a page; a page ends with those that printed it
PACKAGES = ("pac-wrap-ad", "numpy", "scipy", "scikit-learn")
RECORD = re.compile(r"\n+<!-- printed with (.*) -->\n\Z")


def versions() -> str:
    """Return the packages that may change numbers, with their versions here."""
    return ", ".join(f"{name} {version(name)}" for name in PACKAGES)


def recorded(text: str) -> str | None:
    """Return the versions that printed a page; None if it does not say."""
    found = RECORD.search(text)
    return None if found is None else found[1]


def printed(command: str, folder: Path) -> list[str]:
    """Return the lines that a command prints in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    if "PAC_WRAP_DATA" in os.environ:
        environment["PAC_WRAP_DATA"] = str(Path(os.environ["PAC_WRAP_DATA"]).resolve())
    shell = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 141):  # 141: `head` closed the pipe
        raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")
    return [line.rstrip() for line in done.stdout.rstrip().splitlines()]


def has_data(page: Path) -> bool:
    """Return whether this machine has the data that a page needs."""
    folder = os.environ.get("PAC_WRAP_DATA")
    return not PAGES[page] or (
        folder is not None and all((Path(folder) / name).exists() for name in PAGES[page])
    )


def run_page(page: Path, folder: Path) -> str:
    """Return the page with the output of everything below it, all run in one folder and one session.

    It ends with the versions that printed it. Where the data are missing, only the Python of the page is run,
    and the commands and the versions stay as they are.
    """
    for script in HERE.glob("*.py"):
        shutil.copy(script, folder)
    names: dict[str, Any] = {}

    def answer(block: re.Match[str]) -> str:
        if block["python"] is not None:
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
                exec(block["python"], names)
            lines = [line.rstrip() for line in said.getvalue().rstrip().splitlines()]
            shown = "\n".join(["\n\n```text", *lines, "```"]) if block["text"] else ""
            return f"```python\n{block['python']}```{shown}"
        if not has_data(page):
            return block[0]
        lines = []
        for command in re.findall(r"^\$ (.*)$", block["shell"], flags=re.MULTILINE):
            lines += [f"$ {command}", *printed(command, folder)]
        return "```console\n" + "\n".join(lines) + "\n```"

    text = BLOCK.sub(answer, page.read_text(encoding="utf-8"))
    if not has_data(page):
        return text
    return RECORD.sub("", text).rstrip("\n") + f"\n\n<!-- printed with {versions()} -->\n"


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with scratch_folder() as folder:
            page.write_text(run_page(page, folder), encoding="utf-8")
