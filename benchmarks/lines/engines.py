"""Certificates of data that an engine holds, beside the engine's own aggregate: what Spark and Dask share."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from benchmarks.memory import MB
from benchmarks.record import Aim, Comparison, Measure, Result, Role
from benchmarks.tables import labelled_files
from benchmarks.timing import Action, Scale, compare, growths

AIM = Aim("<=", 3.0)
# MB that one pass may send to the driver, whatever the size
SENT = Aim("<=", 4.0)


def sizes_of(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of rows."""
    return scale.pick(
        (1000,),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7, 10**8),
    )


@contextmanager
def answers(adapter: ModuleType, function: str) -> Iterator[list[int]]:
    """Yield the list to which the bytes of every answer that reaches the driver are added.

    `function` is that of the adapter's through which all answers come.
    """
    sizes: list[int] = []
    run: Callable[..., Any] = getattr(adapter, function)

    def watched(*arguments: Any) -> Any:
        part = run(*arguments)
        sizes.append(len(pickle.dumps(part)))
        return part

    with patch.object(adapter, function, watched):
        yield sizes


def beside(
    name: str,
    about: str,
    scale: Scale,
    adapter: ModuleType,
    prepare: Callable[[list[str]], tuple[Action, ...]],
    partitions: int,
    *,
    aim: Aim = AIM,
    receives: str = "sum_over_partitions",
) -> Result:
    """Return timings of a calibration beside the engine's aggregate, and what came to the driver.

    `prepare` takes Parquet files and returns the calibration, the aggregate, and a pass of Python that only
    counts, where rows go through Python.
    """
    comparisons: list[Comparison] = []
    measures: list[Measure] = []
    for size in sizes_of(scale):
        with labelled_files(size, "parquet", partitions) as paths:
            certify, aggregate, *counts = prepare(paths)
            methods: dict[str, tuple[Role, Action]] = {
                f"`{name}.calibrate`": ("ours", certify),
                "the engine's aggregate": ("limit", aggregate),
            }
            for count in counts:
                methods["a pass of Python that counts"] = "peer", count
            comparisons.append(compare("parquet", size, methods, scale, aim=aim))
            with answers(adapter, receives) as sent:
                certify()
        measures.append(Measure(f"{size:,} rows", "passes", len(sent), ""))
        measures.append(Measure(f"{size:,} rows", "largest answer to the driver", max(sent) / MB, "MB", SENT))
    found = growths(comparisons, scale)
    title = f"Calibrate with {name.capitalize()}"
    return Result(name, title, about, scale.name, tuple(comparisons), found, tuple(measures))
