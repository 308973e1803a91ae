"""Campaign: 41,188 calls of a bank to its clients, the anomalies are the 4,640 that led to a deposit."""

from pac_wrap.datasets.csvtable import read_table
from pac_wrap.datasets.dataset import Dataset


def load() -> Dataset:
    """Return the data set, as the DevNet collection scales it to [0, 1]."""
    return read_table("campaign")
