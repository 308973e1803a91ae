"""The tables of the DevNet collection: numbers in CSV files, the label last."""

import numpy as np

from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.engine import connect
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.store import fetch


def read_table(name: str) -> Dataset:
    """Return the data set of one CSV file whose last column is the label."""
    entry = ENTRIES[name]
    (file,) = entry.files
    query = "SELECT COLUMNS(*)::FLOAT FROM read_csv(?, header = true, all_varchar = true)"
    with connect() as connection:
        *columns, labels = connection.execute(query, [str(fetch(file))]).fetchnumpy().values()
    X = np.empty((labels.size, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        X[:, place] = column
    return Dataset(X, labels.astype(np.int8), name, entry.source, entry.licence, entry.citation)
