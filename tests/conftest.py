"""Settings that every test shares."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import flushing as switches
from pac_wrap.kernels import kernels
from pac_wrap.kernels.native import library

# the same examples on every run: a failure is a change in the code, never luck
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


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


@pytest.fixture(params=["C", "torch"])
def flushing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Yield what makes this processor take subnormal numbers for zeros until the test ends."""
    switch = switches.in_c(tmp_path) if request.param == "C" else switches.in_torch()

    def flush() -> None:
        if not switch(True):
            pytest.skip("this processor cannot flush subnormal numbers to zero")

    yield flush
    switch(False)


def pytest_configure(config: pytest.Config) -> None:
    """Most tests wrap small samples on purpose; those about the warning ask for it."""
    config.addinivalue_line("filterwarnings", "ignore::pac_wrap.errors.VacuousWarning")
