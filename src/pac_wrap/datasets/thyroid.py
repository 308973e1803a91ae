"""Thyroid: 7,200 patients, the anomalies are the 534 with a hyper- or subnormal thyroid function."""

from pac_wrap.datasets.csvtable import read_table
from pac_wrap.datasets.dataset import Dataset


def load() -> Dataset:
    """Return the data set, as the DevNet collection scales it to [0, 1]."""
    return read_table("thyroid")
