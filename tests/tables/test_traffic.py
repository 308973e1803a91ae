"""Traffic in files and databases gets the certificate that it gets in memory, byte for byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pac_wrap import Guarantee, LabelWarning
from pac_wrap.errors import VacuousWarning
from pac_wrap.method.traffic.calibrate import calibrate_traffic
from pac_wrap.tables import calibrate as module
from pac_wrap.tables import database
from pac_wrap.tables.calibrate import calibrate
from support.strategies import refusal
from support.tables import empty_database
from support.traffic import PROMISES, in_memory, spelled, traffic

FORMATS = {
    "csv": "FORMAT csv, HEADER",
    "parquet": "FORMAT parquet, ROW_GROUP_SIZE 2048",
    "jsonl": "FORMAT json",
}
FALSE_ALARMS = Guarantee(max_false_alarms=0.004)
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")


def written(folder: Path, ending: str, **columns: Any) -> str:
    """Write columns to a file, None and NaN as what is missing."""
    path = folder / f"traffic.{ending}"
    with empty_database() as connection:
        # as objects, None stays what is missing
        frame = pd.DataFrame(
            {
                name: column if isinstance(column, np.ndarray) else pd.Series(column, dtype=object)
                for name, column in columns.items()
            }
        )
        connection.register("given", frame)
        shown = ", ".join(
            "CASE WHEN isnan(s) THEN NULL ELSE s END AS s" if name == "s" else name for name in columns
        )
        connection.execute(f"COPY (SELECT {shown} FROM given) TO '{path}' ({FORMATS[ending]})")
    return str(path)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("held", [10**6, 1000])
def test_a_file_of_traffic_gives_the_certificate_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, held: int
) -> None:
    """A table above the limit is read in passes, whose results must not differ."""
    monkeypatch.setattr(module, "HELD", held)
    scores, reviews = traffic()
    file = written(tmp_path, ending, s=scores, r=spelled(reviews, "numbers"))
    for name, promise in PROMISES.items():
        assert calibrate(file, promise, score="s", review="r").bare.to_json() == in_memory(
            scores, reviews, name
        )
    alarms = calibrate_traffic(scores, None, PROMISES["alarms"]).to_json()
    assert calibrate(file, PROMISES["alarms"], score="s").bare.to_json() == alarms


@pytest.mark.parametrize("way", ["booleans", "texts", "words"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_reviews_may_be_spelled_in_every_usual_way(tmp_path: Path, way: str, kind: Any) -> None:
    scores, reviews = traffic(kind=kind)
    file = written(tmp_path, "parquet", s=scores, r=spelled(reviews, way))
    made = calibrate(file, PROMISES["false alarms"], score="s", review="r")
    assert made.bare.to_json() == in_memory(scores, reviews, "false alarms")
    assert made.score_type == np.dtype(kind).name


@pytest.mark.parametrize(("name", "kind"), [(name, np.float64) for name in PROMISES] + [("both", np.float32)])
def test_a_table_in_a_database_gives_the_certificate_of_memory(name: str, kind: Any) -> None:
    scores, reviews = traffic(kind=kind)
    with empty_database() as connection:
        connection.register("given", {"s": scores, "r": reviews})
        connection.execute(
            "CREATE TABLE t AS SELECT s, CASE WHEN NOT isnan(r) THEN r > 0 END AS r FROM given"
        )
        statements = []

        def execute(text: str) -> Any:
            statements.append(text)
            return connection.execute(text).fetchall()

        made = database.calibrate(execute, "t", PROMISES[name], score="s", review="r", dialect="duckdb")
        assert made.bare.to_json() == in_memory(scores, reviews, name)
        assert len(statements) <= 4
        without = database.calibrate(execute, "t", PROMISES["alarms"], score="s", dialect="duckdb")
        assert without.bare.to_json() == calibrate_traffic(scores, None, PROMISES["alarms"]).to_json()
        plain = database.calibrate(execute, "t", PROMISES[name], score="s", review="r", dialect="ansi")
        assert plain.rule == made.rule or kind is np.float32  # standard SQL shows no type
        assert all(one.digest is None for one in plain.clauses if one.n)


@pytest.mark.parametrize("way", ["booleans", "texts"])
def test_a_table_in_postgresql_gives_the_certificate_of_memory(way: str, postgresql: Any) -> None:
    scores, reviews = traffic()
    with postgresql.transaction(force_rollback=True):
        kind = {"booleans": "BOOLEAN", "texts": "TEXT"}[way]
        postgresql.execute(f"CREATE TABLE traffic (s DOUBLE PRECISION, r {kind})")
        with postgresql.cursor() as cursor, cursor.copy("COPY traffic FROM STDIN") as copied:
            for row in zip(scores.tolist(), spelled(reviews, way), strict=True):
                copied.write_row(row)

        def execute(text: str) -> Any:
            return postgresql.execute(text).fetchall()

        columns: dict[str, Any] = {"score": "s", "review": "r", "dialect": "postgres"}
        for name, promise in PROMISES.items():
            made = database.calibrate(execute, "traffic", promise, **columns)
            assert made.bare.to_json() == in_memory(scores, reviews, name)


def test_nan_that_a_parquet_file_does_not_announce_is_a_missing_score(tmp_path: Path) -> None:
    """Writers such as Arrow leave NaN out of the statistics, from which DuckDB takes that there is none."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    scores, _ = traffic()
    parquet.write_table(arrow.table({"s": scores}), tmp_path / "traffic.parquet")
    made = calibrate(tmp_path / "traffic.parquet", PROMISES["alarms"], score="s")
    assert made.traffic.unscored == 30
    assert made.bare.to_json() == in_memory(scores, None, "alarms")


