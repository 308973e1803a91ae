"""Data sets whose rows have no order: four tables of the DevNet collection, those of ADBench, two of digits.

Of the digits 0, 6 and 9 are normal and 8 is anomalous, as in the paper, unless others are named; the rest is
left out.
"""

import gzip
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import DataError, InputError
from pac_wrap.tables.files.connection import connected
from pac_wrap.tables.files.csv_files import headers
from pac_wrap.tables.table import open_table
from pac_wrap_paper.data.adbench import TABLES
from pac_wrap_paper.data.dataset import Dataset
from pac_wrap_paper.data.registry import ENTRIES, RemoteFile
from pac_wrap_paper.data.store import fetch

Images = tuple[NDArray[np.float32], NDArray[np.int64]]
# fields of a line of the census, counted from 0
_NUMERIC: Final = (0, 5, 16, 17, 18, 30, 39)
_AGE: Final = 0
_SEX: Final = 12
_WEIGHT: Final = 24
_LABEL: Final = 41
_FEATURES: Final = tuple(field for field in range(_LABEL) if field != _WEIGHT)
_TRAINING_ROWS: Final = 199_523
_PIXELS: Final = 28 * 28
# an IDX file begins with its kind and the length of each dimension, four bytes each
_IMAGE_HEADER: Final = 16
_LABEL_HEADER: Final = 8


def load_thyroid() -> Dataset:
    """Return 7,200 patients, 534 of whom have a hyper- or subnormal thyroid function."""
    return _load_table("thyroid")


def load_campaign() -> Dataset:
    """Return 41,188 calls of a bank to its clients, 4,640 of which led to a deposit."""
    return _load_table("campaign")


def load_celeba() -> Dataset:
    """Return 39 attributes of 202,599 portraits, 4,547 of which are of bald people."""
    return _load_table("celeba")


def load_census() -> Dataset:
    """Return 299,285 people surveyed in 1994 and 1995, 18,568 of whom have an income above 50,000 dollars.

    The rows of census-income.data come first, then those of census-income.test. The 500 columns of the DevNet
    collection are made from the UCI text. The attributes keep their order. The seven numeric ones are scaled
    to [0, 1] by the least and the greatest value of all rows. Every other attribute has one column for each
    value that occurs, in alphabetical order, and none for `?`; an attribute of two values (sex and
    year) has one column, which is 1 for the second of them. The instance weight is left out, as
    census-income.names demands.
    """
    entry = ENTRIES["census"]
    paths = [fetch(file) for file in entry.files]
    with connected(paths) as connection:
        _read(connection, paths)
        y = _column(connection, f"CAST(f{_LABEL} = '50000+.' AS TINYINT)").astype(np.int8)
        values = {field: [] if field in _NUMERIC else _values(connection, field) for field in _FEATURES}
        X = np.zeros((y.size, sum(map(_width, values.values()))), dtype=np.float32)
        start = 0
        for field, known in values.items():
            if field in _NUMERIC:
                X[:, start] = _scaled(_column(connection, f"CAST(f{field} AS DOUBLE)"))
            else:
                _mark(X[:, start : start + _width(known)], _places(connection, field, known))
            start += _width(known)
    return Dataset(X, y, "census", entry.source, entry.licence, entry.citation, _TRAINING_ROWS)


class People(NamedTuple):
    """The census with one column for each attribute, texts numbered in alphabetical order from 0, `?` -1."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    age: NDArray[np.int64]
    male: NDArray[np.bool_]
    n_train: int


def census_people() -> People:
    """Return the rows of `load_census` as they were answered, with everybody's age and sex."""
    paths = [fetch(file) for file in ENTRIES["census"].files]
    with connected(paths) as connection:
        _read(connection, paths)
        y = _column(connection, f"CAST(f{_LABEL} = '50000+.' AS TINYINT)").astype(np.int8)
        X = np.empty((y.size, len(_FEATURES)), dtype=np.float32)
        for place, field in enumerate(_FEATURES):
            if field in _NUMERIC:
                X[:, place] = _column(connection, f"CAST(f{field} AS DOUBLE)")
            else:
                X[:, place] = _numbered(connection, field, _values(connection, field))
        age, sex = _column(connection, f"CAST(f{_AGE} AS BIGINT)"), _column(connection, f"f{_SEX} = 'Male'")
    return People(X, y, age.astype(np.int64), sex.astype(bool), _TRAINING_ROWS)


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
    rows, labels = X.astype(np.float32), y.astype(np.int8)
    return Dataset(rows, labels, part, entry.source, entry.licence, entry.citation)


