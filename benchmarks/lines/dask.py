"""`pac_wrap.engines.dask.calibrate` beside Dask's own aggregate over the same frame."""

from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.lines.engines import beside
from benchmarks.peers import missing
from benchmarks.record import Result, SkipError
from benchmarks.timing import Action, Scale

PARTITIONS = 16
ABOUT = """\
Dask with its scheduler of threads in this process, on {partitions} Parquet files. The limit is Dask's own
aggregate over the same frame: the maximum of `s + 0` and the sum of `y + 0`, computed together, which reads
both columns once. A pass of Python that counts hands every partition, both columns, to a function that
takes its length. An answer is what one pass sends back, as pickled bytes. The look at one partition, from
which bounds are guessed, counts as a pass here."""


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes."""
    if reason := missing("dask") or missing("pandas"):
        raise SkipError(reason)
    dask: Any = import_module("dask")
    frames: Any = import_module("dask.dataframe")
    adapter: Any = import_module("pac_wrap.engines.dask")
    passes: Any = import_module("pac_wrap.engines.dask")

    def prepare(paths: list[str]) -> tuple[Action, ...]:
        frame = frames.read_parquet(paths)
        return (
            partial(adapter.calibrate, frame, score="s", label="y"),
            lambda: dask.compute((frame.s + 0).max(), (frame.y + 0).sum()),
            lambda: frame.map_partitions(len, meta=("rows", "int64")).compute(),
        )

    partitions = scale.pick(2, PARTITIONS, PARTITIONS)
    with dask.config.set(scheduler="threads"):
        return beside("dask", ABOUT.format(partitions=partitions), scale, passes, prepare, partitions)
