"""Run the commands of docs/guide.md and write what they print below them, or return it for comparison.

Usage: python docs/guide/run.py (with PAC_WRAP_DATA set)
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pac_wrap.base.files import scratch_folder

HERE = Path(__file__).parent
PAGE = HERE.parent / "guide.md"
BLOCK = re.compile(r"```console\n(.*?)```", flags=re.DOTALL)


def run_guide(text: str, folder: Path) -> str:
    """Return the page with the output of every command below it, all run in one folder."""
    for script in ("score_thyroid.py", "groups.py"):
        shutil.copy(HERE / script, folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    data = str(Path(os.environ["PAC_WRAP_DATA"]).resolve())
    environment = os.environ | {"PATH": path, "PAC_WRAP_DATA": data, "COLUMNS": "100", "NO_COLOR": "1"}

    def answer(block: re.Match[str]) -> str:
        lines = []
        for command in re.findall(r"^\$ (.*)$", block[1], flags=re.MULTILINE):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if done.returncode not in (0, 141):  # 141: `head` closed the pipe
                raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")
            lines += [f"$ {command}", *(line.rstrip() for line in done.stdout.rstrip().splitlines())]
        return "```console\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(answer, text)


if __name__ == "__main__":
    with scratch_folder() as folder:
        PAGE.write_text(run_guide(PAGE.read_text(encoding="utf-8"), folder), encoding="utf-8")
