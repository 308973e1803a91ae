"""The example notebooks: each has its parts, and was run. `make docs` runs them again."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
NOTEBOOKS = {path.stem: path for path in sorted(EXAMPLES.glob("*.ipynb"))}
NEEDS = {"data", "java", "postgres", "torch"}
LARGEST = 300_000  # bytes

each = pytest.mark.parametrize("name", NOTEBOOKS)


def notebook(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    return read


def cells(name: str, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in notebook(name)["cells"] if cell["cell_type"] == kind]


def outputs(name: str) -> list[dict[str, Any]]:
    return [output for cell in cells(name, "code") for output in cell["outputs"]]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_there_are_thirteen() -> None:
    assert len(NOTEBOOKS) == 13


@each
def test_it_opens_with_a_title_and_has_a_few_sections(name: str) -> None:
    headings = re.findall(
        r"^(#+) (.+)$", "\n\n".join(map(source, cells(name, "markdown"))), flags=re.MULTILINE
    )
    assert [level for level, _ in headings].count("#") == 1
    assert headings[0][0] == "#", "the title comes first"
    assert notebook(name)["cells"][0]["cell_type"] == "markdown"
    assert 3 <= len(headings) - 1 <= 8


@each
def test_it_says_what_it_needs_and_nothing_of_the_machine_it_ran_on(name: str) -> None:
    metadata = notebook(name)["metadata"]
    assert set(metadata) == {"kernelspec", "pac_wrap"}
    assert metadata["kernelspec"]["name"] == "python3"
    assert set(metadata["pac_wrap"]["needs"]) <= NEEDS
    imports = "\n".join(map(source, cells(name, "code")))
    for need, sign in {"data": "paper import data", "java": "pyspark", "torch": "import torch"}.items():
        assert (need in metadata["pac_wrap"]["needs"]) == (sign in imports), need
    shown = json.dumps(outputs(name))
    for pattern in (r"/(home|root|work|tmp|usr)/", r"0x[0-9a-f]{6,}", r"[A-Z]:\\\\"):
        assert not re.search(pattern, re.sub(r'"image/png": "[^"]*"', "", shown)), pattern


@each
def test_every_cell_was_run_in_order_without_errors_or_warnings(name: str) -> None:
    run = cells(name, "code")
    assert [cell["execution_count"] for cell in run] == list(range(1, len(run) + 1))
    assert {output["output_type"] for output in outputs(name)} <= {"stream", "display_data"}
    assert not [output for output in outputs(name) if output.get("name") == "stderr"]
    for cell in run:
        if re.search(r"^ *print\(|plt\.show\(", source(cell), flags=re.MULTILINE):
            assert cell["outputs"], source(cell)


@each
def test_it_ends_in_a_picture_and_in_what_was_promised(name: str) -> None:
    *_, shown, last = notebook(name)["cells"]
    assert any("image/png" in output.get("data", {}) for output in shown["outputs"])
    assert "**What was promised, what was not.**" in source(last)
    assert "http" not in re.sub(r"\]\(https://[^)]*\)", "]", "".join(map(source, cells(name, "markdown"))))
    assert "![" not in "".join(map(source, cells(name, "markdown")))
    assert NOTEBOOKS[name].stat().st_size < LARGEST
