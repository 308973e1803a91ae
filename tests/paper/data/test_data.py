"""The registry says what the loaders return, and the loaders return what stands in the files."""

import csv
import gzip
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from pac_wrap.errors import InputError
from pac_wrap_paper import data as datasets
from pac_wrap_paper.data import Dataset
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import locate
from pac_wrap_paper.data.tabular import load_digit_rows, load_digits
from support.datafolder import needs
from support.slow import slow_but

WHOLE = ("thyroid", "campaign", "celeba", "census", "usps", "mnist")
NAMES = (*WHOLE, "nasa", "smd", "adbench")


def path_of(name: str, place: int = 0) -> Path:
    path = locate(ENTRIES[name].files[place])
    assert path is not None
    return path


def test_the_names_are_those_of_the_modules() -> None:
    assert datasets.names() == NAMES


def test_the_files_are_those_that_the_loaders_read() -> None:
    needs("usps")
    assert datasets.files("usps") == (path_of("usps", 0), path_of("usps", 1))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "census" else []) for name in WHOLE]
)
def test_the_facts_are_those_of_the_data(name: str) -> None:
    needs(name)
    loaded, entry = datasets.load(name), ENTRIES[name]
    assert loaded.X.shape == (entry.rows, entry.columns)
    assert loaded.n_anomalies == entry.anomalies
    assert loaded.X.dtype == np.float32
    assert loaded.y.dtype == np.int8
    assert loaded.X.flags.c_contiguous
    assert loaded.y.shape == (entry.rows,)
    assert np.isfinite(loaded.X).all()
    assert np.unique(loaded.y).tolist() == [0, 1]
    assert (loaded.X.min(), loaded.X.max()) == (-1.0 if name == "usps" else 0.0, 1.0)
    assert (loaded.name, loaded.source) == (name, entry.source)
    assert (loaded.licence, loaded.citation) == (entry.licence, entry.citation)


@pytest.mark.parametrize("name", NAMES)
def test_the_files_have_the_sizes_and_hashes_of_the_registry(name: str) -> None:
    needs(name)
    for place, file in enumerate(ENTRIES[name].files):
        content = path_of(name, place).read_bytes()
        assert len(content) == file.size
        assert hashlib.sha256(content).hexdigest() == file.sha256


def test_every_entry_is_complete() -> None:
    for name, entry in ENTRIES.items():
        for text in (entry.source, entry.licence, entry.citation):
            assert text.strip() == text != "", name
        assert entry.source.startswith("http")
        for file in entry.files:
            assert file.url.startswith("https://")
            assert file.url.endswith("/" + file.name.rpartition("/")[2]) != bool(file.original)
            assert len(bytes.fromhex(file.sha256)) == 32
    hashes = [file.sha256 for entry in ENTRIES.values() for file in entry.files]
    assert len(set(hashes)) == len(hashes) == 13 + 43


def test_only_mnist_has_public_hashes() -> None:
    public = {name for name, entry in ENTRIES.items() for file in entry.files if file.published}
    assert public == {"mnist"}
    assert all(file.published for file in ENTRIES["mnist"].files)


@pytest.mark.parametrize("name", slow_but(2, ["thyroid", "campaign", "celeba"]))
def test_tables_hold_the_numbers_of_their_text(name: str) -> None:
    needs(name)
    loaded = datasets.load(name)
    with path_of(name).open(newline="") as text:
        rows = list(csv.reader(text))[1:]
    assert len(rows) == loaded.y.size
    for place in (0, 1, 777, 5000, len(rows) - 1):
        *values, label = map(float, rows[place])
        assert loaded.X[place].tolist() == np.array(values, dtype=np.float32).tolist()
        assert loaded.y[place] == label
    assert [int(row[-1]) for row in rows] == loaded.y.tolist()


def usps_lines(digits: Sequence[int]) -> Iterator[tuple[int, list[float]]]:
    for place in (0, 1):
        with gzip.open(path_of("usps", place), "rt") as text:
            for line in text:
                digit, *pixels = map(float, line.split())
                if digit in digits:
                    yield int(digit), pixels


