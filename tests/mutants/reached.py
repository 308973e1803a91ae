"""Which tests of the quick suite reach a line, and what each costs: one run of the suite with coverage.

Also the pytest plugin of that run, which measures tests in processor time, since a machine may be busy.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree
from typing import NamedTuple

import pytest
from coverage import CoverageData

from mutants.change import FOLDERS

TREE = Path(__file__).parents[2]
_TIMES = "MUTANTS_TIMES"
_SETTINGS = "[run]\nbranch = False\ncore = ctrace\n"


def copy_tree(copy: Path) -> None:
    """Copy this work tree, compiled libraries included, to where its sources may be changed."""
    rmtree(copy, ignore_errors=True)
    copytree(TREE, copy, symlinks=True, ignore=ignore_patterns(".git", ".venv*", ".*_cache", "_build"))


def environment(copy: Path) -> dict[str, str]:
    """Return the environment in which a copy is imported, by the processes that its tests start as well."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **threads, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy / 'tests'}"}


class Reached(NamedTuple):
    """The tests of each line, and the processor time of each test."""

    # of a file and a line, both the tests that ran it and, with a slash, the files whose fixtures did
    tests: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]

    def of(self, file: str, line: int) -> list[str]:
        """Return the tests that reach a line, and those that may share a fixture that reaches it."""
        known = set(self.tests.get(file, {}).get(str(line), []))
        return [test for test in self.seconds if {test, test.partition("::")[0] + "/"} & known]


def read(scratch: Path) -> Reached:
    """Return what a run with coverage has found."""
    return Reached(*json.loads((scratch / "reached.json").read_text()))


def reach(scratch: Path, processes: int) -> None:
    """Run the quick suite once, unless an earlier call did, and keep which tests reach which lines."""
    scratch.mkdir(exist_ok=True)
    if (scratch / "reached.json").exists():
        return
    copy, data, settings = scratch / "map", scratch / "coverage", scratch / "coveragerc"
    copy_tree(copy)
    settings.write_text(_SETTINGS)
    words = ["-q", "-m", "not slow", "-n", str(processes), "--dist", "worksteal", "-p", "no:cacheprovider"]
    words += ["-p", "mutants.reached", "--cov-context=test", "--cov-report=", f"--cov-config={settings}"]
    words += [f"--cov={copy / 'src' / 'pac_wrap' / folder}" for folder in FOLDERS]
    variables = {**environment(copy), "COVERAGE_FILE": str(data), _TIMES: str(scratch)}
    with (scratch / "map.log").open("w") as log:
        command = [sys.executable, "-m", "pytest", *words]
        subprocess.run(command, cwd=copy, env=variables, stdout=log, stderr=log, check=False)
    seconds: dict[str, float] = {}
    for part in sorted(scratch.glob("times-*.json")):
        seconds |= json.loads(part.read_text())
    kept = CoverageData(str(data))
    kept.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for file in kept.measured_files():
        found = tests[str(Path(file).relative_to(copy))] = {}
        for line, contexts in kept.contexts_by_lineno(file).items():
            named = [one.rpartition("|")[::2] for one in contexts]
            found[line] = [
                test if phase == "run" else test.partition("::")[0] + "/"
                for test, phase in named
                if test in seconds
            ]
    (scratch / "reached.json").write_text(json.dumps([tests, seconds]))


class _Times:
    """Takes the processor time of each test that passes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # what is computed once for all tests is computed again, so that each of them is seen to reach it
        for name, module in list(sys.modules.items()):
            if name.startswith("pac_wrap."):
                for value in vars(module).values():
                    if isinstance(value, _lru_cache_wrapper):
                        value.cache_clear()
        before = sum(os.times()[:4])
        outcome = yield
        self.seconds[item.nodeid] = round(sum(os.times()[:4]) - before, 3)
        return outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        kept = {test: t for test, t in self.seconds.items() if test not in self.failed}
        Path(os.environ[_TIMES], f"times-{os.getpid()}.json").write_text(json.dumps(kept))


def pytest_configure(config: pytest.Config) -> None:
    """Measure the tests of the process that runs them."""
    if _TIMES in os.environ and (
        hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    ):
        config.pluginmanager.register(_Times())
