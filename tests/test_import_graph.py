"""Imports run in one direction, from the errors to the command line."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pac_wrap

ROOT = Path(pac_wrap.__file__).parent
ADDRESS = "__init__"

# from the bottom up; names that share a step may not import each other
STEPS = (
    ("version", "foreign", "assumptions"),
    ("errors", "cores"),
    ("inputs", "columns", "numerals", "textlines"),
    ("numpy_files",),
    ("kernels",),
    ("tail", "hypergeometric", "precision"),
    ("binomial",),
    ("guarantee",),
    ("order", "steps"),
    ("thresholds",),
    ("relaxation",),
    ("scratch",),
    ("files", "codec", "sampling", "consistency"),
    ("certificate",),
    ("calibration", "stream"),
    ("chunks",),
    ("metrics", "sql", "sources", "comparison", "baselines"),
    ("labels",),
    ("validation",),
    ("timeseries",),
    ("csvform", "database", "batches", "refusals", "outputs"),
    ("csvfiles",),
    ("csvtables", "lines"),
    ("views",),
    ("tables",),
    ("staging",),
    ("scores", "rows", "traces"),
    ("steadiness", "overlap"),
    ("estimator", "detectors"),
    ("engines",),
    ("datasets",),
    ("experiments",),
    ("demo",),
    ("report",),
    ("cli",),
    ("__main__",),
)
PLACE = {name: place for place, names in enumerate(STEPS) for name in names}


def public_homes() -> dict[str, str]:
    """Return in which module each name of the public address lives."""
    tree = ast.parse((ROOT / f"{ADDRESS}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME":
            table: dict[str, str] = ast.literal_eval(node.value)
            return {name: module for module, names in table.items() for name in names.split()}
    raise AssertionError("the public address has no table _HOME")


def part(path: Path) -> str:
    """Return the module a file belongs to; a package counts as one."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def targets(node: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[str]:
    """Return the dotted names an import statement reaches, as seen from a package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    start = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*start, *([node.module] if node.module else [])])
    yield from (f"{base}.{alias.name}" for alias in node.names)


def parts_imported(path: Path) -> set[str]:
    homes = public_homes() | {"__version__": "version"}
    package = ["pac_wrap", *path.relative_to(ROOT).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for target in targets(node, package):
                names = target.split(".")
                if names[0] == "pac_wrap":
                    name = names[1] if len(names) > 1 else ADDRESS
                    found.add(homes.get(name, name))
    return found - {part(path)}


FILES = sorted(path for path in ROOT.rglob("*.py") if part(path) != ADDRESS)


def test_there_is_something_to_check() -> None:
    assert {part(path) for path in FILES} >= {"errors", "certificate", "estimator", "scores"}
    assert parts_imported(ROOT / "certificate.py") >= {"consistency", "codec", "files", "version"}
    assert parts_imported(ROOT / "foreign.py") == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_lies_below_it(path: Path) -> None:
    here = part(path)
    assert here in PLACE, f"{here} has no place yet: give it one in STEPS"
    for imported in sorted(parts_imported(path)):
        assert imported in PLACE, f"{here} imports {imported}, which has no place in STEPS"
        assert PLACE[imported] < PLACE[here], f"{here} may not import {imported}"


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        ("import pac_wrap.codec", {"codec"}),
        ("import pac_wrap", {ADDRESS}),
        ("from pac_wrap.codec import decode, encode", {"codec"}),
        ("from pac_wrap import codec", {"codec"}),
        ("from pac_wrap import PACWrap, __version__", {"estimator", "version"}),
        ("from . import codec", {"codec"}),
        ("from .codec import decode", {"codec"}),
        ("def late():\n    from pac_wrap.cli import main", {"cli"}),
        ("import numpy.typing, pac_wrapper", set()),
    ],
)
def test_every_form_of_import_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, reached: set[str]
) -> None:
    (tmp_path / f"{ADDRESS}.py").write_text((ROOT / f"{ADDRESS}.py").read_text(encoding="utf-8"))
    (tmp_path / "module.py").write_text(statement)
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert parts_imported(tmp_path / "module.py") == reached


def test_imports_within_a_package_reach_upwards_by_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / f"{ADDRESS}.py").write_text("_HOME = {}")
    inner = tmp_path / "report" / "text.py"
    inner.write_text("from ..codec import decode\nfrom . import other\nfrom .other import name\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert parts_imported(inner) == {"codec"}