def test_what_is_wrong_with_traffic_is_one_sentence(tmp_path: Path) -> None:
    def refused(scores: list[float], reviews: list[Any], **names: str) -> str:
        file = written(tmp_path, "csv", s=np.array(scores), r=reviews)
        named: dict[str, Any] = {"score": "s", "review": "r"} | names
        return refusal(lambda: calibrate(file, FALSE_ALARMS, **named))

    assert refused([1.0, 2.0], ["1", "maybe"]) == (
        "column 'r' must be 1 (right), 0 (wrong) or empty (not reviewed), got 'maybe'; fix those rows"
    )
    assert refused([1.0, np.nan, np.nan], ["1", "0", ""]) == (
        "column 's' is empty or NaN in 1 reviewed row; give each a score, or drop the review"
    )
    assert (
        refused([1.0], ["1"], review="s")
        == "column 's' cannot be both the score and the review; name two columns"
    )
    assert refused([1.0], ["1"], review="q").startswith("there is no column 'q'")
    (tmp_path / "texts.csv").write_text("s,r\n1.5,\nhigh,\n", encoding="utf-8")
    assert "must hold numbers, got 'high' in row 2" in refusal(
        lambda: calibrate(tmp_path / "texts.csv", FALSE_ALARMS, score="s", review="r")
    )
    (tmp_path / "empty.csv").write_text("s,r\n", encoding="utf-8")
    assert refusal(lambda: calibrate(tmp_path / "empty.csv", FALSE_ALARMS, score="s", review="r")) == (
        "the table has no rows; pass all points that came"
    )
    labelled = written(tmp_path, "csv", s=np.arange(3.0), r=["1", "0", ""])
    assert refusal(lambda: calibrate(labelled, Guarantee(0.05), score="s", review="r")).startswith(
        "max_fpr from traffic needs the largest share of anomalies"
    )


def test_alarms_alone_are_no_traffic(tmp_path: Path) -> None:
    file = written(tmp_path, "csv", s=np.arange(9.0), r=["1", "0", "1"] * 3)
    with pytest.warns(LabelWarning, match="every point was reviewed"), pytest.warns(VacuousWarning):
        calibrate(file, FALSE_ALARMS, score="s", review="r")
