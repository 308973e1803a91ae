"""Run the tests that reach a mutant, in forks of a process that has imported the libraries."""

import importlib
import os
import resource
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest
from hypothesis import Phase, settings

from mutants.change import apply, mutants_of
from mutants.listed import Listed
from mutants.reached import copy_tree, environment, read

# what costs most to import; never the package itself, which a fork imports with the mutant in it
_LIBRARIES: Final = (
    *("_pytest.assertion.rewrite", "hypothesis", "numpy", "pandas", "polars", "pyarrow.parquet", "duckdb"),
    *("scipy.special", "scipy.stats", "sklearn.ensemble", "sklearn.svm", "typer.testing", "rich", "jinja2"),
)
# seconds of processor time: of tests in one fork, of collecting a file; and how much longer a mutant may take
_ROUND: Final = 4.0
_COLLECTING: Final = 0.3
_PATIENCE: Final = 4


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
        known = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(known, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)


def rounds(file: str, tests: Iterable[str], seconds: dict[str, float], budget: float) -> list[list[str]]:
    """Return the tests within the budget, in rounds: those of its own folder first, then cheap ones."""
    own = str(Path(file).parent).replace("src/pac_wrap", "tests", 1)
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        files[test.partition("::")[0]].append(test)
    cost = {name: sum(seconds[test] for test in found) for name, found in files.items()}
    found: list[list[str]] = [[]]
    spent = full = 0.0
    for name in sorted(files, key=lambda name: (str(Path(name).parent) != own, cost[name], name)):
        spent += _COLLECTING
        for test in files[name]:
            if spent + seconds[test] <= budget:
                found[-1].append(test)
                spent += seconds[test]
        if spent - full > _ROUND:
            found.append([])
            full = spent
    return [one for one in found if one]


def _tests(copy: Path, tests: Sequence[str], limit: int) -> None:
    """Run tests in a process of its own, which ends with pytest's code."""
    os.setsid()
    os.chdir(copy)
    os.environ.update(environment(copy))
    sys.path.insert(0, str(copy / "src"))
    log = os.open(copy.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    words = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=line", "--no-header"]
    # the libraries above are imported already
    words += ["-Wignore::pytest.PytestAssertRewriteWarning", f"--basetemp={copy.with_suffix('.tmp')}"]
    words += dict.fromkeys(test.partition("::")[0] for test in tests)
    os._exit(pytest.main(words, plugins=[_Chosen(tests, copy.with_suffix(".failed"))]))


class _Runner:
    """Tries mutants in a copy of a tree of its own."""

    def __init__(self, scratch: Path, budget: float) -> None:
        for name in _LIBRARIES:
            importlib.import_module(name)
        self.copy, self.reached, self.budget = scratch / f"copy-{os.getpid()}", read(scratch), budget
        copy_tree(self.copy)
        # every fork reads what an earlier one compiled
        sys.dont_write_bytecode = False
        self.written = 0

    def run(self, tests: Sequence[str], file: Path, source: bytes) -> tuple[str, str]:
        """Return the outcome of tests with another source in a file, and the test that failed."""
        original = file.read_bytes()
        self.write(file, source)
        failed = self.copy.with_suffix(".failed")
        failed.unlink(missing_ok=True)
        limit = int(10 + _PATIENCE * sum(self.reached.seconds[test] for test in tests))
        child = get_context("fork").Process(target=_tests, args=(self.copy, tests, limit))
        child.start()
        # a process that waits uses no processor time, and the machine may be busy
        child.join(10 * limit)
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.join()
        self.write(file, original)
        if child.exitcode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return "survived", ""
        late = child.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        return "time" if late else "killed", failed.read_text() if failed.exists() else ""

    def write(self, file: Path, source: bytes) -> None:
        """Write a source with a new time, by which Python sees that its bytecode is old."""
        self.written += 1
        file.write_bytes(source)
        os.utime(file, (1_000_000_000 + self.written,) * 2)

    def attempt(self, one: Listed) -> Listed:
        file = self.copy / one.mutant.file
        source = file.read_bytes()
        mutated, seconds = apply(one.mutant, source), self.reached.seconds
        tests = self.reached.of(one.mutant.file, mutants_of(one.mutant.file, source)[one.mutant].line)
        first = [[one.by]] if one.by in seconds else []
        survived = "not reached"
        for left in first + rounds(one.mutant.file, tests, seconds, self.budget):
            while left:
                now, test = self.run(left, file, mutated)
                if now == "survived":
                    survived = now
                    break
                if self.run([test] if test else left, file, source)[0] == "survived":
                    return one._replace(now=now, by=test or one.by)
                # a test that fails without a mutant as well says nothing
                left = [other for other in left if other != test] if test else []
        return one._replace(now=survived)


_runner = cache(_Runner)


def attempt(scratch: Path, budget: float, one: Listed) -> Listed:
    """Return what the tests that reach a mutant say to it: `killed`, `time`, `survived`, `not reached`.

    The test that killed it last is run first.
    """
    return _runner(scratch, budget).attempt(one)
