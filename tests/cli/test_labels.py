"""Which rows count as anomalies: the certificate says how many scores of each class it was made of."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pac_wrap import Certificate
from support.shell import invoke, parquet, refused, succeeded, write

NORMAL, ANOMALOUS = 3, 5


def counts(table: Path, *options: str) -> tuple[int, int]:
    saved = table.with_suffix(".certificate")
    done = invoke("calibrate", "-q", table, "--score", "score", "--label", "label", *options, "-o", saved)
    assert done.code == 1, done  # eight labels certify nothing
    assert done.err == ""
    certificate = Certificate.load(saved)
    return certificate.fpr.n, certificate.fnr.n


def labelled(folder: Path, normal: str, anomalous: str, suffix: str = ".csv") -> Path:
    """Write a table with three scores of one label and five of the other; the fives are higher."""
    labels = [normal] * NORMAL + [anomalous] * ANOMALOUS
    if suffix == ".csv":
        rows = [f"{i},{label}\n" for i, label in enumerate(labels)]
        return write(folder / "a.csv", "".join(["score,label\n", *rows]))
    rows = [f'{{"score": {i}, "label": {label}}}\n' for i, label in enumerate(labels)]
    return write(folder / "a.jsonl", "".join(rows))


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [
        ("0", "1"),
        ("0.0", "1.0"),
        ("false", "true"),
        ("FALSE", "True"),
        ("False", "TRUE"),
        ('"0"', '"1"'),
        ("0", "true"),
    ],
)
def test_zero_and_one_and_true_and_false_are_known(normal: str, anomalous: str, tmp_path: Path) -> None:
    assert counts(labelled(tmp_path, normal, anomalous)) == (NORMAL, ANOMALOUS)


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [("0", "1"), ("0.0", "1.0"), ("false", "true"), ('"0"', '"1"'), ('"False"', '"TRUE"')],
)
def test_so_they_are_in_json_lines(normal: str, anomalous: str, tmp_path: Path) -> None:
    assert counts(labelled(tmp_path, normal, anomalous, ".jsonl")) == (NORMAL, ANOMALOUS)


@pytest.mark.parametrize("kind", ["TINYINT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR"])
def test_so_they_are_in_every_type_of_parquet(kind: str, tmp_path: Path) -> None:
    query = f"SELECT i::DOUBLE AS score, (i >= {NORMAL})::INTEGER::{kind} AS label FROM range(8) t(i)"
    assert counts(parquet(tmp_path / "a.parquet", query)) == (NORMAL, ANOMALOUS)


@pytest.mark.parametrize(
    ("normal", "anomalous", "options"),
    [
        ("ok", "Fraud", ["--anomaly-label", "fraud"]),
        ("ok", "fraud", ["--anomaly-label", "FRAUD"]),
        ("gut", "BÖSE", ["--anomaly-label", "böse"]),
        ("1", "-1", ["--anomaly-label=-1"]),
        ("1", "-1", ["--anomaly-label", "-1"]),
        ("1.0", "-1.0", ["--anomaly-label=-1"]),
        ("1", "0", ["--anomaly-label", "0"]),
        ("1.0", "0.0", ["--anomaly-label", "0"]),
        ("true", "false", ["--anomaly-label", "False"]),
        ("it's", '"<script>alert(1)</script>"', ["--anomaly-label", "<script>alert(1)</script>"]),
        ("a", '"x\'); DROP TABLE source; --"', ["--anomaly-label", "x'); DROP TABLE source; --"]),
        ("a", '"b"" OR 1=1"', ["--anomaly-label", 'b" OR 1=1']),
        ("a", "%", ["--anomaly-label", "%"]),
    ],
)
def test_a_named_label_marks_the_anomalies(
    normal: str, anomalous: str, options: list[str], tmp_path: Path
) -> None:
    assert counts(labelled(tmp_path, normal, anomalous), *options) == (NORMAL, ANOMALOUS)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only_is_legal_but_certifies_nothing_about_the_other(label: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + f"1,{label}\n" * 200)
    assert counts(path) == ((200, 0) if label == 0 else (0, 200))


def test_one_class_is_enough_where_only_one_side_is_promised(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + "".join(f"{i},0\n" for i in range(200)))
    done = invoke("calibrate", "-q", path, "--score", "score", "--label", "label", "--max-fnr", "none")
    assert done.code == 0
    assert "anomaly from" in done.out


def refused_labels(path: Path, *options: str) -> str:
    return refused(path.parent, "calibrate", path, "--score", "score", "--label", "label", *options)


@pytest.mark.parametrize(
    ("normal", "anomalous", "strange"),
    [
        ("0", "2", "2"),
        ("-1", "1", "-1"),
        ("normal", "anomaly", "anomaly"),
        ("0", "nan", "nan"),
        ("0.5", "1", "0.5"),
        ("0", "<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_other_labels_are_refused_with_the_remedy(
    normal: str, anomalous: str, strange: str, tmp_path: Path
) -> None:
    sentence = refused_labels(labelled(tmp_path, normal, anomalous))
    assert sentence == (
        f"column 'label' must be 0/1 or true/false, got {strange!r};"
        " name the label of anomalies with --anomaly-label"
    )


@pytest.mark.parametrize("late", ["2", "0.6", "maybe"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_strange_label_is_found_however_late_it_comes(late: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".csv":
        path = write(tmp_path / "a.csv", "score,label\n" + "1,0\n2,1\n" * 15_000 + f"3,{late}\n")
    else:
        quoted = f'"{late}"' if late == "maybe" else late
        rows = '{"score": 1, "label": 0}\n{"score": 2, "label": 1}\n' * 15_000
        path = write(tmp_path / "a.jsonl", f'{rows}{{"score": 3, "label": {quoted}}}\n')
    assert late in refused_labels(path)


@pytest.mark.parametrize("options", [[], ["--anomaly-label", "1"]])
def test_missing_labels_are_counted(options: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,\n3,1\n4,\n")
    assert refused_labels(path, *options) == "column 'label' has 2 rows without a label; label or drop them"


def test_a_named_label_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    sentence = refused_labels(labelled(tmp_path, "ok", "fraud"), "--anomaly-label", "spam")
    assert sentence == "column 'label' must hold 'spam' and one other value, got fraud, ok"


def test_three_labels_are_one_too_many(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,ok\n2,fraud\n3,unknown\n")
    assert "one other value, got fraud, ok, unknown" in refused_labels(path, "--anomaly-label", "fraud")


def test_a_thousand_labels_are_not_all_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + "".join(f"1,class {i}\n" for i in range(1000)))
    for options in ([], ["--anomaly-label", "class 7"]):
        assert len(refused_labels(path, *options)) < 200


def test_the_label_column_must_exist(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,labels\n1,0\n")
    sentence = refused_labels(path)
    assert sentence == "there is no column 'label'; did you mean 'labels'? the columns are score, labels"


def test_one_column_cannot_be_both_score_and_label_without_a_word(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "label\n0\n1\n")
    sentence = refused(tmp_path, "calibrate", path, "--score", "label", "--label", "label")
    assert "save it as CSV" not in sentence


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_letters_that_engines_put_into_lower_case_differently_are_told_apart(
    engine: str, tmp_path: Path
) -> None:
    if engine == "dask":
        pytest.importorskip("dask")
    # DuckDB's lower makes an i of the first, Python's and Java's do not
    rows = [f"{i},{'i' if i > 99 else 'İ'}" for i in range(300)]
    path = write(tmp_path / "a.csv", "score,label\n" + "\n".join(rows) + "\n")
    saved = tmp_path / "c.json"
    options = ["--score", "score", "--label", "label", "--anomaly-label", "I", "--engine", engine]
    assert invoke("calibrate", "-q", path, *options, "-o", saved).code == 0
    certificate = Certificate.load(saved)
    assert (certificate.fpr.n, certificate.fnr.n) == (100, 200)


@pytest.fixture
def third(tmp_path: Path) -> Path:
    """Return tables with a third label and rows without one, in every format, and one without these rows."""
    rng = np.random.default_rng(0)
    label = np.array(["0"] * 200 + ["1"] * 150 + ["Unknown"] * 40 + [""] * 10)
    frame = pd.DataFrame({"s": rng.normal(4.0 * (label == "1"), 1.0).round(6), "y": label})
    frame = frame.assign(g=np.where(np.arange(400) % 2, "a", "b"), k=np.where(label == "1", "worn", ""))
    frame.loc[label == "Unknown", "s"] += 100.0  # that nobody can overlook
    frame = frame.sample(frac=1.0, random_state=0).assign(t=np.arange(400))
    frame["y"] = frame["y"].where(frame["y"] != "", None)
    frame.to_csv(tmp_path / "three.csv", index=False)
    frame.to_parquet(tmp_path / "three.parquet")
    frame.to_json(tmp_path / "three.jsonl", orient="records", lines=True, double_precision=15)
    frame[frame["y"].isin(["0", "1"])].to_csv(tmp_path / "two.csv", index=False)
    return tmp_path


THIRD = ("--score", "s", "--label", "y")
LEFT_OUT = (*THIRD, "--leave-out", "unknown", "--leave-out", "")
SAID = "note: 50 rows with the label 'unknown' or '' left out"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("mode", [[], ["--group", "g"], ["--kind", "k"], ["--time", "t"]])
def test_rows_of_a_third_label_are_left_out_and_counted(third: Path, ending: str, mode: list[str]) -> None:
    table, saved, alone = third / f"three.{ending}", third / "three.json", third / "two.json"
    assert invoke("calibrate", table, *THIRD, *mode).code == 2
    done = invoke("calibrate", table, *LEFT_OUT, *mode, "-o", saved, "--report", third / "r.json")
    assert (done.code, done.err.count(SAID)) == (0, 1)
    succeeded("calibrate", third / "two.csv", *THIRD, *mode, "-o", alone)
    without, only = (json.loads(path.read_text()) for path in (saved, alone))
    for one in (without, only):
        one.get("binding", one).pop("provenance", None)
        one.pop("checksum")
    assert without == only
    verified = invoke("verify", saved, table, *LEFT_OUT, *mode)
    assert (verified.code, verified.err.count(SAID)) == (0, 1)
    assert invoke("verify", saved, third / "two.csv", *THIRD, *mode).code == 0
    if "--time" not in mode:
        done = invoke("evaluate", saved, table, *LEFT_OUT, *mode, "--format", "json")
        assert (done.code, done.err.count(SAID)) == (0, 1)


@pytest.mark.filterwarnings("default")
def test_a_third_label_is_left_out_wherever_labels_are_read_from_tables(third: Path) -> None:
    table = third / "three.parquet"
    for command in (["curve", table], ["compare", table, "--score", "t"], ["plan", "--pilot", table]):
        done = invoke(*command, *LEFT_OUT)
        assert (done.code, done.err.count(SAID)) == (0, 1), command
    succeeded("calibrate", third / "two.csv", *THIRD, "-o", third / "c.json")
    again = invoke("recalibrate", third / "c.json", table, *LEFT_OUT, "-o", third / "next.json")
    assert (again.code, again.err.count(SAID)) == (0, 1)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--leave-out", "1"], "--leave-out must name a third label, got 1, a class"),
        (["--leave-out", "FALSE"], "--leave-out must name a third label, got FALSE"),
        (["--leave-out", ""], "got 'unknown'; skip its rows with --leave-out"),
        (["--leave-out", "", "--anomaly-label", "1"], "; skip the rows of a third one with --leave-out"),
        (["--leave-out", "unknown"], "10 rows without a label; label or drop them"),
        (["--leave-out", "unknown", "--engine", "dask"], "remove --leave-out or --engine dask"),
    ],
)
def test_a_class_is_not_left_out(third: Path, options: list[str], sentence: str) -> None:
    done = invoke("calibrate", third / "three.csv", *THIRD, *options)
    assert done.code == 2
    assert sentence in done.err


@pytest.mark.parametrize("mode", [[], ["--group", "g"], ["--kind", "k"], ["--time", "t"]])
def test_calibrate_prints_the_certificate_as_it_is_saved(third: Path, mode: list[str]) -> None:
    saved = third / "c.json"
    out = succeeded("calibrate", third / "two.csv", *THIRD, *mode, "-o", saved, "--format", "json")
    assert out == saved.read_text()