def test_usps_has_the_counts_of_its_parts_and_the_pixels_of_its_text() -> None:
    needs("usps")
    loaded = load_digit_rows("usps")
    assert loaded.n_train == 3044
    assert np.bincount(loaded.y[:3044]).tolist() == [2502, 542]
    assert np.bincount(loaded.y[3044:]).tolist() == [706, 166]
    for row, (digit, pixels) in enumerate(usps_lines((0, 6, 8, 9))):
        assert loaded.y[row] == (digit == 8)
        if row % 500 == 0:
            assert loaded.X[row].tolist() == np.array(pixels, dtype=np.float32).tolist()


def test_mnist_has_the_pixels_of_its_bytes() -> None:
    needs("mnist")
    loaded = load_digit_rows("mnist", normal=(1,), anomalous=(7, 3))
    images, labels = (gzip.decompress(path_of("mnist", place).read_bytes()) for place in (2, 3))
    assert (len(images), len(labels)) == (16 + 10_000 * 784, 8 + 10_000)
    assert loaded.n_train == 6742 + 6265 + 6131
    wanted = [place for place in range(10_000) if labels[8 + place] in (1, 3, 7)]
    assert len(wanted) == loaded.y.size - loaded.n_train
    assert [labels[8 + place] in (3, 7) for place in wanted] == loaded.y[loaded.n_train :].tolist()
    for row in (0, 100, len(wanted) - 1):
        start = 16 + 784 * wanted[row]
        pixels = np.array(list(images[start : start + 784]), dtype=np.float32) / np.float32(255)
        assert loaded.X[loaded.n_train + row].tolist() == pixels.tolist()


def test_all_ten_digits_come_in_two_parts() -> None:
    needs("usps")
    (train, digits), (test, others) = load_digits("usps")
    assert (train.shape, test.shape) == ((7291, 256), (2007, 256))
    assert set(digits) == set(others) == set(range(10))


@pytest.mark.parametrize("name", ["usps", "mnist"])
@pytest.mark.parametrize(
    ("normal", "anomalous", "sentence"),
    [
        ((), (8,), r"normal must be one or more digits from 0 to 9, such as \(0, 6, 9\), got \(\)"),
        ((1,), (10,), r"anomalous must be one or more digits .* got \(10,\)"),
        ((1,), 8, r"anomalous must be one or more digits .* got 8$"),
        ("1", (8,), "normal must be one or more digits .* got '1'"),
        ((1, 8, 2), (8, 2), r"not both, got \[2, 8\] in normal and in anomalous; take it out of one"),
    ],
)
def test_other_digits_are_refused(
    name: Literal["usps", "mnist"], normal: Any, anomalous: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        load_digit_rows(name, normal, anomalous)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("tyroid", "did you mean 'thyroid'? "), ("MNIST", "did you mean 'mnist'? "), ("x", ""), ("store", "")],
)
def test_an_unknown_name_lists_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        datasets.load(name)
    assert str(caught.value) == f"there is no data set {name!r}; {hint}the data sets are {', '.join(NAMES)}"


def test_a_data_set_shows_its_size_and_not_its_rows() -> None:
    y = np.repeat(np.array([0, 1], dtype=np.int8), [9998, 2])
    shown = Dataset(np.zeros((10_000, 3), np.float32), y, "name", "where", "which", "who", 7000)
    assert repr(shown) == "Dataset('name': 10,000 x 3, 2 anomalies, 0.02 %)"
    assert str(shown).splitlines() == [
        "name: 10,000 x 3, 2 anomalies, 0.02 %",
        "the first 7,000 rows are the training part",
        "source: where",
        "licence: which",
        "cite: who",
    ]
    empty = Dataset(np.zeros((0, 3), np.float32), y[:0], "none", "", "", "")
    assert repr(empty) == "Dataset('none': 0 x 3, 0 anomalies, 0 %)"
    assert "training part" not in str(empty)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'duckdb', 'sklearn', 'scipy', 'pandas', 'pooch', 'requests', 'tqdm'}"
    script = f"import sys, pac_wrap_paper.data; sys.exit(str(sorted({heavy} & set(sys.modules)) or ''))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_loading_needs_neither_pandas_nor_pooch() -> None:
    needs("thyroid", "usps")
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'pooch', 'requests', 'tqdm']));"
        "from pac_wrap_paper.data import load; print(load('thyroid').X.shape, load('usps').X.shape)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(7200, 21) (3916, 256)\n", "")
