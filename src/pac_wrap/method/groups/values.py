"""A column of groups as numbers: the different groups, and the group of each row.

Groups are compared by their text, so that 7 in a Parquet file and "7" in a CSV are one group. Missing values
form their own group, None, as in SQL's GROUP BY.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, check_aligned, check_same_length
from pac_wrap.base.text import LONGEST, quoted
from pac_wrap.errors import InputError

Group = str | int | float | bool | None
# a column of groups, of any library
GroupColumn = ArrayLike | Sequence[Any]
Codes = NDArray[np.int64]

MOST_GROUPS: Final = 10**6
# the place of an unseen group: the last one of a table of rules
NEVER: Final = -1
NO_SCORES: Final = "scores are empty; pass at least one labelled score"
LONGEST_NAME: Final = 1_000
_LARGEST: Final = 10**18
# whole numbers within a range of at most this many times their count are numbered by a table, without a sort
_DENSE: Final = 8
_SMALL_TABLE: Final = 1 << 20
# types whose text their own software can read
_WRITTEN: Final = (date, time, UUID, Decimal)
_TRUTH: Final = (bool, np.bool_)
_COUNTED: Final = (int, float, np.number, Decimal)


class Coded(NamedTuple):
    """The groups of a column in order, and the number of each row's group."""

    codes: Codes
    values: tuple[Group, ...]


def as_group(value: Any) -> Group:
    """Return a value as a group: the one rule for names of groups, in memory, files and look-ups."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64):
        value = _written_out(value)
    elif isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        if isnan(value):
            return None
        if not isfinite(value):
            raise InputError(f"a group cannot be {value!r}; write it as a text")
        if not value.is_integer() or abs(value) >= _LARGEST:
            return value
        value = int(value)
    if isinstance(value, int):
        if abs(value) >= _LARGEST:
            raise InputError(
                f"a number that names a group has at most 18 digits, got {quoted(value)}; use texts"
            )
        return value
    if isinstance(value, datetime):
        value = (value if value.utcoffset() is None else value.astimezone(UTC)).isoformat(" ")
    elif isinstance(value, _WRITTEN) or (
        type(value).__module__.split(".")[0] == "pandas" and not isinstance(value, timedelta)
    ):
        value = str(value)
    if not isinstance(value, str):
        raise InputError(f"groups must be texts, whole numbers or dates, got {quoted(value)}; convert them")
    if len(value) > LONGEST_NAME:
        raise InputError(
            f"the name of a group has at most {LONGEST_NAME:,} characters, got {len(value):,}:"
            f" {quoted(value, 40)}; shorten it"
        )
    return str(value)


def _written_out(value: np.datetime64) -> date | str | None:
    """Return a date, or the text of a time; Python's own times know no nanoseconds."""
    if np.isnat(value):
        return None
    if np.datetime_data(value)[0] in ("Y", "M", "W", "D"):
        return cast(date, value.astype("M8[D]").item())
    if value.astype("M8[ns]") != value:
        raise InputError(f"the time {value} of a group is finer than nanoseconds; round it or make it a text")
    second = value.astype("M8[s]")
    rest = int((value.astype("M8[ns]") - second.astype("M8[ns]")).astype(np.int64))
    digits = f".{rest // 1000:06d}" if rest % 1000 == 0 else f".{rest:09d}"
    return f"{second.item().isoformat(' ')}{digits if rest else ''}"


def text_of(group: Group) -> str | None:
    """Return the text by which a group is compared; None for a missing value."""
    if group is None or isinstance(group, str):
        return group
    return str(group).lower() if isinstance(group, bool) else repr(group)


def shown(group: Group, longest: int = LONGEST) -> str:
    """Return a group for display: cleaned, and in quotes if it is a text."""
    return "none" if group is None else quoted(group, longest)


def in_order(group: Group) -> tuple[int, Any]:
    """Return the sort key of a group: None first, then false and true, numbers, and texts."""
    if group is None:
        return 0, 0
    return (1 if isinstance(group, bool) else 3 if isinstance(group, str) else 2), group


def coded(groups: GroupColumn, name: str = "groups") -> Coded:
    """Return the groups of a column in order, and the number of each row's group."""
    return merged(*_numbered(groups, name))


def groups_beside(scores: object, size: int, groups: GroupColumn) -> Coded:
    """Return the groups of scores, after checking that there is one for each score."""
    check_aligned("scores", scores, "groups", groups)
    found = coded(groups)
    check_same_length("scores", size, "groups", found.codes.size)
    if not size:
        raise InputError(NO_SCORES)
    return found


def merged(codes: Codes, found: Sequence[Any]) -> Coded:
    """Return the groups in order for rows that are already numbered; -1 is a missing value."""
    if (codes < 0).any():
        found = [*found, None]
    values: dict[str | None, Group] = {}
    kept = as_groups(found)
    texts = texts_of(kept)
    for value, text in zip(kept, texts, strict=True):
        twin = values.setdefault(text, value)
        if type(twin) is not type(value):
            raise InputError(
                f"groups hold both {quoted(twin)} and {quoted(value)}, which are written alike;"
                " give the column one type"
            )
    if len(values) > MOST_GROUPS:
        raise too_many(MOST_GROUPS)
    one_kind = len(set(map(type, values.values()))) == 1
    plain: list[Any] = list(values.values())
    ordered = sorted(plain) if one_kind and None not in values else sorted(plain, key=in_order)
    places = places_of(ordered)
    # a code of -1 takes the last place, which is that of None
    table = np.array([places[text] for text in texts] or [0], dtype=np.int64)
    return Coded(table[codes], tuple(ordered))


