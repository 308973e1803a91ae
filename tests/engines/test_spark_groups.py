"""Groups in Spark: the certificate of memory byte for byte, and the verdicts of memory."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pac_wrap import GroupCertificate, calibrate_labelled
from pac_wrap.engines import spark
from pac_wrap.engines.files import EngineFiles
from pac_wrap.engines.spark import GroupedFrame
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups import values
from pac_wrap.method.groups.calibrate import GroupRequest, Part
from pac_wrap.tables.table import open_table
from support import sparksession
from support.grouped import ASKED, COLUMNS, OPTIONS, drawn, in_memory, json_of_tokens
from support.strategies import refusal
from support.tables import calibrate_groups_table

# groups with too few labels are what many of these are about
pytestmark = [
    sparksession.quiet,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        started.conf.set("spark.sql.shuffle.partitions", "3")
        started.conf.set("spark.sql.ansi.enabled", "true")
        yield started


def frame_of(session: Any, frame: pd.DataFrame, **types: str) -> Any:
    """Return the frame with the column `row`, in which NaN stays NaN and None is NULL."""
    import pyarrow as pa

    columns = {name: pa.array(values, from_pandas=False) for name, values in frame.items()}
    made = session.createDataFrame(pa.table({"row": np.arange(len(frame)), **columns})).repartition(3)
    for name, kind in types.items():
        made = made.withColumn(name, made[name].cast(kind))
    return made


@pytest.mark.parametrize("column", COLUMNS)
def test_certificate_and_verdicts_are_those_of_memory(column: str, session: Any) -> None:
    frame = drawn()
    df = frame_of(session, frame)
    options = OPTIONS["together, with a pool" if column in ("name", "float") else "each by itself"]
    found = spark.calibrate(df, ASKED, by=column, **options)
    assert found.to_json() == in_memory(frame, column, **options).to_json()
    known = in_memory(frame[frame["number"] != 2], column, **options)
    frame.loc[7:9, "score"] = [np.nan, np.inf, -np.inf]
    decided = spark.decide(frame_of(session, frame), known, group=column)
    assert decided.columns == ["row", *frame.columns, "verdict", "prediction_set"]
    rows = decided.select("row", "verdict", "prediction_set").toArrow().sort_by("row")
    with pytest.warns(UserWarning, match="1 of 4,000 scores are NaN"):
        verdicts = known.verdicts(frame["score"], frame[column])
    with pytest.warns(UserWarning, match="scores are NaN"):
        possible = known.prediction_sets(frame["score"], frame[column])
    assert rows["verdict"].to_pylist() == verdicts.tolist()
    sets = ["{" + ",".join(str(label) for label in (0, 1) if row[label]) + "}" for row in possible]
    assert rows["prediction_set"].to_pylist() == sets


def test_other_strategies_narrow_scores_and_blocks_of_whole_groups(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = drawn(kind=np.float32)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    df = frame_of(session, frame, number="smallint")
    found = spark.calibrate(df, ASKED, by="number", **OPTIONS["raise"])
    assert found.score_type == "float32"
    assert found.to_json() == in_memory(frame, "number", **OPTIONS["raise"]).to_json()
    named = frame.assign(label=np.array(["ok", "fault"])[frame["label"]])
    again = spark.calibrate(
        frame_of(session, named), ASKED, by="number", overlap="raise", anomaly_label="fault"
    )
    assert again == found
    assert "holds float32 scores" in refusal(
        lambda: spark.decide(df, in_memory(drawn(), "number"), group="number")
    )


def test_a_group_is_known_by_its_text_whatever_the_type_of_the_column(session: Any) -> None:
    rows = 120
    groups = np.repeat(["7", "0.5", "true", "2026-01-31", "x", None], 2 * rows)
    scores, labels = np.tile(np.arange(2.0 * rows), 6), np.tile(np.repeat([0, 1], rows), 6)
    certificate = calibrate_labelled(scores + 1000 * labels, labels, by=groups)
    values: dict[str, list[Any]] = {
        "int": [7, 8],
        "double": [7.0, 0.5, 0.25],
        "boolean": [True, False],
        "date": [date(2026, 1, 31), date(2026, 2, 1)],
        "string": ["7", "x", "y"],
    }
    for kind, some in values.items():
        df = session.createDataFrame([(5000.0, one) for one in [*some, None]], f"score double, g {kind}")
        found = [row.verdict for row in spark.decide(df, certificate, group="g").collect()]
        assert found == certificate.verdicts([5000.0] * len(found), [*some, None]).tolist(), kind


def test_what_is_wrong_is_refused(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = drawn(100)

    def refused(changed: pd.DataFrame = frame, **options: Any) -> str:
        df = frame_of(session, changed)
        return refusal(lambda: spark.calibrate(df, **({"by": "name"} | options)))

    gaps = frame.assign(score=frame["score"].where(frame.index != 70))
    assert "scores must not be empty or NaN, got 1 of 100" in refused(gaps)
    unlabelled = frame.assign(label=frame["label"].astype(object).where(frame.index > 0, None))
    assert "labels must not be missing, got 1 of 100" in refused(unlabelled)
    assert "labels" in refused(frame.assign(label=frame["label"] + 5))
    assert "cannot be the group as well" in refused(by="score")
    assert "there is no column 'nam'; did you mean 'name'?" in refused(by="nam")
    assert "must hold groups: texts, numbers, dates or booleans, but its type is timestamp" in refused(
        frame.assign(name=pd.Timestamp(2026, 1, 31))
    )
    df = frame_of(session, frame)
    assert "scores are empty" in refusal(lambda: spark.calibrate(df.limit(0), by="name"))
    alone = spark.calibrate(frame_of(session, drawn()), ASKED)
    assert "of no groups" in refusal(lambda: spark.decide(df, alone, group="name"))
    whole: GroupCertificate = in_memory(frame, "name")
    assert "of groups: name their column" in refusal(lambda: spark.decide(df, whole))
    calibrated = GroupedFrame.calibrated

    def less(part: Part) -> Part:
        return replace(part, columns=replace(part.columns, n=part.columns.n + 1))

    with monkeypatch.context() as patch:
        patch.setattr(values, "MOST_GROUPS", 3)
        assert "there are more than 3 groups" in refused()
    with monkeypatch.context() as patch:
        patch.setattr(GroupedFrame, "calibrated", lambda self, request: less(calibrated(self, request)))
        assert "has other rows each time" in refused()


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_files_give_the_certificate_that_duckdb_gives(session: Any, ending: str, tmp_path: Path) -> None:
    frame = drawn(1000).drop(columns="day").assign(score=lambda frame: frame["score"].clip(-9, 9))
    path = tmp_path / f"scores.{ending}"
    written = {"parquet": frame.to_parquet, "csv": partial(frame.to_csv, index=False)}
    written.get(ending, partial(frame.to_json, orient="records", lines=True))(path)
    request = GroupRequest(Request(ASKED), pool=True)
    reader: Any = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}[ending]
    for group in ("name", "number") if ending == "parquet" else ("float",):
        columns = {"score": "score", "label": "label", "group": group}
        found = EngineFiles("spark", [path], reader).certify(request, tuple(columns.values()), None)
        with open_table([str(path)], ["score", group], "label", passes=True) as table:
            again = calibrate_groups_table(table, request, ("score", "label", group))
        assert found.bare.to_json() == again.bare.to_json()
    if ending == "parquet":
        other = tmp_path / "other.parquet"
        frame.assign(number="7").to_parquet(other)
        columns = {"score": "score", "label": "label", "group": "number"}
        assert "the groups must have one type in all files, got bigint and string" in refusal(
            lambda: EngineFiles("spark", [path, other], reader).certify(
                request, tuple(columns.values()), None
            )
        )


def test_groups_of_json_are_read_as_everywhere(session: Any, tmp_path: Path) -> None:
    lines = json_of_tokens()
    for name, text in (("t.jsonl", lines), ("t.json", f"[{lines.strip().replace(chr(10), ',')}]")):
        path = tmp_path / name
        path.write_text(text)
        asked, columns = GroupRequest(Request(ASKED)), {"score": "score", "label": "label", "group": "group"}
        found = EngineFiles("spark", [path], "read_json").certify(asked, tuple(columns.values()), None)
        with open_table([str(path)], ["score", "group"], "label") as table:
            expected = calibrate_groups_table(table, asked, ("score", "label", "group"))
        assert found.bare.to_json() == expected.bare.to_json()
    twice = tmp_path / "twice.jsonl"
    twice.write_text(f'{lines}{{"score": 1, "label": 0, "group": "a", "group": "b"}}\n')
    files = EngineFiles("spark", [twice], "read_json")
    assert "row 1,801 has two columns named 'group'; rename" in refusal(
        lambda: files.certify(asked, tuple(columns.values()), None)
    )
