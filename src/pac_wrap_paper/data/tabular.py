"""Data sets whose rows have no order: four tables of the DevNet collection, those of ADBench, two of digits.

Of the digits 0, 6 and 9 are normal and 8 is anomalous, as in the paper, unless others are named; the rest is
left out.
"""

import gzip
import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap import DataError, InputError
from pac_wrap_paper.data.dataset import Dataset
from pac_wrap_paper.data.registry import ENTRIES, TABLES, RemoteFile
from pac_wrap_paper.data.store import fetch

Images = tuple[NDArray[np.float32], NDArray[np.int64]]
# fields of a line of the census, counted from 0
_NUMERIC: Final = (0, 5, 16, 17, 18, 30, 39)
_AGE, _SEX, _WEIGHT, _LABEL = 0, 12, 24, 41
_FEATURES: Final = tuple(field for field in range(_LABEL) if field != _WEIGHT)
_TRAINING_ROWS: Final = 199_523
_PIXELS: Final = 28 * 28
# an IDX file begins with its kind and the length of each dimension, four bytes each
_IMAGE_HEADER, _LABEL_HEADER = 16, 8


def load_table(name: str) -> Dataset:
    """Return patients, calls of a bank or portraits: a table whose last column is the label.

    534 of 7,200 patients have a hyper- or subnormal thyroid function, 4,640 of 41,188 calls led to a deposit,
    and 4,547 of 202,599 portraits are of bald people. The DevNet collection scaled the columns to [0, 1].
    """
    (file,) = ENTRIES[name].files
    rows = np.loadtxt(fetch(file), dtype=np.float32, delimiter=",", skiprows=1)
    return _dataset(np.ascontiguousarray(rows[:, :-1]), rows[:, -1], name)


def _dataset(X: NDArray[np.float32], y: NDArray[Any], name: str, n_train: int | None = None) -> Dataset:
    entry = ENTRIES[name]
    return Dataset(X, y.astype(np.int8), name, entry.source, entry.licence, entry.citation, n_train)


def load_census() -> Dataset:
    """Return 299,285 people surveyed in 1994 and 1995, 18,568 of whom have an income above 50,000 dollars.

    The rows of census-income.data come first, then those of census-income.test. The 500 columns of the DevNet
    collection are made from the UCI text. The attributes keep their order. The seven numeric ones are scaled
    to [0, 1] by the least and the greatest value of all rows. Every other attribute has one column for each
    value that occurs, in alphabetical order, and none for `?`; an attribute of two values (sex and
    year) has one column, which is 1 for the second of them. The instance weight is left out, as
    census-income.names demands.
    """
    answers, texts = _census()
    # one column of two values is that of the second; the first one then has none
    first = {field: 1 if len(known) == 2 else 0 for field, known in texts.items()}
    widths = {field: len(texts[field]) - first[field] if field in texts else 1 for field in _FEATURES}
    X = np.zeros((answers[_LABEL].size, sum(widths.values())), dtype=np.float32)
    start = 0
    for field, width in widths.items():
        column = answers[field]
        if field in texts:
            rows = np.flatnonzero(column >= first[field])
            X[rows, start - first[field] + column[rows]] = 1.0
        else:
            X[:, start] = (column - column.min()) / (column.max() - column.min())
        start += width
    return _dataset(X, answers[_LABEL] == texts[_LABEL].index("50000+."), "census", _TRAINING_ROWS)


class People(NamedTuple):
    """The census with one column for each attribute, texts numbered in alphabetical order from 0, `?` -1."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    age: NDArray[np.int64]
    male: NDArray[np.bool_]
    n_train: int


def census_people() -> People:
    """Return the rows of `load_census` as they were answered, with everybody's age and sex."""
    answers, texts = _census()
    X = np.empty((answers[_LABEL].size, len(_FEATURES)), dtype=np.float32)
    for place, field in enumerate(_FEATURES):
        X[:, place] = answers[field]
    y = (answers[_LABEL] == texts[_LABEL].index("50000+.")).astype(np.int8)
    male = np.asarray(answers[_SEX] == texts[_SEX].index("Male"))
    return People(X, y, answers[_AGE].astype(np.int64), male, _TRAINING_ROWS)


