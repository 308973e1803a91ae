"""Run the notebooks of this folder and keep what they print and draw, the same bytes wherever they ran.

Usage: python docs/examples/run.py [NAME ...] (all of them without a name; one whose needs are unmet is left)
"""

import importlib.util
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from pac_wrap.base.files import scratch_folder, write_whole

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def needs(notebook: Any) -> list[str]:
    """Return what a notebook needs beyond the package: some of data, java, postgres and torch."""
    return list(notebook.metadata["pac_wrap"]["needs"])


def unmet(needed: str) -> str | None:
    """Return why a need is not met on this machine, None if it is."""
    if needed == "data":
        return None if os.environ.get("PAC_WRAP_DATA") else "PAC_WRAP_DATA names no folder of data sets"
    if needed == "java":
        found = (shutil.which("java") or "JAVA_HOME" in os.environ) and importlib.util.find_spec("pyspark")
        return None if found else "Spark needs Java and pyspark"
    if needed == "postgres":
        found = any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")
        return None if found and importlib.util.find_spec("psycopg") else "PostgreSQL or psycopg is missing"
    return None if importlib.util.find_spec(needed) else f"{needed} is not installed"


def executed(notebook: Any, folder: Path) -> Any:
    """Return the notebook with the outputs of all of its cells, run in a folder of its own."""
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "pac_wrap": notebook.metadata["pac_wrap"]})
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Return the outputs with the pieces of a stream as one: how it was cut differs from run to run."""
    kept: list[Any] = []
    for output in outputs:
        if kept and output.output_type == "stream" and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


if __name__ == "__main__":
    paths = [HERE / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb"))
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        missing = [reason for need in needs(notebook) if (reason := unmet(need))]
        if missing:
            sys.stdout.write(f"{path.name}: left as it is, since {'; '.join(missing)}\n")
            continue
        began = time.perf_counter()
        with scratch_folder() as folder:
            text = nbformat.writes(executed(notebook, folder))
        write_whole(path, text + "\n")
        sys.stdout.write(f"{path.name}: {time.perf_counter() - began:.0f} s, {len(text) // 1000} kB\n")
