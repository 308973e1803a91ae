"""`--kind`: the certificate of a table is that of its scores by kind, and every command takes it."""

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate, calibrate_classes
from support.shell import invoke, refused, succeeded

RNG = np.random.default_rng(4)
NORMAL = RNG.normal(0, 1, 1500)
# the last = counts, and nothing in a name needs an escape
STOLEN = "card = \"stolen\", 'x'; DROP TABLE labelled --"
KINDS = {STOLEN: RNG.normal(5, 1, 300), "takeover": RNG.normal(3, 1, 120)}
COLUMNS = ["--score", "s", "--label", "y", "--kind", "k"]
CEILINGS = ["--max-fpr", "0.02", "--max-fnr", f"{STOLEN}=0.05", "--max-fnr", "takeover=0.1"]
EXPECTED = calibrate(NORMAL, KINDS, Guarantee(0.02, {STOLEN: 0.05, "takeover": 0.1}))


@pytest.fixture(scope="module", params=["csv", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    rows = [(repr(float(score)), 0, "") for score in NORMAL]
    rows += [(repr(float(score)), 1, kind) for kind, scores in KINDS.items() for score in scores]
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("s", "y", "k"), *(rows[i] for i in RNG.permutation(len(rows)))])
    if request.param == "csv":
        return path
    source = f"SELECT s::DOUBLE AS s, y::INT AS y, k FROM read_csv('{path}', all_varchar=true)"
    duckdb.sql(f"COPY ({source}) TO '{folder / 'table.parquet'}'")
    return folder / "table.parquet"


