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
from typing import Any, Final, NamedTuple

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


class Aim(NamedTuple):
    """What a number of the house is to come down to, and what it may not exceed on the way there."""

    budget: int | None  # None: nothing was planned
    ceiling: int  # it may fall, and never rises


# docs/decisions/0012-layout.md says why
AIMS: Final = {
    "library: files": Aim(155, 155),
    "library: lines": Aim(34_900, 34_972),
    "paper: files": Aim(35, 35),
    "paper: lines": Aim(8_500, 8_500),
    "lines of the longest file": Aim(1_000, 1_000),
    "files at the root": Aim(None, 6),  # __main__ has to stand there
    "files in the largest folder": Aim(None, 12),
    "files under 50 lines with one importer": Aim(0, 0),
    "steps of the import order": Aim(14, 14),
    "modules in the longest chain of imports": Aim(16, 16),
    "imports against the order": Aim(0, 0),
    "files walked by calibrate": Aim(10, 10),
    "files walked by verdicts": Aim(2, 2),
    "files walked by pipe": Aim(None, 18),
    "files walked by Parquet with report": Aim(40, 40),
    "files walked by decide on Parquet": Aim(22, 22),
    "calls made by Parquet with report": Aim(30_000, 30_000),
    "checks of one number by calibrate": Aim(1, 1),
    "public names at the top": Aim(53, 53),
    "functions of the command line with more than 8 parameters": Aim(0, 0),
}
# what may run against the order, and why
EXCEPTIONS: Final = {
    ("method.traffic.calibrate", "method.groups.calibrate"): "the entrance of traffic hands on its groups",
    ("method.certificate", "method.verify"): "a certificate is made again and compared",
    ("method.calibrate", "method.kinds"): "the entrance hands on scores that come by kind",
    ("method.calibrate", "method.groups.calibrate"): "and by group",
    ("method.calibrate", "method.groups.units"): "and in units",
    ("method.certificate", "method.groups.units"): "and is measured over units",
    ("method.groups.certificate", "method.verify"): "so is one of groups",
    ("method.classes", "method.verify"): "so is one of classes",
    ("method.curves.curve", "method.verify"): "so is a curve",
    ("errors", "base.text"): "an error makes foreign text harmless where it is shown",
    ("method.certificate", "report.render"): "a certificate writes its report",
    ("method.certificate", "report.sentences"): "says why its thresholds lie as they do",
    ("method.certificate", "report.figures"): "and draws itself",
    ("method.groups.certificate", "report.render"): "so does one of groups",
    ("method.groups.certificate", "report.groups"): "and says which have too few labels",
    ("method.curves.curve", "report.figures"): "a curve draws itself",
    ("method.provenance", "report.render"): "what is printed is its account",
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
    return {
        alias.name: (node.module or "").removeprefix("pac_wrap.")
        for block in tree.body
        if isinstance(block, ast.If) and _is_for_types(block)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _targets(node: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[str]:
    """Yield the dotted names that an import statement reaches, as seen from a package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    start = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*start, *([node.module] if node.module else [])])
    yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def known_modules(root: Path) -> frozenset[str]:
    """Return the modules of the package."""
    return frozenset(module_of(path, root) for path in files(root))


def imported(path: Path, root: Path = ROOT, *, types: bool = True) -> set[str]:
    """Return the modules of the package that a file imports, anywhere in it; those for types alone too."""
    every, loaded = _imported(path, root)
    return set(every if types else loaded)


@cache
def _imported(path: Path, root: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the modules that a file imports, and those of them that are not for types alone."""
    homes = public_homes(root) | {"__version__": "version"}
    known, here = known_modules(root), module_of(path, root)
    package = ["pac_wrap", *path.relative_to(root).parts[:-1]]
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    checked = [node for node in nodes if isinstance(node, ast.If) and _is_for_types(node)]
    passed = {one for node in checked for part in node.body for one in ast.walk(part)}
    every: set[str] = set()
    loaded: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for target in _targets(node, package):
                first, _, rest = target.partition(".")
                if first == "pac_wrap":
                    name = homes.get(rest, rest) or ADDRESS
                    name = name if name in known else name.rpartition(".")[0] or name
                    every.add(name)
                    if node not in passed:
                        loaded.add(name)
    return frozenset(every - {here}), frozenset(loaded - {here})


def _is_for_types(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


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
    """Return the longest chain of modules each of which imports the next, not for its types alone."""
    graph = {module_of(path, root): imported(path, root, types=False) for path in files(root)}
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


class Step(NamedTuple):
    """A call of a function of the package; of one that checks a number, the number too."""

    file: str
    function: str
    checked: object


def traced(call: Callable[[], object]) -> list[Step]:
    """Return the calls of functions of the package that a call makes, after one call to warm up."""
    call()
    found: list[Step] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(ROOT)) and file.endswith(".py"):
            function = frame.f_code.co_name
            checked = frame.f_locals.get("value") if function.startswith("check_") else None
            found.append(Step(file, function, checked))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def walked(steps: list[Step]) -> list[str]:
    """Return the files that some calls are in."""
    return sorted({Path(step.file).relative_to(ROOT).as_posix() for step in steps})


def most_checked(steps: list[Step]) -> int:
    """Return how often the number is checked that is checked most often."""
    numbers = Counter(step.checked for step in steps if isinstance(step.checked, float))
    return max(numbers.values(), default=0)


def walks() -> dict[str, list[Step]]:
    """Return the calls of functions that usual calls make."""
    from pac_wrap.cli.commands import app

    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, 500), random.normal(4, 1, 500)
    certificate = pac_wrap.calibrate(normal, anomalous)
    scores = np.concatenate([normal, anomalous])
    few, spare = scores[:100].copy(), count(1)

    def run(*words: str, text: str | None = None) -> None:
        done = CliRunner().invoke(app, words, input=text)
        assert done.exit_code == 0, done.output

    def calibrate() -> None:
        # other numbers and sizes each time: what follows from them is kept
        fresh = next(spare)
        four = (number + fresh / 1e6 for number in (0.04, 0.05, 0.06, 0.07))
        pac_wrap.calibrate(normal[fresh:], anomalous, pac_wrap.Guarantee(*four))

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ("s.parquet", "r.html", "c.json", "v.parquet")
        table, page, saved, decided = (os.path.join(folder, name) for name in names)
        certificate.save(saved)
        rows = ", ".join(f"({score!r}, {int(i >= normal.size)})" for i, score in enumerate(scores.tolist()))
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT * FROM (VALUES {rows}) t(s, y)) TO '{table}'")
        lines = "s\n" + "\n".join(map(repr, scores.tolist())) + "\n"
        return {
            "calibrate": traced(calibrate),
            "verdicts": traced(lambda: certificate.verdicts(few)),
            "pipe": traced(lambda: run("decide", saved, "-", "--score", "s", text=lines)),
            "Parquet with report": traced(
                lambda: run("calibrate", table, "--score", "s", "--label", "y", "--report", page)
            ),
            "decide on Parquet": traced(lambda: run("decide", saved, table, "--score", "s", "-o", decided)),
        }


def long_functions() -> list[str]:
    """Return the functions of the command line that Typer does not read with more than 8 parameters."""
    from pac_wrap.cli.commands import app

    read = {command.callback.__name__ for command in app.registered_commands if command.callback is not None}
    found = []
    for path in files(ROOT / "cli"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name not in read:
                given = node.args
                if len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) > 8:
                    found.append(f"{module_of(path)}.{node.name}")
    return found


def folders(root: Path = ROOT) -> dict[str, int]:
    """Return how many Python files stand in each folder itself."""
    return dict(Counter(path.parent.relative_to(root).as_posix() for path in files(root)))


def lines_of(root: Path) -> dict[Path, int]:
    """Return how many lines each Python file below a folder has."""
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files(root)}


