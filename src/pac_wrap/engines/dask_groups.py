"""Groups of a Dask frame: one shuffle brings the rows of a group together, and workers calibrate them.

Only columns with a row for each group reach the client. Kinds, which are few, are counted in one pass, and
each is calibrated as any frame is.
"""

from collections import Counter
from functools import partial
from typing import Any, Final

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
    scores_of,
)
from pac_wrap.engines.frames import import_package, refuse_changed
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.chunked import certify_passes
from pac_wrap.method.groups.block import Block
from pac_wrap.method.groups.calibrate import NO_SCORES, GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.part import Part
from pac_wrap.method.groups.rules import decided, sets_of
from pac_wrap.method.groups.values import Lookup, coded, merged, text_of
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.ranks.partitions import PartitionAnswer, Partitions, PartitionTask
from pac_wrap.ranks.passes import Passes
from pac_wrap.tables.kinds import KindsAsked

# a set's place: 1 if label 0 is possible, and 2 more if label 1 is
SETS: Final = np.array(["{}", "{0}", "{1}", "{0,1}"], dtype=object)


def certified_groups(df: Any, request: GroupRequest) -> GroupCertificate:
    """Return the certificate of a frame whose columns are the scores, the labels and the groups."""
    label = request.request.anomaly_label
    first: Seen = answered(partial(_seen, PartitionTask(rows_of, label)), *partitions_of(df))
    if not first.answer.settled(label):
        raise InputError(NO_SCORES)
    kind = first.answer.score_type or "float64"
    found = merged(np.arange(len(first.rows)), [value for _, value, _ in first.rows])
    n = np.zeros((2, len(found.values)), dtype=np.int64)
    marks, counts = np.array([(mark, rows) for (*_, mark), rows in first.rows.items()], dtype=np.int64).T
    for mark in (0, 1):
        np.add.at(n[mark], found.codes[marks == mark], counts[marks == mark])
    each = request.each(n)
    # as a task of its own the table of groups travels once to each worker, not with every partition
    lookup = import_package("dask", "dask").delayed(Lookup(found.values), traverse=False)
    meta = {"place": "int64", "score": kind, "mark": "bool"}
    numbered = df.map_partitions(_numbered, lookup, label, kind, meta=meta)
    near = numbered.shuffle("place", ignore_index=True)
    part = Part.joined(answered(partial(_calibrated, each, kind), *partitions_of(near)))
    refuse_changed(part.columns.n, n)
    pool = None
    if request.pool and (few := part.columns.vacuous).any():
        pool = _pooled(numbered, few, each)
    return request.certificate(part.columns, part.areas, found.values, kind, pool)


def decided_by_group(df: Any, certificate: GroupCertificate, score: str, group: str) -> Any:
    """Return a frame with the verdict and the prediction set of each row, by the rule of its group."""
    sent = import_package("dask", "dask").delayed(certificate, traverse=False)
    added = {"verdict": np.empty(0, dtype=np.int8), "prediction_set": np.empty(0, dtype=object)}
    meta = df._meta.assign(**added).astype({"prediction_set": "string[pyarrow]"})
    return df.map_partitions(_decided, sent, score, group, meta=meta)


def _seen(task: PartitionTask, number: int, frame: Any) -> Seen:
    answer = answer_of(task, number, frame)
    try:
        found = coded(frame.iloc[:, 2])
    except InputError as error:
        return Seen(PartitionAnswer(None, problem=(number, str(error))))
    try:
        marks = as_anomaly_mask(frame.iloc[:, 1].to_numpy(), task.anomaly_label)
    except InputError:  # what is wrong with the labels is said when all are known
        return Seen(answer)
    rows: Counter[Any] = Counter()
    for mark in (False, True):
        counts = np.bincount(found.codes[marks == mark], minlength=len(found.values)).tolist()
        # a group goes with its type, since Python holds 1 and true equal
        pairs = zip(found.values, counts, strict=True)
        rows.update({(type(value), value, mark): count for value, count in pairs})
    return Seen(answer, rows)


def _numbered(frame: Any, lookup: Lookup, anomaly_label: object, kind: ScoreType) -> Any:
    """Return the number of each row's group, its score, and whether it is an anomaly."""
    from pandas import DataFrame

    scores, labels, groups = (frame.iloc[:, place] for place in range(3))
    marks = as_anomaly_mask(labels.to_numpy(), anomaly_label)
    values = numbers_of(scores).astype(kind)
    return DataFrame({"place": lookup.places(groups), "score": values, "mark": marks}, index=frame.index)


def _calibrated(request: Request, kind: ScoreType, number: int, frame: Any) -> list[Part]:
    """Return what the groups of a partition get, all rows of which are in it, if there are any."""
    if frame.empty:
        return []
    places, codes = np.unique(frame["place"].to_numpy(), return_inverse=True)
    scores, marks = scores_of(frame["score"]), frame["mark"].to_numpy()
    block = Block.of(scores, marks, codes.reshape(-1), places.size)
    return [Part.of(request, places, block, kind)]


def _pooled(numbered: Any, few: NDArray[np.bool_], request: Request) -> Certificate:
    """Return the certificate of the rows of some groups taken as one, found as that of any frame."""
    meta = numbered._meta[["score", "mark"]]
    keys, graph = partitions_of(numbered.map_partitions(_of_groups, few, meta=meta))

    def run(task: PartitionTask) -> PartitionAnswer:
        found: PartitionAnswer = answered(partial(answer_of, task), keys, graph)
        return found

    return certify_passes(request, Passes(Partitions(run, 1)))


def _of_groups(frame: Any, few: NDArray[np.bool_]) -> Any:
    return frame.loc[few[frame["place"].to_numpy()], ["score", "mark"]]


def _decided(frame: Any, certificate: GroupCertificate, score: str, group: str) -> Any:
    from pandas import array

    scores, places = scores_of(frame[score]), certificate.lookup.places(frame[group])
    possible = sets_of(certificate.exclusions, scores, places)
    return frame.assign(
        verdict=decided(certificate.rules, scores, places),
        prediction_set=array(SETS[possible @ [1, 2]], dtype="string[pyarrow]"),
    )


def certified_kinds(df: Any, asked: KindsAsked) -> KindCertificate:
    """Return the certificate of a frame whose columns are the scores, the labels and the kinds."""
    label = asked.anomaly_label
    task = PartitionTask(rows_of, label)
    first: Seen = answered(partial(_kinds_seen, task, asked), *partitions_of(df))
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


def _kinds_seen(task: PartitionTask, asked: KindsAsked, number: int, frame: Any) -> Seen:
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
