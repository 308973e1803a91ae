"""Cells of files, as Arrow columns: scores become exact numbers, labels become texts as DuckDB makes them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.kernels import Floats
from pac_wrap.labels import LOOKED_AT, without_case
from pac_wrap.numerals import number


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """How often the first few labels occur, in the order of their texts; None, no label, is the last.

    >>> LabelCounts.of({"ok": 2}) + LabelCounts.of({None: 1, "ok": 3, "bad": 1})
    LabelCounts(counts=(('bad', 1), ('ok', 5), (None, 1)))
    """

    counts: tuple[tuple[str | None, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str | None, int]) -> "LabelCounts":
        """Return the first few of these counts; all parts of the data that hold such a label keep it."""
        ordered = sorted(counts.items(), key=lambda pair: (pair[0] is None, pair[0] or ""))
        return cls(tuple(ordered[:LOOKED_AT]))

    def __add__(self, other: "LabelCounts") -> "LabelCounts":
        return self.of(Counter(dict(self.counts)) + Counter(dict(other.counts)))


def exact_numbers(column: Any, name: str, where: str) -> Floats:
    """Return a column as float64, NaN where it is empty; of texts, only numbers are taken.

    Narrower floats are float32, as DuckDB makes them.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    try:
        narrow = pa.types.is_float32(kind) or pa.types.is_float16(kind)
        return np.asarray(column.cast(pa.float32() if narrow else pa.float64(), safe=False).to_numpy())
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"column {name!r} must hold numbers, but its type is {kind}; pick the score column"
        ) from error
    except pa.ArrowInvalid:
        return np.array([_number(text, name, where) for text in column.cast(pa.string()).to_pylist()])


class Labels(NamedTuple):
    """Labels as lower-case texts: the different ones, and for each row which it is; None is no label."""

    texts: list[str | None]
    places: NDArray[np.integer]

    @classmethod
    def of(cls, column: Any) -> "Labels":
        """Return the labels of a column: 1 is "1", 1.0 is "1.0", true is "true"."""
        import pyarrow as pa

        whole = column.unify_dictionaries().combine_chunks()
        encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
        found = encoded.dictionary
        real = pa.types.is_floating(found.type)
        texts = found.to_numpy(zero_copy_only=False) if real else found.cast(pa.string()).to_pylist()
        lowered = [without_case(str(text)) for text in texts]
        return cls([*lowered, None], encoded.indices.fill_null(len(lowered)).to_numpy())

    @property
    def counts(self) -> LabelCounts:
        """How often each occurs."""
        counts: Counter[str | None] = Counter()
        for text, count in zip(self.texts, np.bincount(self.places, minlength=len(self.texts)), strict=True):
            counts[text] += int(count)
        return LabelCounts.of(+counts)

    def among(self, marks: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return for each row whether its label is one of the marks."""
        marked: NDArray[np.bool_] = np.array([text in marks for text in self.texts])
        return np.take(marked, self.places)


def _number(text: str | None, name: str, where: str) -> float:
    value = number(text or "")
    if value is None:
        raise InputError(f"column {name!r} must hold numbers, got {text!r} in {where}; fix that row")
    return value
