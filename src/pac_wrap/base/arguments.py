"""Checks of scores, labels, rates and counts; each refuses anything else with one sentence.

NaN stands for a missing score. Calibration refuses it, since a point without a score says nothing about the
others; decisions abstain on it, count it and report it.
"""

import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import nan
from numbers import Real
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.floats import ScoreType, widened
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, LabelWarning, MissingScoreWarning

Scores = NDArray[np.float64]
Places = NDArray[np.intp]
OnMissing = Literal["abstain", "stop"]
ON_MISSING: Final[tuple[OnMissing, ...]] = ("abstain", "stop")
# a rate, or points per so many points
Limit = float | tuple[float, int]
# more scores of a class than any engine counts; the exact tail stays quick up to here
MOST_SCORES: Final = 10**12
LEAST_DELTA: Final = 1e-5  # of bounds that hold at every threshold
# the narrower types, as NumPy abbreviates them
_TYPES: Final[dict[str, ScoreType]] = {"f": "float32", "e": "float16"}


def check_rate(name: str, value: float) -> float:
    """Return value as a float if it lies strictly between 0 and 1."""
    rate = as_float(value)
    if not 0.0 < rate < 1.0:
        raise InputError(
            f"{name} must lie strictly between 0 and 1, got {quoted(value)}; write five percent as 0.05"
        )
    return rate


def check_delta(name: str, value: float) -> float:
    """Return a delta that is large enough for bounds at every threshold."""
    delta = check_rate(name, value)
    if delta < LEAST_DELTA:
        raise InputError(
            f"{name} must be at least {LEAST_DELTA:g} for a curve, got {value!r};"
            " with a smaller one the bounds would not be exact"
        )
    return delta


def rate_or_none(name: str, value: float | None) -> float | None:
    """Return value as a rate, or None for none."""
    return None if value is None else check_rate(name, value)


def as_float(value: object) -> float:
    """Return value as a float; NaN if it is not a real number, or too large for a float."""
    try:
        return float(value) if is_number(value) else nan  # type: ignore[arg-type]  # a number has a float
    except (OverflowError, ValueError):  # 10**400, or a Decimal that signals
        return nan


# a number, perhaps with commas between thousands; 0,5 is none
_PLAIN: Final = r"(?=[0-9.])([0-9]+|[0-9]{1,3}(,[0-9]{3})+)?(\.[0-9]+)?(e-?[0-9]+)?"


def as_limit(name: str, given: object) -> Limit | None:
    """Return a ceiling about traffic: a rate, or a number of points and of how many; None for none."""
    parts: Any = given
    if isinstance(given, str):
        texts = re.split(r"\s*/\s*|\s+per\s+", given.strip())
        parts = [float(one.replace(",", "")) for one in texts if re.fullmatch(_PLAIN, one)]
        parts = [] if len(parts) < len(texts) else parts[0] if len(parts) == 1 else parts
    if given is None or not isinstance(parts, tuple | list):
        return None if given is None else check_rate(name, parts)
    count, per = map(as_float, parts) if len(parts) == 2 else (-1.0, 0.0)
    if not (0.0 < count < per <= MOST_SCORES and per == int(per)):
        raise InputError(
            f"{name} must be a rate such as 0.001, or points of so many points such as '20 per 50,000', got"
            f" {quoted(given)}"
        )
    return count, int(per)


def is_number(value: object) -> bool:
    """Return whether value is a real number; a bool is not."""
    # the test for float comes first: abstract types are slow, and there may be 10,000 rates
    return type(value) is float or (isinstance(value, (Real, Decimal)) and not isinstance(value, bool))


def check_count(name: str, value: int) -> int:
    """Return value as an int if it is a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{name} must be a whole number, 0 or more, got {quoted(value)}")
    if value >= 2**63:
        raise InputError(f"{name} must be less than 2^63, got {quoted(value)}")
    return int(value)


def check_positive(name: str, value: int) -> int:
    """Return value as an int if it is a whole number, 1 or more."""
    if check_count(name, value) == 0:
        raise InputError(f"{name} must be a whole number, 1 or more, got 0")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse value unless it is one of the choices."""
    plain = bool(value) if isinstance(value, np.bool_) else value
    if not any(plain is choice or (isinstance(plain, str) and plain == choice) for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {listed}; got {quoted(value)}")


def as_scores(values: ArrayLike, name: str = "scores", *, missing: bool = False) -> Scores:
    """Return values as a one-dimensional float64 array; NaN is refused, unless scores may be `missing`."""
    array = as_array(values, name)
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one score per point, got shape {array.shape};"
            " pass a single column, for example scores.ravel()"
        )
    if array.size == 0:
        return np.empty(0)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be real numbers, got dtype {array.dtype} (for example {_plain(array.flat[0])!r});"
            " convert them first, for example with .astype(float)"
        )
    scores = array
    if array.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # a signalling NaN would warn before it is refused
            scores = widened(array)
    if not missing and np.isnan(scores).any():
        raise refused(name, missing_places(scores), scores.size)
    return scores


