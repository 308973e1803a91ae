"""A task for every partition of a Dask frame, and a tree that adds up what comes back."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, Final
from uuid import uuid4

from pac_wrap.engines.packages import import_package

# so many parts are added up in one step of the tree
_TOGETHER: Final = 8


def partitions_of(df: Any) -> tuple[list[Any], dict[Any, Any]]:
    """Return the keys of a frame's partitions, and the graph that makes them; see Dask's collections."""
    # tuning would put small files together, and a partition's number would no longer be the one a user sees
    with import_package("dask", "dask").config.set({"optimization.tune.active": False}):
        frame = df.optimize()
    return list(frame.__dask_keys__()), dict(frame.__dask_graph__())


def run_parts(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
    """Return the sum of task(number, partition) over all partitions, added up on the workers in a tree."""
    delayed = import_package("dask.delayed", "dask")
    name = f"pac-wrap-{uuid4().hex}"
    # the task has a key of its own, so that it travels once to each worker
    added: dict[Any, Any] = {name: task}

    def keyed(calls: list[tuple[Any, ...]]) -> list[Any]:
        places = [(name, len(added) + place) for place in range(len(calls))]
        added.update(zip(places, calls, strict=True))
        return places

    keys = keyed([(_call, name, number, key) for number, key in enumerate(keys)])
    while len(keys) > 1:
        groups = range(0, len(keys), _TOGETHER)
        keys = keyed([(_added, keys[start : start + _TOGETHER]) for start in groups])
    return delayed.Delayed(keys[0], graph | added).compute()


def _call(task: Any, number: int, partition: Any) -> Any:
    return task(number, partition)


def _added(parts: list[Any]) -> Any:
    return reduce(add, parts)
