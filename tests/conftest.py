"""Settings that every test shares."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

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


def pytest_configure(config: pytest.Config) -> None:
    """Most tests wrap small samples on purpose; those about the warning ask for it."""
    config.addinivalue_line("filterwarnings", "ignore::pac_wrap.errors.VacuousWarning")
