"""Run the notebooks of this folder and keep what they print and draw, the same bytes wherever they ran.

Usage: python docs/examples/run_examples.py [NAME ...]

Without a name all of them; one that cannot be run here is left as it is.
"""

import os
import re
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from pac_wrap.base.files import scratch_folder, write_whole

HERE = Path(__file__).parent
QUIET = "remove-stderr"  # the tag, which is MyST's, of a cell that starts something talkative
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# for all notebooks, the site's too: threads that wait for each other in a busy loop take minutes where others
# need the processor
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def missing(notebook: Any) -> list[str]:
    """Return the reasons why a notebook cannot be run on this machine; none if it can."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    imported = re.findall(r"^(?:import|from) (\w+)", code, flags=re.MULTILINE)
    packages = [f"{name} is not installed" for name in dict.fromkeys(imported) if not find_spec(name)]
    needed = notebook.metadata["pac_wrap"]["needs"]
    return [*packages, *(reason for reason in map(_unmet, needed) if reason)]


def _unmet(need: str) -> str | None:
    if need == "data" and not os.environ.get("PAC_WRAP_DATA"):
        return "PAC_WRAP_DATA names no folder of data sets"
    if need == "java" and not (shutil.which("java") or "JAVA_HOME" in os.environ):
        return "Java is not installed (Debian's package: default-jre-headless)"
    if need == "postgres" and not (shutil.which("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin"))):
        return "PostgreSQL is not installed (Debian's package: postgresql)"
    return None


def executed(notebook: Any, folder: Path) -> Any:
    """Return the notebook with the outputs of all of its cells, run in a folder of its own."""
    where = {"metadata": {"path": folder}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "pac_wrap": notebook.metadata["pac_wrap"]})
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell.outputs = _kept(cell.outputs, QUIET in tags)
    return notebook


def _kept(outputs: list[Any], quiet: bool) -> list[Any]:
    """Return the outputs with the pieces of a stream as one: how it was cut differs from run to run."""
    kept: list[Any] = []
    for output in outputs:
        if quiet and output.get("name") == "stderr":
            continue
        if kept and output.output_type == "stream" and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


if __name__ == "__main__":
    paths = [HERE / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb"))
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        if reasons := missing(notebook):
            sys.stdout.write(f"{path.name}: left as it is, since {'; '.join(reasons)}\n")
            continue
        began = time.perf_counter()
        with scratch_folder() as folder:
            text = nbformat.writes(executed(notebook, folder))
        write_whole(path, text + "\n")
        sys.stdout.write(f"{path.name}: {time.perf_counter() - began:.0f} s, {len(text) // 1000} kB\n")