def _census() -> tuple[dict[int, NDArray[Any]], dict[int, list[str]]]:
    """Return the fields of all people, and the texts of those that are not numeric, in alphabetical order.

    A text is given by its place among them, from 0, a question mark by -1.
    """
    answers: dict[int, NDArray[Any]] = {}
    texts: dict[int, list[str]] = {}
    columns = ", ".join(f"f{field}: 'VARCHAR'" for field in range(_LABEL + 1))
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            "CREATE TABLE person AS SELECT trim(COLUMNS(*)) FROM read_csv(?, auto_detect = false,"
            f" header = false, delim = ',', quote = '', escape = '', comment = '', columns = {{{columns}}})",
            [[os.path.realpath(fetch(file)) for file in ENTRIES["census"].files]],
        )
        for field in (*_FEATURES, _LABEL):
            wanted, given = f"CAST(f{field} AS DOUBLE)", []
            if field not in _NUMERIC:
                query = f"SELECT DISTINCT f{field} FROM person WHERE f{field} <> '?' ORDER BY 1"
                texts[field] = [text for (text,) in connection.execute(query).fetchall()]
                wanted, given = (
                    f"CAST(coalesce(list_position(?, f{field}), 0) - 1 AS SMALLINT)",
                    [texts[field]],
                )
            found = connection.execute(f"SELECT {wanted} AS wanted FROM person", given).fetchnumpy()
            answers[field] = np.asarray(found["wanted"])
    return answers, texts


def load_adbench(part: str) -> Dataset:
    """Return one table of ADBench by its name."""
    if part not in TABLES:
        near = get_close_matches(str(part), TABLES, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"there is no table {part!r} of adbench; {hint}the tables are {', '.join(TABLES)}")
    entry, table = ENTRIES["adbench"], TABLES[part]
    (file,) = (file for file in entry.files if file.sha256 == table.sha256)
    path = fetch(file)
    try:
        with np.load(path, allow_pickle=False) as opened:
            X, y = opened["X"], opened["y"]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path} must be a NumPy archive with X and y, but {error}; remove it") from error
    return Dataset(X.astype(np.float32), y.astype(np.int8), part, entry.source, entry.licence, entry.citation)


def load_digit_rows(
    name: Literal["usps", "mnist"], normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)
) -> Dataset:
    """Return images of digits, the training part first, each part in the order of its file.

    usps: of zip codes, 16 x 16 pixels from -1 (white) to 1. mnist: handwritten, 28 x 28 pixels from 0 to 1.
    """
    for title, digits in (("normal", normal), ("anomalous", anomalous)):
        if isinstance(digits, (int, str)) or not digits or not set(digits) <= set(range(10)):
            raise InputError(
                f"{title} must be one or more digits from 0 to 9, such as (0, 6, 9), got {digits!r}"
            )
    shared = sorted(set(normal) & set(anomalous))
    if shared:
        raise InputError(
            f"a digit must be normal or anomalous, not both, got {shared} in normal and in anomalous;"
            " take it out of one of them"
        )
    parts = load_digits(name)
    kept = [np.isin(digits, [*normal, *anomalous]) for _, digits in parts]
    images, shown = (
        np.concatenate([part[field][rows] for part, rows in zip(parts, kept, strict=True)])
        for field in (0, 1)
    )
    return _dataset(images, np.isin(shown, anomalous), name, int(np.count_nonzero(kept[0])))


def load_digits(name: Literal["usps", "mnist"]) -> tuple[Images, Images]:
    """Return the images and the digits of the training and of the test part, all ten of them."""
    if name == "usps":
        train, test = map(_read_usps, ENTRIES["usps"].files)
        return train, test
    train_images, train_labels, test_images, test_labels = ENTRIES["mnist"].files
    return _read_mnist(train_images, train_labels), _read_mnist(test_images, test_labels)


def _read_usps(file: RemoteFile) -> Images:
    rows = np.loadtxt(fetch(file), dtype=np.float32)
    return rows[:, 1:], rows[:, 0].astype(np.int64)


def _read_mnist(images: RemoteFile, labels: RemoteFile) -> Images:
    with gzip.open(fetch(images)) as packed:
        pixels = np.frombuffer(packed.read(), dtype=np.uint8, offset=_IMAGE_HEADER)
    with gzip.open(fetch(labels)) as packed:
        digits = np.frombuffer(packed.read(), dtype=np.uint8, offset=_LABEL_HEADER)
    return pixels.reshape(-1, _PIXELS).astype(np.float32) / np.float32(255), digits.astype(np.int64)
