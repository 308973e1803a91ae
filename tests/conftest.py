"""Settings that every test shares."""

import gc
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

# where processes share the cores, the threads of one would spin while they wait for those of another;
# read when NumPy and scikit-learn are imported, so before everything else
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# PyOD compiles loops of a few steps for seconds; in Python they give the same scores at once
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

import pytest
from hypothesis import HealthCheck, settings

from pac_wrap.ranks.kernels import kernels, library
from pac_wrap.tables.files import csv_files
from support import flushing as switches
from support import postgres, processes
from support.examples import FEW, MANY

# the same examples on every run, however long they take: a failure is a change in the code, never luck
for name, number in (("few", FEW), ("many", MANY)):
    settings.register_profile(
        name,
        max_examples=number,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("few")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """Yield a connection to a PostgreSQL server, which is started once; what is done there is rolled back."""
    with postgres.server() as connection:
        yield connection


LEFT_OUT = pytest.StashKey[int]()
SPENT = pytest.StashKey[float]()


@pytest.fixture(scope="module", params=["native", "plain"])
def each_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a module once with the passes in C and once with those in NumPy."""
    if request.param == "native" and not library().exists():
        pytest.skip("the kernels were not compiled; a C compiler at install time is needed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAC_WRAP_KERNELS", request.param)
        kernels.cache_clear()
        yield
    kernels.cache_clear()


@pytest.fixture(scope="module", params=["native", "plain"])
def each_survey(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module once with CSV files looked at in C and once without."""
    if request.param == "native" and not csv_files.library().exists():
        pytest.skip("cells.c was not compiled; a C compiler at install time is needed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAC_WRAP_KERNELS", request.param if request.param == "plain" else "")
        csv_files.functions.cache_clear()
        yield request.param
    csv_files.functions.cache_clear()


@pytest.fixture(params=["C", "torch"])
def flushing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Yield what makes this processor take subnormal numbers for zeros until the test ends."""
    switch = switches.in_c(tmp_path) if request.param == "C" else switches.in_torch()

    def flush() -> None:
        if not switch(True):
            pytest.skip("this processor cannot flush subnormal numbers to zero")

    yield flush
    switch(False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run fail that takes too much processor time."""
    parser.addoption("--minutes", type=float, help="the most minutes of processor time that a run may take")


def pytest_configure(config: pytest.Config) -> None:
    """Most tests wrap small samples on purpose; those about the warning ask for it."""
    config.addinivalue_line("filterwarnings", "ignore::pac_wrap.errors.VacuousWarning")
    config.stash[LEFT_OUT] = 0
    if not hasattr(config, "workerinput"):
        processes.adopt_orphans()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while modules and tests only become more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark what runs in a browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the slow tests that this process leaves out."""
    for item in items:
        item.config.stash[LEFT_OUT] += item.get_closest_marker("slow") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Hand the count to the process that reports, which adds up the time once its workers have ended."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]
        return (yield)
    yield
    spent = session.config.stash[SPENT] = processes.minutes_spent()
    most = session.config.getoption("--minutes")
    if most is not None and spent > most and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of a worker; every worker leaves out the same tests."""
    count = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[LEFT_OUT] = max(count, node.config.stash[LEFT_OUT])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last lines what the run took, how many slow tests were left out, and how to run them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    if (spent := config.stash.get(SPENT, None)) is not None:
        most = config.getoption("--minutes")
        over = most is not None and spent > most
        allowed = "" if most is None else f"; at most {most:g} are allowed{', so this run fails' * over}"
        reporter.write_line(f"{spent:.1f} minutes of processor time{allowed}")
    if left_out := config.stash[LEFT_OUT]:
        reporter.write_line(
            f"{left_out:,} slow tests were left out: make test-slow runs them, make test-all everything"
        )
