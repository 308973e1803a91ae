"""A Dask cluster on this machine, as tests see it: started and closed, or a reason to skip."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def needs_dask() -> Any:
    """Return dask.dataframe, or skip."""
    reason = 'Dask is not installed: pip install "pac-wrap-ad[dask]"'
    return pytest.importorskip("dask.dataframe", reason=reason, exc_type=ImportError)


@contextmanager
def cluster(workers: int = 2) -> Iterator[Any]:
    """Start worker processes with one thread each, and close them."""
    needs_dask()
    distributed = pytest.importorskip(
        "distributed", reason='distributed is not installed: pip install "pac-wrap-ad[dask]"'
    )
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # without one the usual port is still taken
            memory_limit=None,
        ) as started,
        distributed.Client(started, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def current(client: Any) -> Iterator[Any]:
    """Make a client's workers the current scheduler; without it, threads of this process are."""
    import dask

    with client.as_current(), dask.config.set(scheduler="dask.distributed"):
        yield client
