"""`worth` says what the library says of alarms, from a stated prevalence and from tables without labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate
from support.shell import invoke, refused, succeeded

RNG = np.random.default_rng(0)
NORMAL, NEAR = RNG.normal(0, 1, 2000), RNG.normal(3, 1, 400)
NEW = np.concatenate([RNG.normal(0, 1, 4500), RNG.normal(3, 1, 500)])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    calibrate(NORMAL, NEAR, Guarantee(0.02, 0.05)).save(tmp_path / "certificate.json")
    return tmp_path / "certificate.json"


def shown(*words: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(succeeded("worth", *words, "--format", "json"))
    return answer


def test_a_prevalence_gives_precision_and_work(saved: Path) -> None:
    one = Certificate.load(saved)
    found = shown(saved, "--prevalence", "0.01:0.03", "--per", "500")
    assert found["precision"]["low"] == one.precision(0.01).low
    work = one.workload((0.01, 0.03), 500)
    assert found["workload"]["alarms"] == {
        "low": work.alarms.low,
        "high": work.alarms.high,
        "confidence": work.confidence,
    }
    text = succeeded("worth", saved, "--prevalence", "0.02")
    assert text.startswith("alarms     at least ")
    assert "if 2 % of all points are anomalous" in " ".join(text.split())
    assert "missed anomalies: at most 1\n" in text
    assert "false alarms: at most 19.6\n" in text


def test_the_ceiling_of_the_fpr_alone_bounds_the_false_alarms(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    calibrate(NORMAL, [], Guarantee(max_fpr=0.02, max_fnr=None)).save(path)
    text = succeeded("worth", path, "--prevalence", "0.01")
    assert "no promise about the anomalies that are caught" in text
    assert "false alarms: at most 19.8\n" in text
    assert "precision" not in shown(path, "--prevalence", "0.01")


def test_the_errors_among_the_next_points_are_bounded(saved: Path) -> None:
    one = Certificate.load(saved)
    found = shown(saved, "--next", "500", "--delta", "0.01")
    told = [(each["of"]["label"], each["most"], each["confidence"]) for each in found["among_next"]]
    wanted = one.among_next(500, delta=0.01)
    assert told == [(each.of.label, each.most, each.confidence) for each in wanted]
    assert [label for label, *_ in told] == ["normal", "anomalous"]
    text = " ".join(succeeded("worth", saved, "--next", "500").split())
    assert text == "next " + " ".join(str(each) for each in one.among_next(500))
    both = succeeded("worth", saved, "--next", "500", "--prevalence", "0.02")
    assert both.startswith("next ")
    assert "\nalarms     at least " in both
    raised = saved.with_name("raised.json")
    calibrate(NORMAL, NEAR, Guarantee(0.02, 0.05), overlap="raise").save(raised)
    assert "raise looks at scores to find how many" in refused(saved.parent, "worth", raised, "--next", "5")


def test_rows_without_a_score_are_said(saved: Path) -> None:
    path = saved.with_name("gaps.csv")
    path.write_text("s,t\n" + "9,x\n" * 30 + ",x\n" * 2, encoding="utf-8")
    said = succeeded("worth", saved, "--unlabelled", path, "--score", "s")
    assert "counted    30 alarms among 32 points without labels, 2 of them without a score\n" in said
    assert "of future alarms are right" in said
    assert "among the counted ones, more may be false" in " ".join(said.split())


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npy"])
def test_a_table_without_labels_is_counted_in_every_format(saved: Path, ending: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = saved.with_name(f"new.{ending}")
    if ending == "parquet":
        parquet.write_table(pa.table({"s": NEW}), path)
    elif ending == "npy":
        np.save(path, np.array(list(NEW), dtype=[("s", float)]))
    else:
        lines = ["s", *map(repr, NEW.tolist())] if ending == "csv" else [f'{{"s": {x!r}}}' for x in NEW]
        path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n", encoding="utf-8")
    one = Certificate.load(saved)
    found = shown(saved, "--unlabelled", path, "--score", "s", "--delta", "0.01")
    verdicts = one.verdicts(NEW)
    assert found["counted"] == {
        "alarms": int((verdicts == 1).sum()),
        "clears": int((verdicts == 0).sum()),
        "points": 5000,
        "missing": 0,
        "unseen": 0,
    }
    assert found["unlabelled"]["low"] == one.precision_from_unlabelled(NEW, delta=0.01).low > 0.5
    assert found["prevalence"]["low"] == one.prevalence_of(NEW, delta=0.01).low
    assert found["prevalence"]["low"] <= 0.1 <= found["prevalence"]["high"]


def test_alarms_that_may_all_be_false_are_said_to_be(saved: Path) -> None:
    path = saved.with_name("new.csv")
    path.write_text("s\n" + "0.5\n" * 200, encoding="utf-8")
    text = succeeded("worth", saved, "--unlabelled", path, "--score", "s")
    assert "at least 0 % of future alarms are right" in text
    assert "all of them may be false" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "add --prevalence 0.01, --unlabelled"),
        (["--prevalence", "x"], "a range such as 0.01-0.03; got 'x'"),
        (["--prevalence", "0.2:0.1"], "a range such as"),
        (["--prevalence", "0"], "between 0 and 1"),
        (["--prevalence", "0.1", "--delta", "2"], "delta"),
        (["--unlabelled", "new.csv"], "add --score"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    words: list[str], sentence: str, saved: Path, tmp_path: Path
) -> None:
    assert sentence in refused(tmp_path, "worth", saved, *words)


def test_a_certificate_that_bounds_no_alarm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    calibrate(NORMAL[:20], NEAR).save(path)
    done = invoke("worth", path, "--prevalence", "0.1")
    assert done.code == 2
    assert "label more normal points" in done.err
