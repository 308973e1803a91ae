"""Groups on the command line: calibrate, show, verify, evaluate, decide and sql."""

import json
import sys
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from pac_wrap import GroupCertificate, calibrate_labelled
from support import sparksession
from support.daskcluster import needs_dask
from support.shell import CERTIFICATE, invoke, one_sentence, refused, succeeded

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


NAMES = ["acme", "\x1b[31mred\x1b[0m", "it's | <b>", "tiny"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = (rng.random(3000) < 0.4).astype(int)
    tenant = rng.choice(NAMES, 3000, p=[0.5, 0.28, 0.2, 0.02])
    return pd.DataFrame({"tenant": tenant, "score": np.round(rng.normal(4 * label, 1), 2), "label": label})


@pytest.fixture
def tables(frame: pd.DataFrame, tmp_path: Path) -> Path:
    frame.to_csv(tmp_path / "scores.csv", index=False)
    frame.to_parquet(tmp_path / "scores.parquet")
    frame.to_json(tmp_path / "scores.jsonl", orient="records", lines=True)
    return tmp_path


COLUMNS = ("--score", "score", "--label", "label", "--group", "tenant")
DECIDED = ("--score", "score", "--group", "tenant")
NAMELESS = "name the column of groups with --group"


def calibrated(tables: Path, *options: str) -> Path:
    path = tables / "groups.json"
    succeeded("calibrate", tables / "scores.csv", *COLUMNS, "-o", path, *options)
    return path


def test_a_certificate_of_groups_is_made_shown_and_verified(frame: pd.DataFrame, tables: Path) -> None:
    path = calibrated(tables, "--together", "--pool")
    found = GroupCertificate.load(path)
    assert found == calibrate_labelled(
        frame["score"], frame["label"], together=True, pool=True, by=frame["tenant"]
    )
    assert found.provenance is not None
    assert found.provenance.date is not None
    shown = succeeded("show", path)
    assert "for all 4 groups together with confidence" in shown
    assert "\x1b" not in shown
    assert "'tiny': " in shown
    markdown = succeeded("show", path, "--format", "markdown")
    assert "<b>" not in markdown
    assert "\x1b" not in markdown
    assert json.loads(succeeded("show", path, "--format", "json"))["format"] == "pac-wrap groups"
    for name in ("scores.csv", "scores.parquet", "scores.jsonl"):
        assert succeeded("verify", path, tables / name, *COLUMNS).startswith("verified")
    done = invoke(
        "verify", path, tables / "scores.csv", "--score", "score", "--label", "label", "--group", "label"
    )
    assert done.code == 2
    frame.assign(score=frame["score"] + 1).to_csv(tables / "other.csv", index=False)
    done = invoke("verify", path, tables / "other.csv", *COLUMNS)
    assert (done.code, done.out[:12]) == (1, "not verified")


def test_rows_are_decided_by_their_group(frame: pd.DataFrame, tables: Path) -> None:
    path = calibrated(tables)
    certificate = GroupCertificate.load(path)
    added = pd.DataFrame({"tenant": ["new", None], "score": [9.0, 9.0], "label": [1, 1]})
    more = pd.concat([frame, added], ignore_index=True)
    expected = certificate.verdicts(more["score"], more["tenant"]).tolist()
    more.to_csv(tables / "new.csv", index=False)
    more.to_parquet(tables / "new.parquet")
    more.to_json(tables / "new.jsonl", orient="records", lines=True)
    for source in ("new.csv", "new.parquet", "new.jsonl"):
        for target in ("out.parquet", "out.csv", "out.jsonl"):
            done = invoke(
                "decide",
                path,
                tables / source,
                "--score",
                "score",
                "--group",
                "tenant",
                "-o",
                tables / target,
            )
            assert done.code == 0
            assert "2 in groups never seen" in done.err
            found = duckdb.execute(f"SELECT verdict FROM '{tables / target}'").fetchall()
            assert [row[0] for row in found] == expected
    for source in ("new.csv", "new.jsonl"):
        stdin = (tables / source).read_bytes()
        for form in ("csv", "jsonl"):
            done = invoke("decide", path, "-", *DECIDED, "--format", form, stdin=stdin)
            assert "2 in groups never seen" in done.err
            lines = done.out.splitlines()[form == "csv" :]
            verdicts = [
                int(line.split(",")[-2] if "{0,1}" not in line else line.rsplit(',"', 1)[0].split(",")[-1])
                if form == "csv"
                else json.loads(line)["verdict"]
                for line in lines
            ]
            assert verdicts == expected


def test_the_worst_group_comes_first_and_ends_with_1(frame: pd.DataFrame, tables: Path) -> None:
    path = calibrated(tables)
    out = succeeded("evaluate", path, tables / "scores.parquet", *COLUMNS)
    assert "within" in out
    assert "no promise" in out
    record = json.loads(succeeded("evaluate", path, tables / "scores.parquet", *COLUMNS, "--format", "json"))
    assert {one["group"] for one in record["groups"]} == set(frame["tenant"].dropna())
    assert record["exceeded"] == []
    normal = sum(one["fpr"]["n"] for one in record["groups"])
    assert normal == record["rates"]["fpr"]["n"]
    turned = frame["tenant"] == "acme"
    frame.assign(label=np.where(turned, 1 - frame["label"], frame["label"])).to_csv(
        tables / "bad.csv", index=False
    )
    done = invoke("evaluate", path, tables / "bad.csv", *COLUMNS)
    assert done.code == 1
    assert "\x1b[31m" not in done.out
    assert done.out.index("acme") < done.out.index("tiny")


def test_the_rules_as_sql(frame: pd.DataFrame, tables: Path) -> None:
    path = calibrated(tables)
    expected = GroupCertificate.load(path).verdicts(frame["score"], frame["tenant"]).tolist()
    case = succeeded("sql", path, "--score", "score", "--group", "tenant")
    found = duckdb.execute(f"SELECT {case} AS verdict FROM '{tables / 'scores.parquet'}'").fetchall()
    assert [row[0] for row in found] == expected
    script = succeeded("sql", path, "--score", "score", "--group", "tenant", "--join-table", "rules")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW scores AS SELECT * FROM '{tables / 'scores.parquet'}'")
        counts = connection.execute(script).df()["verdict"].value_counts().to_dict()
    assert counts == pd.Series(expected).value_counts().to_dict()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("decide", "groups.json", "scores.csv", "--score", "score"),
            "name the column of groups with --group",
        ),
        (("sql", "groups.json"), NAMELESS),
        (("sql", CERTIFICATE, "--join-table", "r"), "--join-table needs a certificate of groups"),
        (("decide", CERTIFICATE, "scores.csv", "--score", "score", "--group", "tenant"), "remove it"),
        (
            ("evaluate", CERTIFICATE, "scores.csv", *COLUMNS),
            "--group needs a certificate",
        ),
        (("calibrate", "scores.csv", *COLUMNS[:4], "--together"), "name their column with --group"),
        (
            ("calibrate", "scores.csv", *COLUMNS, "--time", "score"),
            "--group does not work with --kind, --time or",
        ),
        (
            ("calibrate", "scores.csv", *COLUMNS, "--pool", "--overlap", "raise"),
            "pool needs --overlap abstain",
        ),
        (("calibrate", "scores.csv", *COLUMNS[:5], "tenat"), "did you mean 'tenant'"),
    ],
)
def test_what_does_not_go_together_is_said(
    arguments: tuple[object, ...], words: str, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrated(tables)
    monkeypatch.chdir(tables)
    done = invoke(*arguments)
    assert done.code == 2
    assert words in one_sentence(done.err)


def test_nothing_certified_ends_with_1(tables: Path) -> None:
    few = pd.DataFrame({"tenant": ["a", "b"], "score": [1.0, 2.0], "label": [0, 1]})
    few.to_csv(tables / "few.csv", index=False)
    assert invoke("calibrate", tables / "few.csv", *COLUMNS).code == 1


def test_a_rate_that_is_not_significantly_above_says_so(tables: Path) -> None:
    rng = np.random.default_rng(0)
    label = np.tile([0, 1], 150)
    frame = pd.DataFrame({"tenant": "acme", "score": rng.normal(8 * label, 1), "label": label})
    frame.to_csv(tables / "scores.csv", index=False)
    path = calibrated(tables)
    more = pd.DataFrame({"tenant": "acme", "score": [0.0] * 18 + [99.0] * 2, "label": 0})
    more.to_csv(tables / "more.csv", index=False)
    out = succeeded("evaluate", path, tables / "more.csv", *COLUMNS)
    assert "above, not" in out


@pytest.mark.parametrize("table", ["scores.csv", "scores.parquet"])
def test_a_page_lists_the_groups_and_draws_them(frame: pd.DataFrame, tables: Path, table: str) -> None:
    page, expected = tables / "page.html", tables / "expected.html"
    certificate = tables / "groups.json"
    succeeded("calibrate", tables / table, *COLUMNS, "--report", page, "-o", certificate)
    text = page.read_text(encoding="utf-8")
    assert text.count("<figure>") == len(NAMES)
    assert "it&#39;s | &lt;b&gt;" in text
    assert "\x1b" not in text
    # the very page that Python makes of the same columns
    GroupCertificate.load(certificate).report(expected, frame["score"], frame["label"], frame["tenant"])
    assert text == expected.read_text(encoding="utf-8")
    refused = invoke("calibrate", tables / table, *COLUMNS, "--report", page, "--prevalence", "0.1")
    assert "--prevalence" in one_sentence(refused.err)
    worth = invoke("worth", certificate, "--prevalence", "0.1")
    assert "depend on the mix of groups" in one_sentence(worth.err)


@pytest.mark.parametrize(
    ("engine", "ending"),
    [
        *(("dask", ending) for ending in ("parquet", "csv", "jsonl")),
        pytest.param("spark", "parquet", marks=[pytest.mark.slow, sparksession.quiet]),
    ],
)
def test_every_engine_writes_the_certificate_that_duckdb_writes(
    engine: str, ending: str, frame: pd.DataFrame, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "spark":
        sparksession.require()
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    else:
        needs_dask()
    gaps = frame.assign(
        tenant=frame["tenant"].where(frame.index % 9 > 0), label=np.array(["Ok", "bad"])[frame["label"]]
    )
    written = {"parquet": gaps.to_parquet, "csv": partial(gaps.to_csv, index=False)}
    lines = partial(gaps.to_json, orient="records", lines=True)
    written.get(ending, lines)(tables / f"scores.{ending}")
    options = (*COLUMNS, "--anomaly-label", "bad", "--together", "--pool")
    found = []
    for word in ("duckdb", engine):
        path = tables / f"{word}.json"
        succeeded("calibrate", tables / f"scores.{ending}", *options, "--engine", word, "-o", path)
        found.append(GroupCertificate.load(path))
    assert found[0].bare.to_json() == found[1].bare.to_json()
    assert found[1].pool is not None
    assert found[1].provenance is not None
    assert found[1].provenance.engine == engine


def test_whole_numbers_in_json_and_a_bad_score_are_read_as_duckdb_reads_them(
    frame: pd.DataFrame, tables: Path
) -> None:
    needs_dask()
    numbered = frame.assign(tenant=np.arange(len(frame)) % 3)
    numbered.to_json(tables / "scores.jsonl", orient="records", lines=True)
    found = []
    for word in ("duckdb", "dask"):
        succeeded("calibrate", tables / "scores.jsonl", *COLUMNS, "--engine", word, "-o", tables / word)
        found.append(GroupCertificate.load(tables / word))
    assert found[0].groups == found[1].groups == ("0", "1", "2")
    assert found[0].bare == found[1].bare
    (tables / "bad.csv").write_text("score,label,tenant\n1,0,a\nx,1,a\n")
    said = refused(tables, "calibrate", tables / "bad.csv", *COLUMNS, "--engine", "dask")
    assert "must hold numbers, got 'x' in row 2" in said
    twice = ("--score", "score", "--label", "label", "--group", "score", "--engine", "dask")
    assert "cannot be the group as well" in refused(tables, "calibrate", tables / "bad.csv", *twice)
