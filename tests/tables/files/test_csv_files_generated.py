"""Generated CSV files: every reader finds the rows that Python's csv finds, or refuses."""

from pathlib import Path

import pytest

from support.csv_readers import by_dask, by_decide, by_duckdb, by_spark, by_stream
from support.examples import examples
from support.generated_csv import generate, read_by_csv

looked_at = pytest.mark.usefixtures("each_survey")
FILES = 2000
ENGINE_FILES = 200


def test_the_generator_makes_every_kind_of_file() -> None:
    kinds = {"read": 0, "bad row": 0, "bad score": 0, "quotes": 0, "excused": 0, "no header": 0}
    for seed in range(FILES):
        content, _ = generate(seed)
        reading = read_by_csv(content)
        kinds["no header"] += reading is None
        if reading is not None:
            kinds["read"] += reading.bad_row is None and not reading.excused
            kinds["bad row"] += reading.bad_row is not None
            kinds["bad score"] += reading.bad_row is None and reading.bad_score is not None
            kinds["quotes"] += b'"' in content
            kinds["excused"] += reading.excused
    assert min(kinds.values()) > FILES // 60, kinds
    assert kinds["read"] > FILES // 2, kinds
    assert generate(1) == generate(1) != generate(2)


@pytest.mark.slow
@looked_at
def test_duckdb_reads_what_csv_reads(tmp_path: Path) -> None:
    assert by_duckdb(range(FILES), tmp_path) > FILES // 2


@pytest.mark.hypothesis
def test_the_stream_reads_what_csv_reads_however_it_is_cut() -> None:
    files = examples(FILES)
    assert by_stream(range(files)) > files // 2


@looked_at
@pytest.mark.hypothesis
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_every_cell_is_kept_and_every_row_decided(form: str, tmp_path: Path) -> None:
    files = examples(FILES // 2)
    assert by_decide(range(FILES, FILES + files), tmp_path, form) > files // 3


@looked_at
@pytest.mark.hypothesis
def test_dask_reads_what_csv_reads(tmp_path: Path) -> None:
    pytest.importorskip("dask")
    files = examples(3 * ENGINE_FILES)
    assert by_dask(range(files), tmp_path) > files // 3


@pytest.mark.slow
def test_spark_reads_what_csv_reads(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert by_spark(range(ENGINE_FILES), tmp_path) > ENGINE_FILES // 3
