"""CelebA: 39 attributes of 202,599 portraits, the anomalies are the 4,547 bald ones."""

from pac_wrap.datasets.csvtable import read_table
from pac_wrap.datasets.dataset import Dataset


def load() -> Dataset:
    """Return the data set, as the DevNet collection scales it to [0, 1]."""
    return read_table("celeba")
