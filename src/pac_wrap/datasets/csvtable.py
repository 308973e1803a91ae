"""The tables of the DevNet collection: numbers in CSV files, the label last."""

import numpy as np

from pac_wrap.csvfiles import headers
from pac_wrap.csvtables import csv_queries
from pac_wrap.database import connected
from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.store import fetch
from pac_wrap.scratch import scratch_folder


def read_table(name: str) -> Dataset:
    """Return the data set of one CSV file whose last column is the label."""
    entry = ENTRIES[name]
    (file,) = entry.files
    path = fetch(file)
    (form,) = headers([path], (), None)
    with scratch_folder() as scratch, connected([path], scratch) as connection:
        found = csv_queries(
            connection, [path], form.names, scratch=scratch, whole=False, delimiter=form.delimiter
        )
        query = f"SELECT COLUMNS(*)::FLOAT FROM ({found.everything})"
        *columns, labels = connection.execute(query).fetchnumpy().values()
    X = np.empty((labels.size, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        X[:, place] = column
    return Dataset(X, labels.astype(np.int8), name, entry.source, entry.licence, entry.citation)
