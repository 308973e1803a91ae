"""A data set in memory: rows, labels, and where they come from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows X (float32, two-dimensional) and labels y (int8, 1 for an anomaly) with their origin.

    If the original comes as a training and a test part, the first `n_train` rows are its training part.

    >>> tiny = Dataset(np.zeros((4, 2), np.float32), np.array([0, 0, 0, 1], np.int8), "tiny", "", "", "")
    >>> tiny
    Dataset('tiny': 4 x 2, 1 anomaly, 25 %)
    >>> tiny.n_anomalies
    1
    """

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    name: str
    source: str
    licence: str
    citation: str
    n_train: int | None = None

    @property
    def n_anomalies(self) -> int:
        """The number of anomalies."""
        return int(np.count_nonzero(self.y))

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self._size()})"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self._size()}"]
        if self.n_train is not None:
            lines.append(f"the first {self.n_train:,} rows are the training part")
        lines += [f"source: {self.source}", f"licence: {self.licence}", f"cite: {self.citation}"]
        return "\n".join(lines)

    def _size(self) -> str:
        rows, columns = self.X.shape
        plural = "anomaly" if self.n_anomalies == 1 else "anomalies"
        share = 100 * self.n_anomalies / rows if rows else 0.0
        return f"{rows:,} x {columns:,}, {self.n_anomalies:,} {plural}, {share:.3g} %"
