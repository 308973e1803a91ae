"""What a Spark worker does: Arrow batches of a partition in, one small answer out; and answers added up.

An answer is packed: a survey is 1 MB of counts, nearly all of them 0, and packs to a few KB. A module of its
own, since each worker process loads it: with the adapter would come scikit-learn, a second and 150 MB.
"""

import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import InputError
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask, missing_labels

ANSWER: Final = "number int, answer binary"
# batches are put together up to this many rows: Spark's own are small, and each would cost a survey
_ROWS: Final = 1 << 17


def answer(task: PartitionTask, number: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the answer of one partition, from its batches of scores and labels."""
    yield _packed(number, task(number, _pairs(number, batches)))


def added(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the sum of all answers of one partition, if it has any."""
    answers = (unpack(packed.as_py()) for batch in batches for packed in batch.column(1))
    for first in answers:
        yield _packed(0, reduce(add, answers, first))


def unpack(packed: bytes) -> PartitionAnswer:
    """Return a packed answer, which must come from one's own workers: unpickling can run code."""
    found: PartitionAnswer = pickle.loads(zlib.decompress(packed))
    return found


def scored(scores: Callable[[Any], Scores], named: bool, frames: Iterator[Any]) -> Iterator[Any]:
    """Yield the scores of each frame of features, as a Series."""
    from pandas import Series

    for frame in frames:
        yield Series(scores(frame if named else frame.to_numpy()) if len(frame) else np.empty(0))


def _packed(number: int, found: PartitionAnswer) -> Any:
    from pyarrow import RecordBatch, array, binary, int32

    columns = [array([number], int32()), array([zlib.compress(pickle.dumps(found), 1)], binary())]
    return RecordBatch.from_arrays(columns, names=["number", "answer"])


def _pairs(number: int, batches: Iterator[Any]) -> Iterator[tuple[Scores, NDArray[Any]]]:
    """Yield scores, NaN where they are missing, and labels; a missing label is refused at the end."""
    rows = missing = 0
    for table in _gathered(batches):
        rows += table.num_rows
        if gaps := table.column(1).null_count:
            missing += gaps
            table = table.filter(table.column(1).is_valid())
        yield table.column(0).to_numpy(), _labels(table.column(1).combine_chunks())
    if missing:
        raise InputError(missing_labels(number, missing, rows))


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    from pyarrow import Table

    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield Table.from_batches(waiting)


def _labels(column: Any) -> NDArray[Any]:
    from pyarrow import types

    if not types.is_string(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    # one text object for all rows with the same label
    encoded = column.dictionary_encode()
    texts = encoded.dictionary.to_numpy(zero_copy_only=False)
    return np.asarray(texts[encoded.indices.to_numpy()])