def test_a_table_gives_the_certificate_of_its_scores_by_kind(table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "kinds.json"
    shown = succeeded("calibrate", table, *COLUMNS, *CEILINGS, "-o", saved)
    found = Certificate.load(saved)
    assert found == EXPECTED
    assert shown == f"{found.bare}\n"
    assert "verified" in succeeded("verify", saved, table, *COLUMNS)
    report = tmp_path / "report.md"
    succeeded("calibrate", table, *COLUMNS, *CEILINGS, "--report", report)
    page = report.read_text(encoding="utf-8")
    assert "- Anomalous points of 'takeover' set the threshold at about" in page
    assert "| 'takeover' (binds) | anomalous | 120 | 10 % | 6 |" in page
    told = succeeded("show", saved)
    assert told.startswith(shown)
    assert "read by duckdb" in " ".join(told.split())
    assert "| binds | anomalous points of 'takeover' set" in succeeded("show", saved, "--format", "markdown")
    assert "takeover" in succeeded("show", saved, "--format", "json")
    measured = succeeded("evaluate", saved, table, *COLUMNS)
    assert "'takeover'" in measured
    assert "exceeded" not in measured
    decided = succeeded("decide", saved, table, "--score", "s", "--format", "csv")
    verdicts = [int(row["verdict"]) for row in csv.DictReader(decided.splitlines())]
    scores = [float(row["s"]) for row in csv.DictReader(decided.splitlines())]
    assert verdicts == EXPECTED.verdicts(scores).tolist()
    assert "CASE" in succeeded("sql", saved, "--score", "s")


def test_one_number_is_for_every_kind_and_a_star_for_all_together(table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "kinds.json"
    succeeded("calibrate", table, *COLUMNS, "--max-fpr", "none", "--max-fnr", "0.1", "-o", saved)
    assert Certificate.load(saved) == calibrate(NORMAL, KINDS, Guarantee(None, 0.1))
    starred = [*CEILINGS, "--max-fnr", "*=0.06", "--overlap", "hold-fnr"]
    succeeded("calibrate", table, *COLUMNS, *starred, "-o", saved)
    asked = Guarantee(0.02, {STOLEN: 0.05, "takeover": 0.1, None: 0.06})
    assert Certificate.load(saved) == calibrate(NORMAL, KINDS, asked, overlap="hold_fnr")


def test_an_exceeded_ceiling_or_another_table_ends_with_1(table: Path, tmp_path: Path) -> None:
    saved, other = tmp_path / "kinds.json", tmp_path / "other.csv"
    EXPECTED.save(saved)
    other.write_text("s,y,k\n" + "-5,1,takeover\n" * 50 + "0,0,\n", encoding="utf-8")
    found = invoke("evaluate", saved, other, *COLUMNS)
    assert (found.code, found.err) == (1, "")
    assert "exceeded" in found.out
    differs = invoke("verify", saved, other, *COLUMNS)
    assert differs.code == 1
    assert "only in the certificate" in differs.out


@pytest.mark.parametrize("ceilings", [CEILINGS, ["--max-fpr", "none"]])
def test_a_table_without_kinds_is_another_table(ceilings: list[str], table: Path, tmp_path: Path) -> None:
    saved, other = tmp_path / "kinds.json", tmp_path / "other.csv"
    succeeded("calibrate", table, *COLUMNS, *ceilings, "-o", saved)
    other.write_text("s,y,k\n" + "9,1,\n" * 50 + "0,0,\n" * 50, encoding="utf-8")
    done = invoke("verify", saved, other, *COLUMNS)
    assert (done.code, done.err) == (1, "")
    assert "the anomalous kind 'takeover' is only in the certificate" in done.out
    assert "the anomalous points without kinds are only among the scores" in done.out


def test_too_few_labels_of_a_kind_end_with_1(tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("s,y,k\n" + "0,0,\n" * 100 + "5,1,new\n", encoding="utf-8")
    done = invoke("calibrate", few, *COLUMNS)
    assert done.code == 1
    assert "'new': 1 label, too few: at least 59 are needed" in done.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--report", "r.html", "--prevalence", "0.1"], "--prevalence does not work with --kind"),
        (["--kind", "y"], "column 'y' cannot be the kind as well"),
        (["--kind", "y", "--engine", "dask"], "column 'y' cannot be the kind as well"),
        (["--overlap", "raise"], "use abstain, hold_fnr or hold_fpr"),
        (["--max-fnr", "takeover=0.1"], "no ceiling for the anomalous kind"),
        (["--max-fnr", "0.1", "--max-fnr", "a=0.1"], "must be kind=ceiling, once for each kind, got '0.1'"),
        (
            ["--max-fnr", "a=0.1", "--max-fnr", "a=0.2"],
            "must be kind=ceiling, once for each kind, got 'a=0.2'",
        ),
        (["--max-fnr", "a=x"], "--max-fnr must be a number between 0 and 1"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, table: Path, options: list[str], sentence: str
) -> None:
    assert sentence in refused(tmp_path, "calibrate", table, *COLUMNS, *options)


def test_kinds_and_certificates_have_to_match(table: Path, tmp_path: Path) -> None:
    saved, plain = tmp_path / "kinds.json", tmp_path / "plain.json"
    EXPECTED.save(saved)
    calibrate(NORMAL, KINDS["takeover"]).save(plain)
    assert "name the column of kinds with --kind" in refused(tmp_path, "evaluate", saved, table, *COLUMNS[:4])
    assert "name the column of kinds with --kind" in refused(tmp_path, "verify", saved, table, *COLUMNS[:4])
    assert "mix of kinds" in refused(tmp_path, "worth", saved, "--prevalence", "0.1")
    assert "made with --kind; remove it" in refused(tmp_path, "evaluate", plain, table, *COLUMNS)
    assert "--kind in the shell" in refused(tmp_path, "calibrate", table, *COLUMNS[:4], "--max-fnr", "a=0.1")
    assert "there is no column 'q'" in refused(tmp_path, "calibrate", table, *COLUMNS[:5], "q")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            "1,1,a\n2,1,\n",
            "column 'k' is empty in 1 row of anomalous points, while other anomalous rows have",
        ),
        ("".join(f"1,1,{i}\n" for i in range(41)), "column 'k' names 41 kinds of anomalous points"),
        ("1,2,a\n", "column 'y' must be 0/1 or true/false"),
        ("x,1,a\n", "must hold numbers"),
    ],
)
def test_a_table_whose_kinds_are_wrong_is_refused(tmp_path: Path, rows: str, sentence: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("s,y,k\n0,0,\n" + rows, encoding="utf-8")
    assert sentence in refused(tmp_path, "calibrate", path, *COLUMNS)


def test_a_label_that_marks_no_row_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("s,y,k\n0,ok,\n1,fault,a\n", encoding="utf-8")
    assert "must hold 'broken' and one other value" in refused(
        tmp_path, "calibrate", path, *COLUMNS, "--anomaly-label", "broken"
    )
    assert invoke("calibrate", path, *COLUMNS, "--anomaly-label", "fault").code == 1


@pytest.mark.parametrize("ending", ["html", "json"])
def test_a_page_shows_every_kind(table: Path, tmp_path: Path, ending: str) -> None:
    page, saved = tmp_path / f"page.{ending}", tmp_path / "kinds.json"
    succeeded("calibrate", table, *COLUMNS, *CEILINGS, "--report", page, "-o", saved)
    text = page.read_text(encoding="utf-8")
    assert "takeover' (binds)" in text or "takeover&#39; (binds)" in text
    if ending == "html":
        assert text.count("<figure>") == len(KINDS)


def test_a_certificate_of_classes_is_shown(tmp_path: Path) -> None:
    saved = tmp_path / "classes.json"
    certificate = calibrate_classes(np.eye(3)[np.arange(300) % 3], np.arange(300) % 3)
    certificate.save(saved)
    assert succeeded("show", saved) == f"{certificate}\n"
    assert "| classes | '0': 100 labels" in succeeded("show", saved, "--format", "markdown")
    assert succeeded("show", saved, "--format", "json") == certificate.to_json()
