"""Traffic and reviewed alarms on the command line: calibrate, review, verify, and what else there is."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, Reviews, calibrate_traffic, recalibrate
from pac_wrap.method.groups.certificate import GroupCertificate
from support import sparksession
from support.shell import Done, invoke, refused, succeeded, write

PROMISE = ["--max-false-alarms", "40 per 10,000"]
ASKED = Guarantee(max_false_alarms="40 per 10,000")
ROWS = 4000


def made(rows: int = ROWS) -> dict[str, Any]:
    """Return traffic of two hosts whose highest scores somebody has reviewed, and the truth."""
    rng = np.random.default_rng(3)
    truth = rng.random(rows) < 0.03
    scores = rng.normal(3.0 * truth)
    reviews = np.where(scores > 2.6, truth, np.nan)
    return {"id": np.arange(rows), "s": scores, "v": reviews, "y": truth, "host": np.arange(rows) % 2}


def written(path: Path, columns: dict[str, Any]) -> Path:
    """Write columns as CSV, JSON lines, Parquet or NumPy, without a review where it is NaN."""
    if path.suffix == ".npz":
        np.savez(path, **columns)
        return path
    form = {".csv": "csv, HEADER", ".jsonl": "json", ".parquet": "parquet"}[path.suffix]
    shown = "* REPLACE (CASE WHEN NOT isnan(v) THEN CAST(v AS INTEGER) END AS v)" if "v" in columns else "*"
    with duckdb.connect() as connection:
        connection.register("given", columns)
        connection.execute(f"COPY (SELECT {shown} FROM given) TO '{path}' (FORMAT {form})")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("traffic") / "traffic.csv", made())


@pytest.fixture(scope="module")
def saved(table: Path) -> Path:
    path = table.with_name("certificate.json")
    succeeded("calibrate", table, "--score", "s", "--review", "v", *PROMISE, "-o", path)
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".npz", "-"])
def test_every_kind_of_table_gives_the_certificate_of_python(ending: str, tmp_path: Path) -> None:
    columns = made()
    file = written(tmp_path / f"t{'.csv' if ending == '-' else ending}", columns)
    where, stdin = ("-", file.read_bytes()) if ending == "-" else (file, None)
    words = ["calibrate", where, "--score", "s", "--review", "v", *PROMISE, "-o", tmp_path / "c.json"]
    done = invoke(*words, stdin=stdin)
    expected = calibrate_traffic(columns["s"], columns["v"], ASKED)
    assert Certificate.load(tmp_path / "c.json").bare == expected
    seen = expected.traffic
    assert seen is not None
    told = (
        f"pac-wrap: 4,000 rows of traffic: {seen.found + (seen.cleared or 0)} reviews, {seen.alarms} alarms"
    )
    assert (done.code, done.err) == (0, f"{told} -> {tmp_path / 'c.json'}\n")
    lines = done.out.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80


def test_a_report_loads_the_scores(table: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    succeeded("calibrate", table, "--score", "s", "--review", "v", *PROMISE, "--report", report, "-q")
    assert json.loads(report.read_text())["practice"]["points"] == ROWS


def test_groups_keep_the_promise_each_and_are_verified(table: Path, tmp_path: Path) -> None:
    columns, path = made(), tmp_path / "g.json"
    words = [table, "--score", "s", "--review", "v", "--group", "host"]
    done = invoke("calibrate", *words, *PROMISE, "--together", "-o", path)
    assert done.err.startswith("pac-wrap: 4,000 rows of traffic: ")
    assert done.err.endswith(f" found anomalous, 2 groups -> {path}\n")
    found = GroupCertificate.load(path)
    expected = calibrate_traffic(columns["s"], columns["v"], ASKED, by=columns["host"], together=True)
    assert found.columns.same(expected.columns).all()
    assert "verified" in succeeded("verify", path, *words)
    sentence = refused(tmp_path, "evaluate", path, table, "--score", "s", "--label", "y", "--group", "host")
    assert sentence.startswith("the promises of these groups are about shares of traffic")


def test_a_missing_score_of_a_group_raises_no_alarm(tmp_path: Path) -> None:
    columns = made()
    columns["s"] = np.where((columns["id"] % 50 == 7) & np.isnan(columns["v"]), np.nan, columns["s"])
    file, path = written(tmp_path / "t.parquet", columns), tmp_path / "g.json"
    succeeded("calibrate", file, "--score", "s", "--review", "v", "--group", "host", *PROMISE, "-o", path)
    expected = calibrate_traffic(columns["s"], columns["v"], ASKED, by=columns["host"])
    assert GroupCertificate.load(path).columns.same(expected.columns).all()


@pytest.mark.parametrize(
    "engine", ["dask", pytest.param("spark", marks=[pytest.mark.slow, sparksession.quiet])]
)
def test_engines_read_the_same_traffic(engine: str, tmp_path: Path) -> None:
    pytest.importorskip({"dask": "dask.dataframe", "spark": "pyspark"}[engine])
    columns, path = made(), tmp_path / "c.json"
    for ending in (".csv", ".parquet"):
        words = [written(tmp_path / f"t{ending}", columns), "--score", "s", *PROMISE, "--engine", engine]
        succeeded("calibrate", *words, "--review", "v", "-o", path)
        assert Certificate.load(path).bare == calibrate_traffic(columns["s"], columns["v"], ASKED)
        assert "found anomalous" not in refused(tmp_path, "calibrate", *words)
        assert refused(tmp_path, "calibrate", *words, "--review", "s") == (
            "column 's' cannot be both the score and the label; name two columns"
        )
        assert refused(tmp_path, "calibrate", *words, "--review", "host", "--group", "id").startswith(
            "--group"
        )
    strange = write(tmp_path / "strange.csv", "s,v\n1,0\n2,maybe\n")
    sentence = refused(tmp_path, "calibrate", strange, *words[1:], "--review", "v")
    assert sentence == (
        "column 'v' must be 1 (right), 0 (wrong) or empty (not reviewed), got 'maybe'; fix those rows"
    )


def reviewed(folder: Path, table: Path, answers: list[Path], *more: object) -> Done:
    """Ask for the next points, with the answers so far."""
    given = [word for file in answers for word in ("--answers", file)]
    keyed = [*given, "--key", "id"] if answers else []
    return invoke("review", table, "--score", "s", *PROMISE, *keyed, "-o", folder / "next.csv", *more)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".npz"])
def test_reviews_go_round_until_nothing_more_is_gained(ending: str, tmp_path: Path) -> None:
    columns = made()
    truth = columns.pop("y")
    del columns["v"]
    table, answers = written(tmp_path / f"t{ending}", columns), list[Path]()
    looked_at: list[int] = []
    for number in range(20):
        done = reviewed(tmp_path, table, answers, "-n", 40)
        assert done.code == 0, done
        with (tmp_path / "next.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if not rows:
            break
        assert sorted(rows[0]) == ["host", "id", "review", "s"]
        scores = [float(row["s"]) for row in rows]
        assert scores == sorted(scores, reverse=True)
        looked_at += [int(row["id"]) for row in rows]
        for row in rows:
            row["review"] = str(int(truth[int(row["id"])]))
        answers.append(tmp_path / f"answers {number}.csv")
        with answers[-1].open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    assert done.out.startswith("No further review lowers the threshold.\n")
    # always the highest ones, and none twice
    assert looked_at == np.argsort(-columns["s"])[: len(looked_at)].tolist()
    words = [table, "--score", "s", *(word for one in answers for word in ("--answers", one)), "--key", "id"]
    path = tmp_path / "c.json"
    succeeded("calibrate", *words, *PROMISE, "-o", path)
    highest = np.where(columns["s"] > 1.0, truth, np.nan)
    assert Certificate.load(path).rule == calibrate_traffic(columns["s"], highest, ASKED).rule
    assert "verified" in succeeded("verify", path, *words)


def test_answers_stand_over_the_reviews_of_the_table(table: Path, tmp_path: Path) -> None:
    columns, path = made(), tmp_path / "c.json"
    first = int(np.argmax(columns["s"]))
    answers = write(tmp_path / "a.csv", f"id,v\n{first},0\n5,\n")
    words = [table, "--score", "s", "--review", "v", "--answers", answers, "--key", "id"]
    succeeded("calibrate", *words, *PROMISE, "-o", path)
    columns["v"][first] = 0.0
    assert Certificate.load(path).bare == calibrate_traffic(columns["s"], columns["v"], ASKED)


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".csv.gz"])
def test_the_next_points_come_in_every_format(ending: str, table: Path, tmp_path: Path) -> None:
    output = tmp_path / f"next{ending}"
    words = [table, "--score", "s", "--review", "v", "--max-false-alarms", "0.02", "-n", 3]
    shown = succeeded("review", *words, "-o", output)
    columns = made()
    rest = np.where(np.isnan(columns["v"]), columns["s"], -np.inf)
    read = {".parquet": "parquet", ".jsonl": "json", ".csv.gz": "csv"}[ending]
    rows = duckdb.execute(f"SELECT CAST(id AS INTEGER), v FROM read_{read}('{output}')").fetchall()
    assert rows == [(int(place), None) for place in np.argsort(-rest)[:3]]
    assert f"3 rows -> {output}" in " ".join(shown.split())
    told = json.loads(succeeded("review", *words, "--format", "json"))
    seen = calibrate_traffic(columns["s"], columns["v"], Guarantee(max_false_alarms=0.02)).traffic
    assert seen is not None
    assert (told["next"], told["alarms"], told["wrong"]) == (3, seen.alarms, seen.wrong)


def test_too_little_traffic_is_said_with_code_1(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "s\n1\n2\n")
    done = invoke("review", table, "--score", "s", *PROMISE)
    assert done.code == 1
    assert "2 points of traffic are too few, 748 are needed" in " ".join(done.out.split())


def test_a_certificate_of_traffic_does_what_others_do(table: Path, saved: Path, tmp_path: Path) -> None:
    certificate, columns = Certificate.load(saved), made()
    alarms = int((columns["s"] >= certificate.rule.anomaly_from).sum())
    done = invoke("decide", saved, table, "--score", "s", "-o", tmp_path / "d.csv")
    assert f"{alarms} alarms, 0 undecided" in done.err
    streamed = invoke("decide", saved, "-", "--score", "s", stdin=table.read_bytes())
    assert streamed.out.splitlines() == (tmp_path / "d.csv").read_text().splitlines()
    expression = succeeded("sql", saved, "--score", "s")
    counting = f"SELECT count(*) FROM read_csv('{table}') WHERE ({expression}) = 1"
    counted = duckdb.execute(counting).fetchall()
    assert counted == [(alarms,)]
    assert succeeded("show", saved).startswith("In the long run, at most 40 of every 10,000 points raise")
    assert "verified" in succeeded("verify", saved, table, "--score", "s", "--review", "v")
    assert invoke("verify", saved, table, "--score", "s").code == 1


def test_labelled_traffic_measures_the_promise(table: Path, saved: Path) -> None:
    columns, words = made(), [table, "--score", "s", "--label", "y", "--format", "json", "-q"]
    found = {one["rate"]["n"]: one for one in json.loads(invoke("evaluate", saved, *words).out)["rates"]}
    told = json.loads(invoke("evaluate", saved, *words).out)
    high = columns["s"] >= Certificate.load(saved).rule.anomaly_from
    wrong = int((high & ~columns["y"]).sum())
    assert found[int(high.sum())]["rate"]["count"] == wrong
    assert [one["rate"]["count"] for one in told["rates"]] == [
        int(high.sum()),
        wrong,
        wrong,
        wrong,
        int((~high & columns["y"]).sum()),
    ]
    assert [one["ceiling"] for one in told["rates"]] == [None, 0.004, None, None, None]
    assert told["exceeded"] == []


def test_false_alarms_above_their_ceiling_end_with_code_1(saved: Path, tmp_path: Path) -> None:
    """All 4,000 of 100,000 points are normal and raise an alarm: ten times the ceiling."""
    table = tmp_path / "bad.parquet"
    duckdb.execute(
        "COPY (SELECT 9 * CAST(i < 4000 AS INTEGER) AS s, 0 AS y FROM range(100000) r (i))"
        f" TO '{table}' (FORMAT parquet)"
    )
    done = invoke("evaluate", saved, table, "--score", "s", "--label", "y", "-q")
    assert done.code == 1
    assert "exceeded" in done.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--review", "v"], "--review needs a promise about traffic, such as --max-false-alarms 20/50000"),
        ([], "missing --label; name the column of labels, or add a promise about traffic"),
        ([*PROMISE, "--label", "y"], "--label is for labelled points, and these promises are about traffic"),
        ([*PROMISE, "--overlap", "raise"], "--overlap is for labelled points"),
        ([*PROMISE, "--shift", "tv:0.01"], "promises about traffic work without kinds, shift"),
        ([*PROMISE, "--kind", "host"], "--kind is for labelled points"),
        ([*PROMISE, "--group", "host", "--pool"], "traffic by group takes one promise"),
        ([*PROMISE, "--max-fnr", "0.1"], "--max-fnr of traffic needs audits"),
        ([*PROMISE, "--audit", "y"], "--max-fnr of traffic needs audits"),
        ([*PROMISE, "--review", "host2"], "there is no column 'host2'"),
        ([*PROMISE, "--review", "id"], "column 'id' must be 1 (right), 0 (wrong) or empty (not reviewed)"),
        ([*PROMISE, "--review", "s"], "column 's' cannot be both the score and the review"),
        ([*PROMISE, "--review-rate", "0"], "rate of the reviews must be above 0 and at most 1, got 0.0"),
        ([*PROMISE, "--review-rate", "1.5"], "rate of the reviews must be above 0 and at most 1, got 1.5"),
        (["--max-false-alarms", "20/0"], "--max-false-alarms must be a rate such as 0.001, or points"),
        (["--max-false-alarms", "20,5/500"], "--max-false-alarms must be a rate such as 0.001, or points"),
        (
            ["--max-fpr", "0.01", *PROMISE],
            "--max-fpr from traffic needs the largest share of anomalies in it",
        ),
        ([*PROMISE, "--key", "id"], "--key works only with --answers"),
        ([*PROMISE, "--answers", "a.csv"], "--answers works only with --key"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: list[str], sentence: str, table: Path, tmp_path: Path) -> None:
    told = refused(tmp_path, "calibrate", table, "--score", "s", *words, "-o", tmp_path / "c.json")
    assert told.startswith(sentence)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ("id,review\n99999,1\n", "no row of {} have the key '99999' of an answer in column 'id'"),
        ("id,review\n3,1\n3,0\n", "an answer in {answers} has the key '3', as an earlier one"),
        ("id,review\n,1\n", "an answer in {answers} has no key"),
        ("id,review\n3,perhaps\n", "column 'review' must be 1 (right), 0 (wrong) or empty"),
        ("id,verdict\n3,1\n", "there is no column 'review'"),
        ("host,review\n1,1\n", "there is no column 'id'"),
    ],
)
def test_answers_that_fit_no_row_are_refused(
    answers: str, sentence: str, table: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", answers)
    words = [table, "--score", "s", *PROMISE, "--answers", file, "--key", "id"]
    told = refused(tmp_path, "review", *words, "-o", tmp_path / "next.csv")
    assert told.startswith(sentence.format(table, answers=file))


@pytest.mark.filterwarnings("default::pac_wrap.errors.LabelWarning")
def test_a_reviewed_point_needs_a_score_and_alarms_alone_are_no_traffic(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "s,v\n1,1\n,0\n")
    sentence = refused(tmp_path, "calibrate", table, "--score", "s", "--review", "v", *PROMISE)
    assert sentence == "column 's' is empty or NaN in 1 reviewed row; give each a score, or drop the review"
    table = write(tmp_path / "t.csv", "s,v\n1,1\n2,0\n")
    done = invoke("calibrate", table, "--score", "s", "--review", "v", *PROMISE)
    assert done.code == 1
    assert done.err.startswith("pac-wrap: note: every point was reviewed")


def test_new_traffic_follows_with_a_share_of_delta(saved: Path, tmp_path: Path) -> None:
    columns, path = made(20_000), tmp_path / "new.json"
    words = [written(tmp_path / "late.csv", columns), "--score", "s", "--review", "v"]
    succeeded("recalibrate", saved, *words, "-o", path)
    expected = recalibrate(Certificate.load(saved), columns["s"], columns["v"])
    assert Certificate.load(path).bare == expected
    assert expected.guarantee.delta_fpr == pytest.approx(0.05 / 3)


def test_audits_are_named_again_when_missed_anomalies_are_verified(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    columns = made(40_000)
    columns["s"] = rng.normal(5.0 * columns["y"])
    columns["coin"] = rng.random(columns["s"].size) < 0.05
    columns["v"] = np.where((columns["s"] > 2.0) | columns["coin"], columns["y"], np.nan)
    table, path = written(tmp_path / "t.parquet", columns), tmp_path / "c.json"
    words = [table, "--score", "s", "--review", "v", "--audit", "coin"]
    succeeded("calibrate", *words, "--audits", "0.05", "--max-fnr", "0.1", "-o", path)
    expected = Guarantee(max_fnr=0.1, reviews=Reviews(audits=0.05))
    assert Certificate.load(path).bare == calibrate_traffic(
        columns["s"], columns["v"], expected, audits=columns["coin"]
    )
    assert "verified" in succeeded("verify", path, *words)
    assert refused(tmp_path, "verify", path, *words[:-2]) == (
        "this certificate was made with audits; name their column with --audit"
    )
    told = refused(tmp_path, "recalibrate", path, *words[:-2], "-o", tmp_path / "new.json")
    assert told.endswith("has no successors; use pac-wrap calibrate")


def test_what_does_not_work_with_traffic_says_what_does(table: Path, saved: Path, tmp_path: Path) -> None:
    labelled = [table, "--score", "s", "--label", "y"]
    again = refused(tmp_path, "recalibrate", saved, *labelled, "-o", tmp_path / "new.json")
    assert again.startswith("--label is for labelled points")
    assert "all traffic" in refused(tmp_path, "worth", saved, "--prevalence", "0.01")
    assert refused(tmp_path, "verify", saved, *labelled).startswith("--label is for labelled points")
    assert refused(tmp_path, "review", table, "--score", "s").startswith("add a promise about traffic")
    named = refused(tmp_path, "review", table, "--score", "s", *PROMISE, "-o", table)
    assert named.startswith(f"{table} is also an input")
