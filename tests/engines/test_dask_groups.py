"""Groups in Dask: the certificate of memory byte for byte, and the verdicts of memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee, UpsideDownWarning, VacuousWarning, calibrate
from pac_wrap.engines import dask as engine
from pac_wrap.engines.files import EngineFiles
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.tables.table import open_table
from support.daskcluster import cluster, current, needs_dask
from support.grouped import ASKED, COLUMNS, OPTIONS, drawn, in_memory, json_of_tokens
from support.strategies import refusal
from support.tables import calibrate_groups_table

dd = needs_dask()
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    with dask.config.set(scheduler="threads"):
        yield


@pytest.mark.parametrize(
    ("column", "options"),
    [
        *((column, OPTIONS["together, with a pool"]) for column in COLUMNS),
        *(("name", options) for options in (OPTIONS["each by itself"], OPTIONS["raise"])),
    ],
    ids=[*COLUMNS, "each by itself", "raise"],
)
def test_the_certificate_is_that_of_memory(column: str, options: dict[str, Any]) -> None:
    frame = drawn()
    # one partition of which all rows go elsewhere may be left empty
    df = dd.from_pandas(frame, npartitions=9)
    found = engine.calibrate(df, ASKED, by=column, **options)
    assert found.to_json() == in_memory(frame, column, **options).to_json()


@pytest.mark.slow
def test_two_worker_processes_give_the_same() -> None:
    frame = drawn(kind=np.float32).astype({"name": "category"})
    options = OPTIONS["together, with a pool"]
    whole = in_memory(frame, "name", **options)
    assert whole.pool is not None
    with cluster() as started, current(started):
        df = dd.from_pandas(frame, npartitions=4)
        found = engine.calibrate(df, ASKED, by="name", **options)
        decided = engine.decide(df, found, group="name").compute()
    assert found.score_type == "float32"
    assert found.to_json() == whole.to_json()
    assert decided["verdict"].tolist() == whole.verdicts(frame["score"], frame["name"]).tolist()


@pytest.mark.parametrize("column", COLUMNS)
def test_rows_are_decided_by_the_rule_of_their_group(column: str) -> None:
    frame = drawn()
    certificate = in_memory(frame[frame["number"] != 2], column, pool=True)
    frame.loc[7:9, "score"] = np.nan
    found = engine.decide(dd.from_pandas(frame, npartitions=3), certificate, group=column)
    assert found.dtypes.astype(str).to_dict() == found.compute().dtypes.astype(str).to_dict()
    with pytest.warns(UserWarning, match="3 of 4,000 scores are NaN"):
        verdicts = certificate.verdicts(frame["score"], frame[column])
    with pytest.warns(UserWarning, match="scores are NaN"):
        possible = certificate.prediction_sets(frame["score"], frame[column])
    assert found.compute()["verdict"].tolist() == verdicts.tolist()
    sets = ["{" + ",".join(str(label) for label in (0, 1) if row[label]) + "}" for row in possible]
    assert found.compute()["prediction_set"].tolist() == sets


def test_labels_may_be_texts_of_which_a_partition_has_only_one() -> None:
    frame = drawn().sort_values("label", kind="stable")
    named = frame.assign(label=np.array(["ok", "fault"])[frame["label"]])
    df = dd.from_pandas(named, npartitions=4, sort=False)
    found = engine.calibrate(df, ASKED, by="number", anomaly_label="fault")
    assert found == in_memory(frame, "number")


def test_what_is_wrong_is_refused() -> None:
    frame = drawn(100)

    def refused(changed: Any = frame, **options: Any) -> str:
        df = dd.from_pandas(changed, npartitions=2, sort=False)
        return refusal(lambda: engine.calibrate(df, **({"by": "name"} | options)))

    gaps = frame.assign(score=frame["score"].where(frame.index != 70))
    assert "scores must not be empty or NaN, got 1 of 50 in partition 1" in refused(gaps)
    unlabelled = frame.assign(label=frame["label"].where(frame.index > 0))
    assert "labels of partition 0 must not be missing, got 1 of 50" in refused(unlabelled)
    assert "labels of partition 0" in refused(frame.assign(label=frame["label"] + 5))
    assert "cannot be the group as well" in refused(by="label")
    assert "by and kinds do not work together" in refused(kinds="number")
    assert "need groups; add by" in refused(by=None, together=True)
    assert "there is no column 'nam'; did you mean 'name'?" in refused(by="nam")
    assert "scores are empty" in refused(frame.iloc[:0])
    assert "at most 1,000 characters" in refused(frame.assign(name="x" * 1001))
    assert 'pool needs overlap="abstain"' in refused(pool=True, overlap="raise")
    df = dd.from_pandas(frame, npartitions=2)
    whole = in_memory(frame, "name")
    assert refusal(lambda: engine.decide(df, whole)) == (
        "the certificate is of groups: name their column, with group"
    )
    alone = calibrate([0.0] * 60, [1.0] * 60)
    assert "of no groups" in refusal(lambda: engine.decide(df, alone, group="name"))
    narrow = dd.from_pandas(drawn(100, np.float32), npartitions=2)
    assert "holds float32 scores" in refusal(lambda: engine.decide(narrow, whole, group="name"))


def test_types_that_differ_and_rows_that_change_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = drawn(60)
    pieces = [frame.assign(name=7), frame.assign(name="7")]
    mixed = dd.from_map(lambda piece: piece, pieces, meta=frame.iloc[:0])
    assert "groups hold both 7 and '7'" in refusal(lambda: engine.calibrate(mixed, by="name"))
    df = dd.from_pandas(frame, npartitions=2)
    monkeypatch.setattr(engine, "_with_numbers", _twice)
    assert "has other rows each time" in refusal(lambda: engine.calibrate(df, by="name"))


_once = engine._with_numbers


def _twice(*arguments: Any) -> Any:
    return pd.concat([_once(*arguments)] * 2)


@pytest.mark.filterwarnings("always::pac_wrap.VacuousWarning")
def test_the_user_is_warned_as_in_memory() -> None:
    frame = drawn()
    upside_down = dd.from_pandas(frame.assign(score=-frame["score"]), npartitions=2)
    with pytest.warns(UpsideDownWarning, match="in 7 of 7 groups"):
        engine.calibrate(upside_down, by="number")
    with pytest.warns(VacuousWarning) as found:
        engine.calibrate(dd.from_pandas(frame, npartitions=2), Guarantee(), by="name")
    assert found[0].filename == __file__


def test_groups_of_json_are_read_as_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json_of_tokens())
    asked, columns = GroupRequest(Request(ASKED)), {"score": "score", "label": "label", "group": "group"}
    found = EngineFiles("dask", [path], "read_json").certify(asked, tuple(columns.values()), None)
    with open_table([str(path)], ["score", "group"], "label") as table:
        expected = calibrate_groups_table(table, asked, ("score", "label", "group"))
    assert found.bare.to_json() == expected.bare.to_json()
    assert len(found.groups) == 17
