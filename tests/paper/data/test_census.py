"""Census is made from text: 500 columns by a rule that is followed here a second time, without DuckDB."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pac_wrap_paper.data import Dataset
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import locate
from pac_wrap_paper.data.tabular import load_census
from support.datafolder import needs

pytestmark = pytest.mark.slow  # the text of 300,000 rows is read twice
NUMERIC = (0, 5, 16, 17, 18, 30, 39)
WEIGHT = 24
TRAINING_ROWS, TEST_ROWS = 199_523, 99_762
# both ends of both files, and rows with and without question marks in between
SPOTS = (0, 1, 2, 12_345, TRAINING_ROWS - 1, TRAINING_ROWS, 250_000, TRAINING_ROWS + TEST_ROWS - 1)
LIMIT = 1.6e9
PEAK = """
from pac_wrap_paper.data import load
load("census")
print([int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")][0] * 1024)
"""


@pytest.fixture(scope="module")
def loaded() -> Dataset:
    needs("census")
    return load_census()


@pytest.fixture(scope="module")
def text() -> list[list[str]]:
    needs("census")
    rows: list[list[str]] = []
    for file in ENTRIES["census"].files:
        path = locate(file)
        assert path is not None
        with gzip.open(path, "rt", newline="") as packed:
            # one string per spelling, or the text would fill the memory
            rows += ([sys.intern(field.strip()) for field in row] for row in csv.reader(packed))
    return rows


@pytest.fixture(scope="module")
def spelt(text: list[list[str]]) -> list[set[str]]:
    return [set(column) for column in zip(*text, strict=True)]


def test_the_rule_gives_500_columns_and_no_other_does(spelt: list[set[str]]) -> None:
    assert len(spelt) == 42
    nominal = [field for field in range(41) if field not in (*NUMERIC, WEIGHT)]
    counts = {field: len(spelt[field] - {"?"}) for field in nominal}
    assert [field for field, count in counts.items() if count == 2] == [12, 40]
    assert [spelt[field] for field in (12, 40)] == [{"Female", "Male"}, {"94", "95"}]
    assert len(NUMERIC) + sum(count if count > 2 else 1 for count in counts.values()) == 500
    # with two columns for sex and year, and with one more for each field that has a question mark
    assert len(NUMERIC) + sum(counts.values()) == 502
    marked = sum("?" in spelt[field] for field in nominal)
    assert (marked, 500 + marked) == (8, 508)


def test_its_parts_have_the_documented_sizes(loaded: Dataset) -> None:
    assert loaded.X.shape == (TRAINING_ROWS + TEST_ROWS, 500)
    assert loaded.n_train == TRAINING_ROWS
    assert int(loaded.y[:TRAINING_ROWS].sum()) == 12_382
    assert int(loaded.y[TRAINING_ROWS:].sum()) == 6_186


def test_labels_are_those_of_the_text(loaded: Dataset, text: list[list[str]], spelt: list[set[str]]) -> None:
    assert spelt[41] == {"- 50000.", "50000+."}
    assert loaded.y.tolist() == [row[41] == "50000+." for row in text]


def test_rows_are_those_of_the_text(loaded: Dataset, text: list[list[str]], spelt: list[set[str]]) -> None:
    expected: dict[int, list[float]] = {place: [] for place in SPOTS}
    for field in (field for field in range(41) if field != WEIGHT):
        if field in NUMERIC:
            numbers = sorted(map(float, spelt[field]))
            least, greatest = numbers[0], numbers[-1]
            for place, row in expected.items():
                row.append((float(text[place][field]) - least) / (greatest - least))
        else:
            values = sorted(spelt[field] - {"?"})
            for place, row in expected.items():
                row += (float(text[place][field] == value) for value in values[len(values) == 2 :])
    for place, row in expected.items():
        assert loaded.X[place].tolist() == np.array(row, dtype=np.float32).tolist(), place
    assert any("?" in text[place] for place in SPOTS)
    assert any("?" not in text[place] for place in SPOTS)


def test_numeric_columns_span_0_to_1_and_the_others_are_0_or_1(
    loaded: Dataset, spelt: list[set[str]]
) -> None:
    widths = [
        1 if field in NUMERIC or field in (12, 40) else 0 if field == WEIGHT else len(spelt[field] - {"?"})
        for field in range(41)
    ]
    starts = np.cumsum([0, *widths[:-1]])
    numeric = starts[list(NUMERIC)]
    assert loaded.X[:, numeric].min(axis=0).tolist() == [0.0] * 7
    assert loaded.X[:, numeric].max(axis=0).tolist() == [1.0] * 7
    others = np.setdiff1d(np.arange(500), numeric)
    ones = np.zeros(500, dtype=int)
    for rows in np.array_split(loaded.X, 30):
        ones += (rows == 1.0).sum(axis=0)
        assert ((rows == 0.0) | (rows == 1.0))[:, others].all()
    assert (ones[others] > 0).all()
    assert (ones[others] < len(loaded.X)).all()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_loading_stays_within_memory() -> None:
    needs("census")
    # getrusage would count what the parent process held before the script started
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert 4 * 299_285 * 500 < int(done.stdout) < LIMIT
