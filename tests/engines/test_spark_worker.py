from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import IsolationForest

from pac_wrap.detectors.scores import anomaly_scores
from pac_wrap.engines import spark_worker
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask
from pac_wrap.ranks.search import survey


def batches(scores: Any, labels: Any, size: int) -> Any:
    table = pa.table({"s": pa.array(scores, pa.float64()), "y": pa.array(labels)})
    return iter(table.to_batches(max_chunksize=size))


def answer(
    scores: Any, labels: Any, size: int = 3, anomaly_label: object = 1, number: int = 5
) -> PartitionAnswer:
    task = PartitionTask(survey, anomaly_label)
    (row,) = spark_worker.answer(task, number, batches(scores, labels, size))
    assert row.column(0).to_pylist() == [number]
    return spark_worker.unpack(row.column(1)[0].as_py())


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("labels", "anomaly_label"),
    [([0, 0, 1, 0, 1], 1), ([False, False, True, False, True], 1), (["ok", "ok", "bad", "ok", "bad"], "bad")],
    ids=["numbers", "booleans", "texts"],
)
def test_batches_of_any_size_are_one_partition(
    labels: Any, anomaly_label: object, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_worker, "_ROWS", 2)
    scores = np.array([0.5, -np.inf, 2.0, 0.0, 3.0])
    part = answer(scores, labels, size, anomaly_label)
    assert part.value.digests == survey(scores[[0, 1, 3]], scores[[2, 4]]).digests


def test_answers_add_up_and_are_small() -> None:
    task = PartitionTask(survey, 1)
    rows = [row for i in range(4) for row in spark_worker.answer(task, i, batches([0.1 * i, 0.9], [0, 1], 9))]
    assert all(row.nbytes < 10_000 for row in rows)
    (total,) = spark_worker.added(iter(rows))
    assert spark_worker.unpack(total.column(1)[0].as_py()).value.sizes == (4, 4)
    assert [*spark_worker.added(iter([]))] == []
    assert answer([], []).value.sizes == (0, 0)


def test_missing_scores_and_labels_are_counted() -> None:
    part = answer([0.1, None, float("nan"), 0.2], [0, 1, 0, 1])
    assert part.missing is not None
    assert part.missing[2:] == (5, 2, 4)
    part = answer([0.1, 0.2, 0.3, 0.4], [None, 0, 1, None], size=1)
    assert part.problem == (5, "labels of partition 5 must not be missing, got 2 of 4; drop those rows")


def test_rows_are_scored_batch_by_batch() -> None:
    import pandas as pd

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    frames = [X[:15], X[15:15], X[15:]]
    detector = IsolationForest(n_estimators=5, random_state=0).fit(X)
    found = pd.concat(spark_worker.scored(lambda rows: anomaly_scores(detector, rows), True, iter(frames)))
    np.testing.assert_array_equal(found, anomaly_scores(detector, X))
    found = pd.concat(spark_worker.scored(lambda rows: rows[:, 1], False, iter(frames)))
    np.testing.assert_array_equal(found, X["b"])
