"""Settings that every test shares."""

import pytest
from hypothesis import settings

# the same examples on every run: a failure is a change in the code, never luck
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Most tests wrap small samples on purpose; those about the warning ask for it."""
    config.addinivalue_line("filterwarnings", "ignore::pac_wrap.errors.VacuousWarning")