def _load_table(name: str) -> Dataset:
    """Return a table whose last column is the label, as the DevNet collection scales it to [0, 1]."""
    entry = ENTRIES[name]
    (file,) = entry.files
    path = fetch(file)
    (header,) = headers([path], (), None)
    with open_table([str(path)], header.names, delimiter=header.delimiter) as table:
        *columns, labels = table.arrays("SELECT COLUMNS(*)::FLOAT FROM source").values()
    X = np.empty((labels.size, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        X[:, place] = column
    return Dataset(X, labels.astype(np.int8), name, entry.source, entry.licence, entry.citation)


def _read(connection: duckdb.DuckDBPyConnection, paths: list[Path]) -> None:
    """Make the table `person` of the trimmed fields f0 to f41, in the order of the files."""
    columns = ", ".join(f"f{field}: 'VARCHAR'" for field in range(_LABEL + 1))
    connection.execute(
        "CREATE TABLE person AS SELECT trim(COLUMNS(*)) FROM read_csv(?, auto_detect = false, header = false,"
        f" delim = ',', quote = '', escape = '', comment = '', columns = {{{columns}}})",
        [[os.path.realpath(path) for path in paths]],
    )


def _values(connection: duckdb.DuckDBPyConnection, field: int) -> list[str]:
    """Return the values of a field in alphabetical order, without the question mark."""
    query = f"SELECT DISTINCT f{field} FROM person WHERE f{field} <> '?' ORDER BY 1"
    return [value for (value,) in connection.execute(query).fetchall()]


def _width(values: list[str]) -> int:
    # a numeric attribute has no values and one column
    return len(values) if len(values) > 2 else 1


def _scaled(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    least, greatest = float(numbers.min()), float(numbers.max())
    return (numbers - least) / (greatest - least)


def _places(connection: duckdb.DuckDBPyConnection, field: int, values: list[str]) -> NDArray[np.int16]:
    """Return the column of every row's value, counted from 0; -1 where there is none."""
    # one column of two values is that of the second; the first one then has none
    return _numbered(connection, field, values if len(values) > 2 else values[1:])


def _numbered(connection: duckdb.DuckDBPyConnection, field: int, values: list[str]) -> NDArray[np.int16]:
    """Return the place of every row's value among those listed, from 0; -1 where it is not among them."""
    return _column(
        connection, f"CAST(coalesce(list_position(?, f{field}), 0) - 1 AS SMALLINT)", [values]
    ).astype(np.int16)


def _mark(columns: NDArray[np.float32], places: NDArray[np.int16]) -> None:
    rows = np.flatnonzero(places >= 0)
    columns[rows, places[rows]] = 1.0


def _column(
    connection: duckdb.DuckDBPyConnection, expression: str, parameters: list[list[str]] | None = None
) -> NDArray[Any]:
    query = f"SELECT {expression} AS wanted FROM person"
    return np.asarray(connection.execute(query, parameters or []).fetchnumpy()["wanted"])


def load_usps(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return digits of zip codes, the training part first: 16 x 16 pixels from -1 (white) to 1."""
    _check_digits(normal, anomalous)
    return _select_digits("usps", load_digits("usps"), normal, anomalous)


def load_mnist(normal: Sequence[int] = (0, 6, 9), anomalous: Sequence[int] = (8,)) -> Dataset:
    """Return handwritten digits, the training part first: 28 x 28 pixels from 0 to 1, divided by 255."""
    _check_digits(normal, anomalous)
    return _select_digits("mnist", load_digits("mnist"), normal, anomalous)


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


def _check_digits(normal: Sequence[int], anomalous: Sequence[int]) -> None:
    """Refuse anything but two groups of digits that share none."""
    for name, digits in (("normal", normal), ("anomalous", anomalous)):
        if isinstance(digits, (int, str)) or not digits or not set(digits) <= set(range(10)):
            raise InputError(
                f"{name} must be one or more digits from 0 to 9, such as (0, 6, 9), got {digits!r}"
            )
    shared = sorted(set(normal) & set(anomalous))
    if shared:
        raise InputError(
            f"a digit must be normal or anomalous, not both, got {shared} in normal and in anomalous;"
            " take it out of one of them"
        )


def _select_digits(
    name: str, parts: tuple[Images, Images], normal: Sequence[int], anomalous: Sequence[int]
) -> Dataset:
    """Return the images of those digits out of a training and a test part, each in the order of its file."""
    kept = [np.isin(digits, [*normal, *anomalous]) for _, digits in parts]
    images, digits = (
        np.concatenate([part[field][rows] for part, rows in zip(parts, kept, strict=True)])
        for field in (0, 1)
    )
    y = np.isin(digits, anomalous).astype(np.int8)
    entry = ENTRIES[name]
    n_train = int(np.count_nonzero(kept[0]))
    return Dataset(images, y, name, entry.source, entry.licence, entry.citation, n_train)
