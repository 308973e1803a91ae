"""The paper is a user: of public names, and of six shared modules. The library loads it in commands only."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import pac_wrap
import pac_wrap_paper
from support.pages import ROOT

LIBRARY: Final = Path(pac_wrap.__file__).parent
PAPER: Final = Path(pac_wrap_paper.__file__).parent
# modules whose names are public; an engine is one, too
PUBLIC: Final = {f"pac_wrap.{name}" for name in ("errors", "scoring", "series", "tails", "validation")} | {
    "pac_wrap.tables.database"
}
# results that the reference names, so that anyone can say of which type they are
RESULTS: Final = {
    f"pac_wrap.{path}"
    for path in re.findall(r"^   (method\.[\w.]+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.M)
}
# what it shares with the library beyond that, and no more than six
SHARED: Final = {
    "pac_wrap.base.arguments",  # how arguments are refused
    "pac_wrap.base.files",  # files that appear whole or not at all
    "pac_wrap.method.strategies.raising",  # the ladder, whose chance of failing the study of ADBench computes
    "pac_wrap.report.figures",  # how its charts look
}


def reached(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that a text imports, anywhere in it, each with a name in it or none."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            for given in node.args[:1]:
                yield str(given.value) if isinstance(given, ast.Constant) else ast.unparse(given), ""


def foreign(text: str) -> list[str]:
    """Return the imports of a text that are neither public nor shared."""
    return [
        f"{module} {name}".strip()
        for module, name in reached(text)
        if module.split(".")[0] == "pac_wrap" and not allowed(module, name)
    ]


def allowed(module: str, name: str) -> bool:
    if f"{module}.{name}" in RESULTS:
        return True
    if module in SHARED:
        return name != "" and not name.startswith("_")
    if module.startswith("pac_wrap.engines."):
        return not name.startswith("_")
    if module == "pac_wrap" or module in PUBLIC:
        home = import_module(module)
        names = {*getattr(home, "__all__", vars(home)), "__version__"}
        return name in names and (not name.startswith("_") or name == "__version__")
    return False


def loaded_at_once(text: str) -> list[str]:
    """Return what a text imports as soon as it is read; what only types need is not."""
    waiting: list[ast.AST] = [ast.parse(text)]
    found: list[str] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [module for module, _ in reached(ast.unparse(node))]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            waiting += ast.iter_child_nodes(node)
    return found


def test_the_paper_imports_public_names_and_six_shared_modules() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PAPER.rglob("*.py")}
    assert {str(path): found for path, text in texts.items() if (found := foreign(text))} == {}
    assert len(SHARED) <= 6
    assert {module for text in texts.values() for module, _ in reached(text)} >= SHARED


def test_the_library_loads_the_paper_only_when_a_command_asks_for_it() -> None:
    for path in LIBRARY.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(module.startswith("pac_wrap_paper") for module, _ in reached(text)):
            assert path.parent == LIBRARY / "cli"
            assert not any(module.startswith("pac_wrap_paper") for module in loaded_at_once(text)), path


@pytest.mark.parametrize(
    "statement",
    [
        "from pac_wrap.method.metrics import all_exceeded",
        "from pac_wrap.base import arguments",
        "from pac_wrap.base.files import _draft",
        "from pac_wrap.validation import Integers",
        "from pac_wrap import method",
        "import pac_wrap.base.files",
        "def late():\n    from pac_wrap.ranks.memory import auc",
        "import_module('pac_wrap.report.render')",
        "importlib.import_module('pac_wrap.report.render')",
    ],
)
def test_any_other_import_is_found(statement: str) -> None:
    assert len(foreign(statement)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "from pac_wrap import Guarantee, __version__",
        "from pac_wrap.tails import upper_bound",
        "from pac_wrap.method.metrics import Metrics",
        "from pac_wrap.base.files import whole_file",
        "from pac_wrap.engines.dask import calibrate",
        "import_module(f'pac_wrap_paper.studies.{question}')",
    ],
)
def test_what_is_public_or_shared_is_not(statement: str) -> None:
    assert foreign(statement) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import pac_wrap_paper", 1),
        ("try:\n    from pac_wrap_paper import data\nexcept ImportError:\n    pass", 1),
        ("class A:\n    from pac_wrap_paper import data", 1),
        ("def late():\n    import pac_wrap_paper", 0),
        ("if TYPE_CHECKING:\n    import pac_wrap_paper", 0),
    ],
)
def test_what_is_loaded_at_once_is_told_from_what_is_loaded_late(text: str, found: int) -> None:
    assert len(loaded_at_once(text)) == found
