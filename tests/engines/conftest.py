"""What the tests of the engines share: one cluster of Dask."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.daskcluster import cluster


@pytest.fixture(scope="session")
def workers() -> Iterator[Any]:
    """Yield a client of a process that works for it, started once; slow tests have several such processes."""
    with cluster(1) as started:
        yield started