def measured() -> dict[str, int]:
    """Return the house in numbers."""
    sizes, paper, steps = lines_of(ROOT), lines_of(PAPER), walks()
    importers = Counter(other for path in files() for other in imported(path))
    lonely = [path for path, size in sizes.items() if size < 50 and importers[module_of(path)] == 1]
    return {
        "library: files": len(sizes),
        "library: lines": sum(sizes.values()),
        "paper: files": len(paper),
        "paper: lines": sum(paper.values()),
        "lines of the longest file": max(sizes.values()),
        "files at the root": folders()["."],
        "files in the largest folder": max(folders().values()),
        "files under 50 lines with one importer": sum(path.name != "__init__.py" for path in lonely),
        "steps of the import order": len(ORDER),
        "modules in the longest chain of imports": len(longest_chain()),
        "imports against the order": len(wrong_ways()),
        **{f"files walked by {name}": len(walked(found)) for name, found in steps.items()},
        "calls made by Parquet with report": len(steps["Parquet with report"]),
        "checks of one number by calibrate": most_checked(steps["calibrate"]),
        "public names at the top": len(public_homes()),
        "functions of the command line with more than 8 parameters": len(long_functions()),
    }


def table_of(found: dict[str, int]) -> Iterator[str]:
    """Yield a line for each number of the house, beside what it may not exceed and its budget."""
    yield f"{'':<58} {'now':>7} {'ceiling':>8} {'budget':>7}"
    for name, number in found.items():
        budget, ceiling = AIMS[name]
        yield f"{name:<58} {number:>7,} {ceiling:>8,} {'' if budget is None else f'{budget:,}':>7}".rstrip()


def first_line(path: Path) -> str:
    """Return the first line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def house_map() -> str:
    """Return the map of the house for CONTRIBUTING.md: a row for each folder, in the order of imports."""
    rows = ["| folder | contents | its files |", "|---|---|---|"]
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
    print(*table_of(measured()), "", sep="\n")
    for folder, number in sorted(folders().items()):
        print(f"{folder:<42} {number:>7,}")
    print("\nlongest chain: " + " > ".join(longest_chain()))


if __name__ == "__main__":
    main()