def missing_places(scores: NDArray[Any]) -> Places:
    """Return the positions of the scores that are missing."""
    return np.flatnonzero(np.isnan(scores)) if scores.dtype.kind == "f" else np.empty(0, dtype=np.intp)


def abstained_or_stopped(places: Places, size: int, on_missing: OnMissing) -> None:
    """Warn the caller outside this package of missing scores, or refuse them."""
    if not places.size:
        return
    if on_missing == "stop":
        raise refused("scores", places, size)
    warn(
        f"{places.size:,} of {size:,} scores are NaN, the first at position {int(places[0])}; points without"
        ' a score get the verdict abstain; on_missing="stop" refuses them',
        MissingScoreWarning,
    )


def refused(name: str, places: Places, size: int) -> InputError:
    """Return the error for missing scores."""
    return InputError(
        f"{name} must not contain NaN, got {places.size:,} of {size:,}, the first at"
        f" position {int(places[0])}; drop those points or make the detector score them"
    )


def warn(text: str, kind: type[Warning]) -> None:
    """Warn the caller outside this package."""
    frame, depth = sys._getframe(), 0
    while frame.f_globals.get("__name__", "").startswith("pac_wrap."):
        if frame.f_back is None:
            break
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, kind, stacklevel=depth + 1)


def score_type(dtype: Any) -> ScoreType:
    """Return the type of scores for a NumPy type; wider floats and whole numbers become doubles."""
    return _TYPES.get(np.dtype(dtype).char, "float64")


def type_of(*arrays: NDArray[Any]) -> ScoreType:
    """Return the common type of the arrays, float64 if they differ; empty arrays do not count."""
    return common_type(score_type(array.dtype) for array in arrays if array.size) or "float64"


def common_type(types: Iterable[ScoreType | None]) -> ScoreType | None:
    """Return the common type, float64 if the types differ, None without any type; None does not count."""
    found = {one for one in types if one is not None}
    return found.pop() if len(found) == 1 else "float64" if found else None


def as_anomaly_mask(labels: ArrayLike, anomaly_label: object = 1, name: str = "labels") -> NDArray[np.bool_]:
    """Return True where a label marks an anomaly: 1 against 0, -1 against 1, or a label of any other name."""
    named = isinstance(anomaly_label, str)
    array = np.asarray(labels, dtype=object) if named and isinstance(labels, list) else as_array(labels, name)
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one label per point, got shape {array.shape};"
            " pass a single column, for example labels.ravel()"
        )
    try:
        is_one = np.ndim(cast(Any, anomaly_label)) == 0 and not isinstance(anomaly_label, (dict, set))
    except ValueError:  # lists of unequal length
        is_one = False
    if not is_one:
        raise InputError(f"anomaly_label must be one value, got {quoted(anomaly_label)}")
    try:
        return _anomaly_mask(array, anomaly_label, name)
    except TypeError as error:  # pandas' NA compares to neither true nor false
        raise InputError(f"{name} must not be missing anywhere: {error}; drop those points") from error


