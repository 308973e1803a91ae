"""What the tests of the command line share."""

from functools import partial

import pytest

from support import databases


@pytest.fixture(autouse=True)
def shared_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands of this process share databases: tests/tables closes them off, as real commands do."""
    databases.lend(monkeypatch)


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demo train and check on a few points: one real command does so on all of them."""
    from pac_wrap.cli import demo  # it loads scikit-learn

    small = partial(demo.run_demo, n_train=2_000, n_calibration=500, n_test=4_000)
    monkeypatch.setattr(demo, "run_demo", small)