def too_many(most: int) -> InputError:
    """Return the error for too many groups."""
    return InputError(f"there are more than {most:,} groups, the most that can be certified at once")


def _numbered(groups: Any, name: str) -> tuple[Codes, Sequence[Any]]:
    """Return a number for each row, and the group of each number; -1 is a missing value."""
    categories = getattr(getattr(groups, "cat", groups), "categories", None)
    if categories is not None and hasattr(categories, "tolist"):  # pandas, which has numbered them already
        held = getattr(groups, "cat", groups)
        codes, used = _of_array(np.asarray(held.codes, dtype=np.int64), name)
        listed = categories.tolist()
        return codes, [None if place < 0 else listed[place] for place in used]
    if hasattr(groups, "iloc") and hasattr(groups, "factorize") and getattr(groups.dtype, "kind", "O") != "O":
        codes, uniques = groups.factorize()
        return np.asarray(codes, dtype=np.int64), list(uniques)
    if getattr(getattr(groups, "dtype", None), "time_unit", None) == "ns" and hasattr(groups, "to_numpy"):
        zone = getattr(groups.dtype, "time_zone", None)  # Polars, whose lists drop nanoseconds
        texts = list(map(as_group, groups.to_numpy()))
        return _of_objects([one if one is None or zone is None else f"{one}+00:00" for one in texts], name)
    for method in ("to_list", "to_pylist"):
        if hasattr(groups, method):  # pandas' objects, Polars and Arrow: their missing values are None
            return _of_objects(getattr(groups, method)(), name)
    if isinstance(groups, (list, tuple)):
        return _of_objects(groups, name)
    return _of_array(as_array(groups, name), name)


def _of_array(array: NDArray[Any], name: str) -> tuple[Codes, Sequence[Any]]:
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one group per point, got shape {array.shape}; pass one column,"
            " and if points belong to several groups, calibrate each column with its share of delta"
        )
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        if high - low < max(_DENSE * array.size, _SMALL_TABLE):
            places = array.astype(np.int64) - low if low >= -(2**62) and high < 2**62 else array - array.min()
            numbers = np.zeros(high - low + 1, dtype=np.int64)
            numbers[places] = 1
            uniques = np.flatnonzero(numbers)
            numbers[uniques] = np.arange(uniques.size)
            return numbers[places], (uniques + low).tolist()
    if array.dtype.kind in "biufmM":
        values, codes = np.unique(array, return_inverse=True)
        return codes.reshape(-1).astype(np.int64, copy=False), list(values)
    return _of_objects(array.tolist(), name)


def _of_objects(values: Sequence[Any], name: str) -> tuple[Codes, Sequence[Any]]:
    kinds = set(map(type, values))
    truths = {one for one in kinds if issubclass(one, _TRUTH)}  # Python holds them to be numbers
    if truths and any(issubclass(one, _COUNTED) for one in kinds - truths):
        raise InputError(
            f"{name} mix truth values and numbers, which Python treats as equal; make them texts"
        )
    apart = len(kinds - {str, type(None)}) > 1 or Decimal in kinds  # what Python holds equal has other texts
    if apart:
        values = [(type(one), one) for one in map(as_group, values)]
    try:
        found = {value: number for number, value in enumerate(dict.fromkeys(values))}
    except TypeError as error:
        raise InputError(f"{name} must be one value for each point: {error}; pass a single column") from error
    codes = np.fromiter(map(found.__getitem__, values), np.int64, len(values))
    return codes, [one for _, one in found] if apart else list(found)


def places_of(values: Sequence[Group]) -> dict[str | None, int]:
    """Return the place of each group by its text."""
    return dict(zip(texts_of(values), range(len(values)), strict=True))


def as_groups(values: Sequence[Any]) -> list[Group]:
    """Return each value as a group; texts and whole numbers, perhaps a million, are converted together."""
    kinds = set(map(type, values))
    if kinds == {str} and max(map(len, values)) <= LONGEST_NAME:
        return list(values)
    if kinds == {int} and max(values) < _LARGEST and min(values) > -_LARGEST:
        return list(values)
    return list(map(as_group, values))


def texts_of(groups: Sequence[Group]) -> list[str | None]:
    """Return the text of each group, converted together in the same way."""
    kinds = set(map(type, groups))
    return list(map(str, groups)) if kinds <= {str, int} else list(map(text_of, groups))


class Lookup:
    """The place of each of several groups, found by its text."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._places = places_of(groups)

    def place(self, group: object) -> int | None:
        """Return the place of a group, None if it is not among them."""
        return self._places.get(text_of(as_group(group)))

    def places(self, groups: GroupColumn) -> Codes:
        """Return the place of each row's group, -1 for an unknown group."""
        found = coded(groups)
        places = [self._places.get(text, NEVER) for text in texts_of(found.values)]
        return np.array(places or [0], dtype=np.int64)[found.codes]
