"""The house in numbers: files, folders, the direction of imports, and the files that a call walks through.

`make house` prints them; tests/test_house.py holds them to what docs/decisions/0012-layout.md aims at.
"""

import ast
import os
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final

import duckdb
import numpy as np
from typer.testing import CliRunner

import pac_wrap

ROOT: Final = Path(pac_wrap.__file__).parent
PAPER: Final = ROOT.parent / "pac_wrap_paper"
# from the top down: a folder imports only those above it; what stands in one line may import each other
ORDER: Final = (
    "version",
    "errors",
    "base",
    "ranks",
    "tails",
    "method",
    "detectors",
    "tables",
    "streams",
    "engines",
    "series",
    "report",
    "validation scoring",
    "cli",
)
PLACE: Final = {name: place for place, names in enumerate(ORDER) for name in names.split()}
ADDRESS: Final = "__init__"
MAIN: Final = "__main__"  # what python -m runs: it stands above the order, and nothing imports it
# what the numbers of the house may not exceed; docs/decisions/0012-layout.md says why
AIMS: Final = {
    "Python files": 235,
    "paper: Python files": 52,
    "files at the root": 7,  # __main__ has to stand there
    "files in the largest folder": 18,
    "lines of the longest file": 1000,
    "files under 50 lines with one importer": 0,
    "steps of the import order": 14,
    "modules in the longest chain of imports": 28,
    "imports against the order": 0,
    "files walked by calibrate": 18,
    "files walked by verdicts": 2,
    "files walked by pipe": 29,
    "files walked by parquet with report": 68,
}
# what may run against the order, and why
EXCEPTIONS: Final = {
    ("errors", "base.text"): "an error makes foreign text harmless where it is shown",
    ("method.certificates.consistency", "method.certificates.certificate"): "only its type",
    ("method.certificates.shown", "report.words.certificate"): "a certificate shows itself in words",
    ("method.certificates.shown", "report.pages.formats"): "as a report",
    ("method.certificates.shown", "report.subject"): "of which it is the subject",
    ("method.certificates.shown", "report.figures.scores"): "and as a figure",
    ("method.kinds.consistency", "method.kinds.certificate"): "only its type",
    ("method.kinds.certificate", "report.words.kinds"): "a certificate of kinds shows itself",
    ("method.kinds.certificate", "report.pages.kinds"): "as a page",
    ("method.kinds.certificate", "report.pages.formats"): "in a format",
    ("method.kinds.certificate", "report.pages.parts"): "of pages of parts",
    ("method.kinds.classes", "report.words.kinds"): "so does one of classes",
    ("method.curves.curve", "report.words.certificate"): "so does a curve",
    ("method.groups.certificate", "report.words.groups"): "so does a certificate of groups",
    ("method.groups.certificate", "report.pages.groups"): "as a page",
    ("method.groups.certificate", "report.pages.formats"): "in a format",
    ("method.groups.certificate", "report.pages.parts"): "of pages of parts",
    ("method.curves.curve", "report.figures.ceilings"): "a curve draws itself",
}


def files(root: Path = ROOT) -> list[Path]:
    """Return the Python files of the package."""
    return sorted(root.rglob("*.py"))


def module_of(path: Path, root: Path = ROOT) -> str:
    """Return the dotted name of a file below the package; the public address is `__init__`."""
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    return name.removesuffix(".__init__")


def folder_of(module: str) -> str:
    """Return the folder, or the file at the root, that a module belongs to."""
    return module.split(".")[0]