def _anomaly_mask(array: NDArray[Any], anomaly_label: object, name: str) -> NDArray[np.bool_]:
    try:
        mask = np.asarray(array == anomaly_label, dtype=bool)
    except OverflowError:  # a whole number beyond all doubles
        mask = np.zeros(array.shape, dtype=bool)
    if anomaly_label == 1 or anomaly_label == -1:
        normal_label = 0 if anomaly_label == 1 else 1
        # two comparisons of all are faster than one of some, which have to be picked
        known = np.asarray(array == normal_label, dtype=bool)
        known |= mask
        strangers = array[:0] if known.all() else array[~known]
        rule = f"must be {normal_label} (normal) or {anomaly_label} (anomalous)"
    else:
        others = array[~mask]
        if others.size == 0:
            return mask
        normal_label = others[0]
        strangers = others[np.asarray(others != normal_label, dtype=bool)]
        if array.dtype.kind == "O":  # None and NaN are no label
            missing = np.asarray((others != others) | (others == None), dtype=bool)  # noqa: E711  (elementwise)
            strangers = others[missing] if missing.any() else strangers
        rule = f"must be {quoted(anomaly_label)} (anomalous) or one other value (normal)"
    if strangers.size:
        raise InputError(
            f"{name} {rule}, got {_plain(strangers[0])!r};"
            " recode them, or name the label of anomalies with anomaly_label (-1 for scikit-learn's +1/-1)"
        )
    return mask


def label_of(text: str | None) -> object:
    """Return the label of anomalies in a file, 1 if no text is given."""
    return 1 if text is None else text


def label_text(anomaly_label: object) -> str | None:
    """Return the label of anomalies as stored in a file; None stands for 0 and 1, or false and true."""
    return None if type(anomaly_label) is int and anomaly_label == 1 else str(anomaly_label)


def as_class_mask(y: ArrayLike, anomaly_label: object = 1) -> NDArray[np.bool_]:
    """Return True where y marks an anomaly; as in scikit-learn, two consecutive whole numbers will do."""
    # scikit-learn orders classes, so the greater one marks anomalies
    try:
        return as_anomaly_mask(y, anomaly_label, "y")
    except InputError:
        array = np.asarray(y)
        if anomaly_label != 1 or array.dtype.kind not in "iu" or array.ndim != 1:
            raise
        values = np.unique(array)
        if values.size != 2 or values[1] - values[0] != 1 or -1 in values:
            raise
    warnings.warn(
        f"y holds {values[0]} and {values[1]}; {values[1]} is taken for the anomalies, as scikit-learn"
        f" orders classes; pass anomaly_label={values[1]}, or recode y as 0 and 1",
        LabelWarning,
        stacklevel=4,
    )
    return as_anomaly_mask(y, values[1], "y")


def as_labelled(
    scores: ArrayLike, labels: ArrayLike, anomaly_label: object = 1, where: str = ""
) -> tuple[NDArray[Any], Scores, NDArray[np.bool_]]:
    """Return scores as given and as doubles, and True where labels mark an anomaly; lengths must agree."""
    check_aligned(f"scores{where}", scores, f"labels{where}", labels)
    given = as_array(scores, f"scores{where}")
    values = as_scores(given, f"scores{where}")
    mask = as_anomaly_mask(labels, anomaly_label, f"labels{where}")
    check_same_length("scores", values.size, f"labels{where}", mask.size)
    return given, values, mask


def check_same_length(name: str, size: int, other: str, other_size: int) -> None:
    """Refuse two arrays of different lengths."""
    if size != other_size:
        raise InputError(f"{name} and {other} must have the same length, got {size:,} and {other_size:,}")


def check_aligned(name: str, values: object, other: str, others: object) -> None:
    """Refuse two pandas columns with different indices, since rows are paired by position here."""
    index, second = _index(values), _index(others)
    if index is None or second is None or len(index) != len(second) or index.equals(second):
        return  # lengths are compared, and refused, as those of arrays are
    place = int(np.argmin(np.asarray(index == second, dtype=bool)))
    raise InputError(
        f"{name} and {other} must have the same index in the same order, but in position {place:,} they have"
        f" {_plain(index[place])!r} and {_plain(second[place])!r}; align them, for example with"
        f" {other}.loc[{name}.index], or pass .to_numpy() if the rows match by position"
    )


def _index(values: Any) -> Any:
    """Return the index of a Series or DataFrame, None for anything else; a list's `index` is a method."""
    index = getattr(values, "index", None)
    return index if hasattr(values, "iloc") and hasattr(index, "equals") else None


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as an array; ragged, masked and complex ones are refused."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise InputError(
            f"{name} must not contain masked values, got {int(np.ma.getmaskarray(values).sum()):,};"
            " drop them, for example with .compressed()"
        )
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} must be an array of numbers, got {type(values).__name__}: {error}"
        ) from error
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} must be real; take the real part first")
    return array


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
