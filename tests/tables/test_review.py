"""The review queue of a table is that of memory, from a few rows."""

from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Guarantee, ReviewQueue
from pac_wrap.method.robust.shift_and_noise import Reviews
from pac_wrap.method.traffic.calibrate import certify_traffic
from pac_wrap.tables.calibrate import TrafficTable
from pac_wrap.tables.columns import TrafficColumns
from pac_wrap.tables.review import queue_of
from pac_wrap.tables.table import open_table
from support.strategies import refusal

PROMISES = {
    "false alarms": Guarantee(max_false_alarms=0.01),
    "spent": Guarantee(max_false_alarms=0.003),
    "FPR": Guarantee(max_fpr=0.01, reviews=Reviews(max_anomalies=0.05)),
    "precision": Guarantee(max_false_alarms=0.02, min_precision=0.5),
    "alarms": Guarantee(max_alarms=0.01),
    "too few": Guarantee(max_false_alarms=1e-6),
}
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")


@pytest.mark.parametrize("asked", PROMISES.values(), ids=PROMISES)
@pytest.mark.parametrize("reviewed_to", [4.0, 2.7, 2.2])
def test_the_queue_of_a_file_is_that_of_memory(asked: Guarantee, reviewed_to: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    anomaly = rng.random(4000) < 0.03
    scores = rng.normal(3.0 * anomaly)
    # some below were looked at, and the third of the highest was not
    looked_at = (scores > reviewed_to) | (rng.random(4000) < 0.02)
    looked_at[np.argsort(-scores)[2]], scores[7], looked_at[7] = False, np.nan, False
    reviews = np.where(looked_at, anomaly, np.nan)
    memory = ReviewQueue(scores, asked, reviews)
    np.savez(tmp_path / "traffic.npz", s=scores, r=reviews)
    with open_table([str(tmp_path / "traffic.npz")], ["s", "r"], passes=True) as table:
        rows = TrafficTable(table, TrafficColumns("s", "r"))
        for count in (1, 30):
            queue, few = queue_of(rows, certify_traffic(rows, rows.unscored, asked), count)
            assert few.size <= count + 200
            assert few[queue.next(count)].tolist() == scores[memory.next(count)].tolist()
            assert (queue.wrong_left, queue.done) == (memory.wrong_left, memory.done)
            assert str(queue) == str(memory)
    assert refusal(lambda: queue.add([0], [1])) == (
        "this queue holds only the highest points; calibrate again with the new reviews"
    )
