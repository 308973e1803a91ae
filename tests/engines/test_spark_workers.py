"""What Spark's workers do with their batches, here in this process."""

import numpy as np
import pyarrow as pa
import pytest

from pac_wrap import calibrate_labelled
from pac_wrap.engines.spark import _calibrated, _objects
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.calibrate import Part


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
def test_a_worker_calibrates_the_groups_of_its_rows() -> None:
    places, marks = np.repeat([0, 1], 400), np.tile([False, True], 400)
    scores = np.random.default_rng(0).normal(3.0 * marks, 1.0)
    rows = zip(np.split(places, 4), np.split(scores, 4), np.split(marks, 4), strict=True)
    batches = (pa.RecordBatch.from_arrays([*map(pa.array, row)], ["place", "score", "mark"]) for row in rows)
    found = [np.stack([*map(np.asarray, one.columns)]) for one in _calibrated(Request(), "float64", batches)]
    part = Part.from_flat(np.concatenate(found, axis=1))
    expected = calibrate_labelled(scores, marks, by=places).columns
    assert part.places.tolist() == [0, 1]
    assert part.columns.n.tolist() == expected.n.tolist() == [[200, 200], [200, 200]]
    assert part.columns.rule.tolist() == expected.rule.tolist()


def test_a_worker_reads_the_objects_of_its_lines() -> None:
    lines = pa.RecordBatch.from_arrays(
        [pa.array(['{"s": 1.5, "y": 0}', None, '{"y": true, "s": "2"}'])], ["line"]
    )
    found = pa.Table.from_batches(_objects(("s", "y"), True, iter([lines])))
    assert found.to_pydict() == {"s": ["1.5", "2"], "y": ["0", "true"]}