@cache
def public_homes(root: Path = ROOT) -> dict[str, str]:
    """Return in which module each name of the public address lives."""
    tree = ast.parse((root / f"{ADDRESS}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME":
            table: dict[str, str] = ast.literal_eval(node.value)
            return {name: module for module, names in table.items() for name in names.split()}
    raise AssertionError("the public address has no table _HOME")


def _targets(node: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[str]:
    """Yield the dotted names that an import statement reaches, as seen from a package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    start = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*start, *([node.module] if node.module else [])])
    yield from (f"{base}.{alias.name}" for alias in node.names)


def imported(path: Path, root: Path = ROOT) -> set[str]:
    """Return the modules of the package that a file imports, anywhere in it."""
    homes = public_homes(root) | {"__version__": "version"}
    known = {module_of(file, root) for file in files(root)}
    package = ["pac_wrap", *path.relative_to(root).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for target in _targets(node, package):
                first, _, rest = target.partition(".")
                if first == "pac_wrap":
                    name = homes.get(rest, rest) or ADDRESS
                    found.add(name if name in known else name.rpartition(".")[0] or name)
    return found - {module_of(path, root)}


def wrong_ways(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return the pairs of importing and imported module that run against the order."""
    pairs = []
    for path in files(root):
        here = module_of(path, root)
        for other in sorted(imported(path, root)):
            ours, theirs = folder_of(here), folder_of(other)
            known = here in (ADDRESS, MAIN) or (here, other) in EXCEPTIONS
            if ours != theirs and not known and PLACE[ours] <= PLACE.get(theirs, len(ORDER)):
                pairs.append((here, other))
    return pairs


def longest_chain(root: Path = ROOT) -> list[str]:
    """Return the longest chain of modules each of which imports the next."""
    graph = {module_of(path, root): imported(path, root) for path in files(root)}
    for entrance in (ADDRESS, MAIN):
        graph.pop(entrance, None)
    for here, other in EXCEPTIONS:
        graph.get(here, set()).discard(other)

    @cache
    def below(module: str) -> tuple[str, ...]:
        longest: tuple[str, ...] = ()
        for other in graph[module] & graph.keys():
            longest = max(longest, below(other), key=len)
        return module, *longest

    longest: tuple[str, ...] = ()
    for module in graph:
        longest = max(longest, below(module), key=len)
    return list(longest)


def walked(call: Callable[[], object]) -> list[str]:
    """Return the files of the package in which a function runs during a call, after one call to warm up."""
    call()
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(ROOT)) and name.endswith(".py"):
            seen.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(Path(name).relative_to(ROOT).as_posix() for name in seen)


def walks() -> dict[str, list[str]]:
    """Return the files that usual calls walk through."""
    from pac_wrap.cli import app

    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, 500), random.normal(4, 1, 500)
    certificate = pac_wrap.calibrate(normal, anomalous)
    scores = np.concatenate([normal, anomalous])
    few, spare = scores[:100].copy(), count(1)

    def run(*words: str, text: str | None = None) -> None:
        done = CliRunner().invoke(app, words, input=text)
        assert done.exit_code == 0, done.output

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, page, saved = (os.path.join(folder, name) for name in ("s.parquet", "r.html", "c.json"))
        certificate.save(saved)
        rows = ", ".join(f"({score!r}, {int(i >= normal.size)})" for i, score in enumerate(scores.tolist()))
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT * FROM (VALUES {rows}) t(s, y)) TO '{table}'")
        lines = "s\n" + "\n".join(map(repr, scores.tolist())) + "\n"
        return {
            # other sizes each time: error budgets are kept
            "calibrate": walked(lambda: pac_wrap.calibrate(normal[next(spare) :], anomalous)),
            "verdicts": walked(lambda: certificate.verdicts(few)),
            "pipe": walked(lambda: run("decide", saved, "-", "--score", "s", text=lines)),
            "parquet with report": walked(
                lambda: run("calibrate", table, "--score", "s", "--label", "y", "--report", page)
            ),
        }


def folders(root: Path = ROOT) -> dict[str, int]:
    """Return how many Python files stand in each folder itself."""
    return dict(Counter(path.parent.relative_to(root).as_posix() for path in files(root)))


def measured() -> dict[str, int]:
    """Return the house in numbers."""
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files()}
    importers = Counter(other for path in files() for other in imported(path))
    lonely = [path for path, size in sizes.items() if size < 50 and importers[module_of(path)] == 1]
    return {
        "Python files": len(sizes),
        "paper: Python files": len(files(PAPER)),
        "paper: lines": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files(PAPER)),
        "lines": sum(sizes.values()),
        "files at the root": folders()["."],
        "files in the largest folder": max(folders().values()),
        "lines of the longest file": max(sizes.values()),
        "files under 50 lines with one importer": sum(path.name != "__init__.py" for path in lonely),
        "steps of the import order": len(ORDER),
        "modules in the longest chain of imports": len(longest_chain()),
        "imports against the order": len(wrong_ways()),
        **{f"files walked by {name}": len(found) for name, found in walks().items()},
    }


def first_line(path: Path) -> str:
    """Return the first line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def house_map() -> str:
    """Return the map of the house for CONTRIBUTING.md: a row for each folder, in the order of imports."""
    rows = ["| folder | what lives there | its files |", "|---|---|---|"]
    found = sorted(
        (path.parent for path in files() if path.name == "__init__.py" and path.parent != ROOT),
        key=lambda folder: (PLACE[folder_of(module_of(folder))], folder),
    )
    for folder in found:
        names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
        inside = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| `{folder.relative_to(ROOT)}/` | {first_line(folder / '__init__.py')} | {inside} |")
    return "\n".join(rows) + "\n"


def with_map(text: str) -> str:
    """Return a page with the map of the house between its two marks drawn anew."""
    before, start, rest = text.partition("<!-- the house -->\n")
    _, end, after = rest.partition("<!-- end of the house -->\n")
    assert start, "the page has no place for the map"
    assert end, "the place for the map has no end"
    return f"{before}{start}{house_map()}{end}{after}"


def main() -> None:
    """Print the house in numbers, folder by folder; with --write, draw its map in CONTRIBUTING.md."""
    if "--write" in sys.argv:
        page = ROOT.parents[1] / "CONTRIBUTING.md"
        page.write_text(with_map(page.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    for name, number in measured().items():
        print(f"{name:<42} {number:>7,}")
    print()
    for folder, number in sorted(folders().items()):
        print(f"{folder:<42} {number:>7,}")
    print("\nlongest chain: " + " > ".join(longest_chain()))


if __name__ == "__main__":
    main()
