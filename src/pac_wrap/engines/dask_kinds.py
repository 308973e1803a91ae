"""Kinds of points in a Dask frame: counted in one pass, and each calibrated in passes, as any frame is."""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import ScoreType, as_anomaly_mask
from pac_wrap.engines.dask_partitions import (
    Seen,
    answer_of,
    answered,
    certified_pairs,
    numbers_of,
    partitions_of,
    rows_of,
)
from pac_wrap.engines.kinds import KindsAsked
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.values import coded, text_of
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.request import Request
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask


def certified_kinds(df: Any, asked: KindsAsked) -> KindCertificate:
    """Return the certificate of a frame whose columns are the scores, the labels and the kinds."""
    label = asked.anomaly_label
    task = PartitionTask(rows_of, label)
    first: Seen = answered(partial(_seen, task, asked), *partitions_of(df))
    first.answer.settled(label)
    score_type = first.answer.score_type or "float64"
    meta = {"score": score_type, "mark": "bool"}

    def pair(normal: str | None, anomalous: str | None, request: Request) -> Certificate:
        chosen = df.map_partitions(_of_kinds, asked, (normal, anomalous), score_type, meta=meta)
        return certified_pairs(chosen, request)

    return asked.certificate([(mark, kind, rows) for (mark, kind), rows in first.rows.items()], pair)


def _kinds(column: Any, asked: KindsAsked) -> NDArray[Any]:
    """Return the kind of each row as a text, None where there is none."""
    found = coded(column, "kinds")
    if any(isinstance(value, float) for value in found.values):
        raise asked.refused(column.dtype)
    texts = np.empty(len(found.values), dtype=object)
    texts[:] = [text_of(value) or None for value in found.values]
    return np.asarray(texts[found.codes])


def _seen(task: PartitionTask, asked: KindsAsked, number: int, frame: Any) -> Seen:
    answer = answer_of(task, number, frame)
    if answer.problem is not None:
        return Seen(answer)
    try:
        kinds = _kinds(frame.iloc[:, 2], asked).tolist()
    except InputError as error:
        return Seen(PartitionAnswer(None, problem=(number, str(error))))
    marks = as_anomaly_mask(frame.iloc[:, 1].to_numpy(), asked.anomaly_label)
    return Seen(answer, Counter(zip(marks.astype(int).tolist(), kinds, strict=True)))


def _of_kinds(frame: Any, asked: KindsAsked, chosen: tuple[str | None, str | None], kind: ScoreType) -> Any:
    """Return the scores of a kind of each class, and whether each is an anomaly; None is the whole class."""
    from pandas import DataFrame

    marks = as_anomaly_mask(frame.iloc[:, 1].to_numpy(), asked.anomaly_label)
    kinds = _kinds(frame.iloc[:, 2], asked)
    mine = [np.ones(marks.size, dtype=bool) if one is None else kinds == one for one in chosen]
    scores = numbers_of(frame.iloc[:, 0]).astype(kind)
    return DataFrame({"score": scores, "mark": marks}, index=frame.index)[np.where(marks, mine[1], mine[0])]
