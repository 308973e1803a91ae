"""Kinds in Spark and Dask: the certificate of memory byte for byte, from frames, files and the shell."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    Certificate,
    Guarantee,
    InputError,
    VacuousWarning,
    calibrate,
    calibrate_classes,
    certify_curve,
)
from pac_wrap.engines import dask as by_dask
from pac_wrap.engines import spark as by_spark
from support import sparksession
from support.daskcluster import needs_dask
from support.pages import python_blocks
from support.shell import refused, succeeded
from support.strategies import refusal

dd = needs_dask()
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
ROWS = 6000
# quotes, a backslash, what is SQL, what looks like a number, a blank, other writings, and one that is rare
NAMES = ["it's", 'a\\b"', "'; DROP TABLE labelled --", "7", " ", "\u00e9\u4e2d\U0001f600", "%s"]
ASKED = Guarantee(0.05, 0.1)
CASES: dict[str, dict[str, Any]] = {
    "of anomalies": {"column": "fault"},
    "of both classes": {"column": "both"},
    "held": {"column": "both", "overlap": "hold_fnr"},
    "whole numbers": {"column": "number"},
    "ceilings": {
        "column": "fault",
        "guarantee": Guarantee(0.05, dict.fromkeys(NAMES, 0.1) | {"7": None, None: 0.08}),
    },
    "a confidence": {"column": "both", "guarantee": Guarantee(0.05, 0.1, confidence=0.9)},
}


def drawn(kind: Any = np.float64) -> Any:
    """Return a frame with ties, infinities, and columns of kinds in which nothing is missing, or a class."""
    rng = np.random.default_rng(7)
    label = (rng.random(ROWS) < 0.5).astype(int)
    place = rng.integers(0, len(NAMES), ROWS)
    score = np.round(rng.normal(3 * label + 0.2 * place, 1), 1)
    score[:6] = [np.inf, -np.inf, -0.0, 0.0, 0.0, -0.0]
    names = np.array(NAMES, dtype=object)[place]
    # an empty text is no kind either
    none = np.where(np.arange(ROWS) % 2, "", np.array([None], dtype=object))
    columns = {
        "fault": np.where(label == 1, names, none),
        "both": names,
        "number": place - 3,
        "day": [date(2026, 1, 1 + int(one)) for one in place],
        "real": place / 2,
    }
    return pd.DataFrame({"score": score.astype(kind), "label": label, **columns})


def in_memory(frame: Any, column: str = "both", guarantee: Guarantee = ASKED, **options: Any) -> str:
    """Return the certificate of scores by kind, which every engine must give."""
    sides = []
    for label in (0, 1):
        rows = frame[frame["label"] == label]
        texts = rows[column].astype(str).where(rows[column].notna(), "")
        named = {
            name: rows["score"].to_numpy()[(texts == name).to_numpy()] for name in texts.unique() if name
        }
        sides.append(named or rows["score"].to_numpy())
    anything: Any = calibrate
    made: Certificate = anything(*sides, guarantee, **options)
    return made.to_json()


def asked(case: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in case.items() if name != "column"}
    return {"guarantee": ASKED, "kinds": case["column"], **given}


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        started.conf.set("spark.sql.shuffle.partitions", "3")
        yield started


def in_spark(session: Any, frame: Any) -> Any:
    import pyarrow as pa

    columns = {name: pa.array(values, from_pandas=False) for name, values in frame.items()}
    return session.createDataFrame(pa.table(columns)).repartition(3)


@pytest.mark.parametrize("case", CASES.values(), ids=[*CASES])
def test_dask_gives_the_certificate_of_memory(case: dict[str, Any]) -> None:
    # some partitions have no anomaly
    frame = drawn().sort_values("label", kind="stable", ignore_index=True)
    found = by_dask.calibrate(dd.from_pandas(frame, npartitions=9), **asked(case))
    assert found.to_json() == in_memory(frame, **case)


def test_types_of_scores_labels_and_kinds_change_nothing_in_dask() -> None:
    frame = drawn(np.float32)
    named = frame.assign(
        label=np.array(["ok", "fault"])[frame["label"]], both=frame["both"].astype("category")
    )
    df = dd.from_pandas(named, npartitions=5)
    found = by_dask.calibrate(df, ASKED, kinds="both", anomaly_label="fault")
    assert found.score_type == "float32"
    assert found.to_json() == in_memory(frame)
    assert by_dask.calibrate(df, ASKED, kinds="day", anomaly_label="fault").to_json() == in_memory(
        frame, "day"
    )


def test_what_is_wrong_is_refused_by_dask() -> None:
    frame = drawn()

    def said(changed: Any = frame, **options: Any) -> str:
        df = dd.from_pandas(changed, npartitions=3)
        return refusal(lambda: by_dask.calibrate(df, **({"kinds": "fault"} | options)))

    assert "must hold kinds: texts, whole numbers, dates or booleans, but its type is float64" in said(
        kinds="real"
    )
    assert "column 'label' cannot be the kind as well" in said(kinds="label")
    assert "there is no column 'falt'; did you mean 'fault'?" in said(kinds="falt")
    gaps = frame.assign(both=frame["both"].where(frame.index != 7, None))
    assert "is empty in 1 row of" in said(gaps, kinds="both")
    many = frame.assign(fault=(frame.index % 41).astype(str))
    assert "names 41 kinds of normal points; at most 40" in said(many)
    assert "scores must not be empty or NaN, got 1 of" in said(
        frame.assign(score=frame["score"].where(frame.index != 7))
    )
    assert "labels" in said(frame.assign(label=frame["label"] + 5))
    assert "use abstain, hold_fnr or hold_fpr" in said(overlap="raise")


def test_too_few_labels_of_a_kind_are_warned_of_once() -> None:
    frame = drawn().assign(both=lambda frame: np.where(frame.index < 9, "new", "old"))
    with pytest.warns(VacuousWarning, match="'new': [0-9] labels, too few") as warned:
        found = by_dask.calibrate(dd.from_pandas(frame, npartitions=3), ASKED, kinds="both")
    assert found.empty
    assert len(warned) == 1


def test_the_example_of_the_page_on_scale() -> None:
    frame = drawn()
    frame["fraud"] = np.where(frame["label"] == 1, np.where(frame.index % 3, "stolen", "takeover"), "")
    _, example = [block for block in python_blocks("docs/guide/cluster.md") if "engines import dask" in block]
    names: dict[str, Any] = {"df": dd.from_pandas(frame, npartitions=2), "Guarantee": Guarantee}
    exec(example, names)
    assert names["by_kind"].to_json() == in_memory(frame, "fraud", names["asked"])


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(
    "engine", ["dask", pytest.param("spark", marks=[pytest.mark.slow, sparksession.quiet])]
)
def test_the_shell_gives_the_same_from_files(engine: str, ending: str, tmp_path: Path) -> None:
    if engine == "spark":
        sparksession.require()
    # Spark's reader of JSON knows no infinities
    frame = drawn().drop(columns=["day", "real"]).assign(score=lambda frame: frame["score"].clip(-9, 9))
    path, saved, report = tmp_path / f"scores.{ending}", tmp_path / "kinds.json", tmp_path / "page.md"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    options = [
        "--score",
        "score",
        "--label",
        "label",
        "--kind",
        "fault",
        "--max-fpr",
        "0.05",
        "--max-fnr",
        "0.1",
    ]
    succeeded("calibrate", path, *options, "--engine", engine, "-o", saved, "--report", report)
    found = Certificate.load(saved)
    assert f"read by {engine}" in " ".join(succeeded("show", saved).split())
    assert found == Certificate.from_json(in_memory(frame, "fault"))
    assert "set the threshold" in report.read_text(encoding="utf-8")
    assert "verified" in succeeded("verify", saved, path, *options[:6])


def test_numpy_files_are_for_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    np.savez(path, s=np.zeros(3), y=np.zeros(3), k=np.zeros(3))
    options = ["--score", "s", "--label", "y", "--kind", "k", "--engine", "dask"]
    assert "does not read NumPy files" in refused(tmp_path, "calibrate", path, *options)


@pytest.mark.slow
@sparksession.quiet
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("case", CASES.values(), ids=[*CASES])
def test_spark_gives_the_certificate_of_memory(session: Any, case: dict[str, Any], ansi: str) -> None:

    session.conf.set("spark.sql.ansi.enabled", ansi)
    frame = drawn()
    found = by_spark.calibrate(in_spark(session, frame), **asked(case))
    assert found.to_json() == in_memory(frame, **case)


@pytest.mark.slow
@sparksession.quiet
def test_types_that_change_nothing_in_spark_and_what_is_refused(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:

    frame = drawn(np.float32)
    named = frame.assign(label=np.array(["ok", "fault"])[frame["label"]])
    df = in_spark(session, named)
    found = by_spark.calibrate(df, ASKED, kinds="day", anomaly_label="fault")
    assert found.score_type == "float32"
    assert found.to_json() == in_memory(frame, "day")

    def said(changed: Any, **options: Any) -> str:
        return refusal(lambda: by_spark.calibrate(in_spark(session, changed), **options))

    assert "must hold kinds: texts, whole numbers, dates or booleans, but its type is double" in said(
        frame, kinds="real"
    )
    assert "column 'label' cannot be the kind as well" in said(frame, kinds="label")
    many = frame.assign(fault=np.arange(ROWS).astype(str))
    assert "column 'fault' must name at most 40 kinds of a class" in said(many, kinds="fault")
    some = frame.assign(fault=(frame.index % 41).astype(str))
    assert "names 41 kinds of normal points; at most 40" in said(some, kinds="fault")
    gaps = frame.assign(both=frame["both"].where(frame.index != 7, None))
    assert "is empty in 1 row of" in said(gaps, kinds="both")
    # a frame that has other rows each time it is computed
    from pac_wrap.engines import spark
    from pac_wrap.engines.spark import fetched

    def fewer(part: Any) -> Any:
        return fetched(part.where("label = 1") if "count" in part.columns else part)

    monkeypatch.setattr(spark, "fetched", fewer)
    assert "other rows each time it is computed" in said(frame, kinds="number")


@pytest.mark.parametrize("engine", [by_dask, by_spark], ids=["dask", "spark"])
def test_what_is_no_certificate_is_refused_before_any_row_is_read(engine: Any, tmp_path: Path) -> None:
    kinds = calibrate(range(100), {"a": range(200, 300)}, ASKED)
    curve = certify_curve(range(100), range(200, 300))
    classes = calibrate_classes(np.repeat(np.eye(2), 60, axis=0), np.repeat([0, 1], 60))
    for other in (str(tmp_path / "certificate.json"), None, kinds.rule, curve, classes):
        with pytest.raises(InputError, match="must be a Certificate or a GroupCertificate, got"):
            engine.decide(None, other)
