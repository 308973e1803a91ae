"""Run what the pages of the guide show, and write what it prints below it, or return it for comparison.

Usage: python docs/guide/run.py (with PAC_WRAP_DATA set)
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pac_wrap.base.files import scratch_folder

HERE = Path(__file__).parent
# each page with the data files that it needs
PAGES = {
    HERE.parent / "start.md": (),
    HERE.parent / "guide.md": (
        "annthyroid_21feat_normalised.csv",
        "census-income.data.gz",
        "census-income.test.gz",
    ),
}
# commands with what they print, and Python with what it prints in a block of its own
BLOCK = re.compile(
    r"```console\n(?P<shell>.*?)```|```python\n(?P<python>.*?)```(?P<text>\n\n```text\n.*?```)?", re.DOTALL
)


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


def run_page(text: str, folder: Path) -> str:
    """Return the page with the output of everything below it, all run in one folder and one session."""
    for script in HERE.glob("*.py"):
        shutil.copy(script, folder)
    names: dict[str, Any] = {}

    def answer(block: re.Match[str]) -> str:
        if block["python"] is not None:
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
                exec(block["python"], names)
            shown = "\n\n```text\n" + said.getvalue().rstrip() + "\n```" if block["text"] else ""
            return f"```python\n{block['python']}```{shown}"
        lines = []
        for command in re.findall(r"^\$ (.*)$", block["shell"], flags=re.MULTILINE):
            lines += [f"$ {command}", *printed(command, folder)]
        return "```console\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(answer, text)


if __name__ == "__main__":
    for page in PAGES:
        with scratch_folder() as folder:
            page.write_text(run_page(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
