"""Run the tests that reach a mutant, in forks of a process that has imported the libraries."""

import importlib
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import Phase, settings

from mutants.change import Mutant, apply
from mutants.reached import copy_tree, environment

# what costs most to import; never the package itself, which a fork imports with the mutant in it
_LIBRARIES: Final = (
    *("_pytest.assertion.rewrite", "hypothesis", "numpy", "pandas", "polars", "pyarrow.parquet", "duckdb"),
    *("scipy.special", "scipy.stats", "sklearn.ensemble", "sklearn.svm", "typer.testing", "rich", "jinja2"),
)
# seconds of processor time: of tests in one fork, of collecting a file; and how much longer a mutant may take
_ROUND: Final = 4.0
_COLLECTING: Final = 0.3
_PATIENCE: Final = 4


# a mutant, the test that killed it last, and all tests that reach it
Task = tuple[Mutant, str, list[str]]


class Outcome(NamedTuple):
    """`killed`, `time` (also killed), `survived` or `not reached`; the test that killed; how many ran."""

    outcome: str
    test: str = ""
    tests: int = 0


class _Chosen:
    """Runs the chosen tests only, in the order in which they were chosen, and writes which failed."""

    def __init__(self, tests: Sequence[str], failed: Path) -> None:
        self.order, self.failed = {test: n for n, test in enumerate(tests)}, failed

    def pytest_sessionstart(self) -> None:
        # a smaller counterexample kills no better
        found = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]
        settings.register_profile("mutants", settings.default, phases=found)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)


def rounds(file: str, tests: Iterable[str], seconds: dict[str, float], budget: float) -> list[list[str]]:
    """Return the tests within the budget, in rounds: those of its own folder first, then cheap ones."""
    own = str(Path(file).parent).replace("src/pac_wrap", "tests", 1)
    files: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        files[test.partition("::")[0]].append(test)
    cost = {name: sum(seconds[test] for test in found) + _COLLECTING for name, found in files.items()}
    found: list[list[str]] = []
    spent, room = 0.0, 0.0
    for name in sorted(files, key=lambda name: (str(Path(name).parent) != own, cost[name], name)):
        chosen = []
        spent += _COLLECTING
        room -= _COLLECTING
        for test in sorted(files[name], key=lambda test: (seconds[test], test)):
            if spent + seconds[test] <= budget:
                chosen.append(test)
                spent += seconds[test]
        if chosen and room <= 0.0:
            found.append([])
            room = _ROUND
        if chosen:
            found[-1] += chosen
            room -= sum(seconds[test] for test in chosen)
    return found


def _run(copy: Path, tests: Sequence[str], limit: float) -> Outcome:
    """Run tests in a fork and return what happened."""
    failed = copy.with_suffix(".failed")
    failed.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(copy)
        os.environ.update(environment(copy))
        sys.path[:0] = [str(copy / "src")]
        log = os.open(copy.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        quiet = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=line", "--no-header"]
        # the libraries above are imported already
        quiet.append("-Wignore::pytest.PytestAssertRewriteWarning")
        code = pytest.main(
            [*quiet, f"--basetemp={copy.with_suffix('.tmp')}", *files], plugins=[_Chosen(tests, failed)]
        )
        os._exit(code)
    # a process that waits uses no processor time, and the machine may be busy
    end = time.monotonic() + 10 * limit
    while not (found := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not found[0]:
        os.waitpid(child, 0)
        return Outcome("time")
    if os.WIFSIGNALED(found[1]):
        late = os.WTERMSIG(found[1]) in (signal.SIGXCPU, signal.SIGKILL)
        return Outcome("time" if late else "killed", "the process")
    if os.WEXITSTATUS(found[1]) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return Outcome("survived")
    return Outcome("killed", failed.read_text() if failed.exists() else "collecting")


class Runner:
    """Tries mutants in a copy of a tree of its own."""

    def __init__(self, tree: Path, copy: Path, seconds: dict[str, float], budget: float) -> None:
        for name in _LIBRARIES:
            importlib.import_module(name)
        copy_tree(tree, copy)
        # every fork reads what an earlier one compiled
        sys.dont_write_bytecode = False
        self.copy, self.seconds, self.budget = copy, seconds, budget
        self.sound: dict[str, bool] = {}
        self.tried = 0

    def write(self, file: str, source: bytes) -> None:
        """Write a source file with a new time, by which Python sees that its bytecode is old."""
        self.tried += 1
        (self.copy / file).write_bytes(source)
        os.utime(self.copy / file, (1_000_000_000 + self.tried,) * 2)

    def is_sound(self, tests: Sequence[str], test: str, limit: float) -> bool:
        """Return whether the test that killed, or the whole round, passes without a mutant."""
        key = test if "::" in test else "\n".join(tests)
        if key not in self.sound:
            chosen = [test] if "::" in test else tests
            self.sound[key] = _run(self.copy, chosen, limit).outcome == "survived"
        return self.sound[key]

    def attempt(self, mutant: Mutant, by: str, tests: Sequence[str]) -> Outcome:
        """Return what the tests that reach a mutant say to it; the one that killed it last is run first."""
        source = (self.copy / mutant.file).read_bytes()
        count = 0
        first = [[by]] if by in self.seconds else []
        for chosen in first + rounds(mutant.file, tests, self.seconds, self.budget):
            left = list(chosen)
            limit = 10 + _PATIENCE * sum(self.seconds[test] for test in chosen)
            while left:
                self.write(mutant.file, apply(mutant, source))
                outcome = _run(self.copy, left, limit)
                self.write(mutant.file, source)
                if outcome.outcome == "survived":
                    count += len(left)
                    break
                if self.is_sound(left, outcome.test, limit):
                    return outcome._replace(tests=count + len(left))
                # this test fails without a mutant as well, so it says nothing
                left = [test for test in left if test != outcome.test] if "::" in outcome.test else []
        return Outcome("survived" if count else "not reached", tests=count)


_runners: list[Runner] = []


def _start(tree: Path, scratch: Path, seconds: dict[str, float], budget: float) -> None:
    _runners.append(Runner(tree, scratch / f"copy-{os.getpid()}", seconds, budget))


def _attempt(task: Task) -> tuple[Mutant, Outcome]:
    return task[0], _runners[0].attempt(*task)


def try_all(
    tree: Path,
    scratch: Path,
    tasks: Sequence[Task],
    seconds: dict[str, float],
    budget: float,
    processes: int,
) -> Iterable[tuple[Mutant, Outcome]]:
    """Yield what happens to the mutant of each task, as soon as it is known."""
    with get_context("spawn").Pool(processes, _start, (tree, scratch, seconds, budget)) as pool:
        yield from pool.imap_unordered(_attempt, tasks)
