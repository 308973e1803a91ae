"""Columns of a frame that an engine holds."""

import warnings
from collections.abc import Sequence
from typing import Any

from pac_wrap.certificate import Certificate
from pac_wrap.columns import require_column
from pac_wrap.errors import InputError, PrecisionWarning
from pac_wrap.precision import ScoreType


def require_columns(wanted: Sequence[Any], columns: Sequence[Any]) -> None:
    """Refuse a frame that lacks one of the columns or has it twice.

    >>> require_columns(["scor"], ["id", "score"])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no column 'scor'; did you mean 'score'? the columns are id, score
    """
    for name in wanted:
        if name not in columns:
            require_column(str(name), [str(column) for column in columns])
        if list(columns).count(name) > 1:
            raise InputError(f"there are two columns named {name!r}; rename one of them")


def warn_if_undecidable(certificate: Certificate, kind: ScoreType, score: str) -> None:
    """Warn the caller of `decide` if a column of scores may have lost digits on which verdicts hang.

    Nothing is computed yet, so nobody knows whether such a score occurs.
    """
    if values := certificate.undecidable(kind):
        warnings.warn(
            f"column {score!r} holds {kind}, but the certificate is of {certificate.score_type} scores: what"
            f" became {' or '.join(map(repr, values))} by rounding may get the wrong verdict; decide on"
            f" unrounded scores, or calibrate on {kind} ones",
            PrecisionWarning,
            stacklevel=3,
        )
