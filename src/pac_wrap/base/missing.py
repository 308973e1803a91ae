"""Missing scores, which NaN stands for: where points are decided they are abstained on, counted and said.

Where labels calibrate they are refused, since a point without a score says nothing about the others.
"""

import inspect
import warnings
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError, MissingScoreWarning

OnMissing = Literal["abstain", "stop"]
ON_MISSING: Final[tuple[OnMissing, ...]] = ("abstain", "stop")
Places = NDArray[np.intp]


def missing_places(scores: NDArray[Any]) -> Places:
    """Return the positions of the scores that are missing.

    >>> missing_places(np.array([0.5, np.nan])).tolist()
    [1]
    """
    return np.flatnonzero(np.isnan(scores)) if scores.dtype.kind == "f" else np.empty(0, dtype=np.intp)


def refused(name: str, places: Places, size: int) -> InputError:
    """Return the refusal of scores of which some are missing."""
    return InputError(
        f"{name} must not contain NaN, got {places.size:,} of {size:,}, the first at"
        f" position {int(places[0])}; drop those points or make the detector score them"
    )


def abstained_or_stopped(places: Places, size: int, on_missing: OnMissing) -> None:
    """Warn the user, who is outside this package, of scores that are missing, or refuse them."""
    if not places.size:
        return
    if on_missing == "stop":
        raise refused("scores", places, size)
    warnings.warn(
        f"{places.size:,} of {size:,} scores are NaN, the first at position {int(places[0])}: points without"
        ' a score are abstained on; on_missing="stop" refuses them',
        MissingScoreWarning,
        stacklevel=frames_inside() + 1,
    )


def frames_inside() -> int:
    """Return how many calls deep this package is in, counted from the caller."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pac_wrap."):
        frame, depth = frame.f_back, depth + 1
    return depth - 1
