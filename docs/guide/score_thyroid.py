"""Score the public thyroid data with two detectors, and write two Parquet files for the guide."""

import sys

import duckdb
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest

from pac_wrap import anomaly_scores
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import fetch

(file,) = ENTRIES["thyroid"].files
table = np.loadtxt(fetch(file), delimiter=",", skiprows=1)
X, y = table[:, :-1], table[:, -1].astype(int)

# a third to train on, a third to calibrate on, and a third that stands for the future
part = np.random.default_rng(0).integers(0, 3, size=y.size)
train = part == 0
forest = IsolationForest(random_state=0).fit(X[train & (y == 0)])
boosting = HistGradientBoostingClassifier(random_state=0).fit(X[train], y[train])

for number, name in ((1, "scores.parquet"), (2, "new.parquet")):
    rows = part == number
    columns = {
        "patient": np.flatnonzero(rows),
        "forest": anomaly_scores(forest, X[rows]),
        "boosting": anomaly_scores(boosting, X[rows]),
        "sick": y[rows],
    }
    duckdb.execute("COPY (SELECT * FROM columns) TO $file", {"file": name})
    sys.stdout.write(f"{name}: {rows.sum()} rows, {y[rows].sum()} of them sick\n")
