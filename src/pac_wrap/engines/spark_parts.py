"""A task for every partition of a Spark frame, and what comes back added up on the workers."""

from collections.abc import Iterator
from typing import Any

from pac_wrap.chunks import Part, PartTask
from pac_wrap.engines.arrow import ANSWER, added, answer, unpack
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import MissingExtraError
from pac_wrap.sql import between


def run_parts(pairs: Any, task: PartTask) -> Part:
    """Return the sum of the task's answers over all partitions; it is made on the workers, in a tree.

    The driver receives one row, however many rows and partitions there are.
    """

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from answer(task, TaskContext.get().partitionId(), batches)

    if task.bounds is not None:  # Spark drops the others before any Python sees them
        pairs = pairs.where(between("score", task.bounds))
    parts = pairs.mapInArrow(answers, ANSWER).repartition("number").mapInArrow(added, ANSWER)
    try:
        rows = parts.repartition(1).mapInArrow(added, ANSWER).collect()
    except import_package("pyspark.errors", "spark").PySparkException as error:
        if "No module named 'pac_wrap'" in str(error):
            raise MissingExtraError(
                "Spark's Python workers cannot import pac_wrap; install it where they run, or set"
                " PYSPARK_PYTHON to a Python that has it before the session starts"
            ) from error
        raise
    return unpack(rows[0].part) if rows else task(0, [])
