"""Points of a series that begin where a test says."""

from dataclasses import replace
from typing import Any

import numpy as np

from pac_wrap.series import Points, window_points


def points_at(positions: Any, labels: Any, scores: Any = None, extent: int = 1) -> Points:
    """Return points that begin at these steps, of `extent` steps each."""
    marks = np.asarray(labels)
    values = np.zeros(marks.size) if scores is None else scores
    return replace(window_points(values, marks), positions=np.asarray(positions), length=extent)
