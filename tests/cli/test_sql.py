"""`pac-wrap sql --calibrate`: a shell and a database's own client are all it takes."""

import csv
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate, calibrate_labelled
from support import postgres
from support.patience import LIMIT
from support.shell import CERTIFICATE, SCRIPT, invoke, one_sentence, refused, succeeded, write
from support.traffic import in_memory, traffic

SCALE = Path(__file__).parents[2] / "docs/guide/database.md"
ASKED = ("sql", "--calibrate", "--table", "scores", "--dialect", "duckdb")


def drawn(n: int = 900, shift: float = 5.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    labels = (rng.random(n) < 0.4).astype(int)
    return rng.normal(size=n) + shift * labels, labels


@pytest.fixture
def database() -> Iterator[Any]:
    with duckdb.connect() as connection:
        scores, labels = drawn()
        connection.register("rows", {"score": scores, "label": labels})
        connection.execute("CREATE TABLE scores AS SELECT * FROM rows")
        yield connection


def answered(database: Any, statement: str) -> str:
    """Return what a client of the database would print."""
    found = database.execute(statement)
    out = io.StringIO()
    csv.writer(out).writerows([[column[0] for column in found.description], *found.fetchall()])
    return out.getvalue()


def to_the_end(database: Any, folder: Path, *options: object) -> str:
    """Return the last output, after all answers have been collected in a file."""
    answers = folder / "answers.csv"
    for _ in range(9):
        out = succeeded(*ASKED, *options, "--answers", answers)
        if all(line.startswith("--") for line in out.splitlines()):
            return out
        with answers.open("a", encoding="utf-8", newline="") as file:
            file.write(answered(database, out))
    raise AssertionError("there is no end to it")


def test_the_last_answer_gives_the_certificate_that_every_command_takes(
    database: Any, tmp_path: Path
) -> None:
    made = tmp_path / "certificate.json"
    out = to_the_end(database, tmp_path, "-o", made)
    whole = calibrate_labelled(*drawn())
    assert Certificate.load(made).bare.to_json() == whole.to_json()
    for line in str(whole).splitlines():
        assert f"-- {line.rstrip()}" in out
    assert database.execute(f"{out}\nSELECT 1").fetchall() == [(1,)]
    table = tmp_path / "table.csv"
    database.execute(f"COPY scores TO '{table}' (HEADER)")
    other = tmp_path / "other.json"
    columns = ("--score", "score", "--label", "label")
    succeeded("calibrate", table, *columns, "-o", other)
    assert Certificate.load(other).bare.to_json() == Certificate.load(made).bare.to_json()
    assert "verified" in succeeded("verify", made, table, *columns)
    assert "regime     separated" in succeeded("show", made)
    verdict = succeeded("sql", made, "--score", "score")
    decided = database.execute(f"SELECT {verdict} FROM scores").fetchall()
    assert [row[0] for row in decided] == whole.verdicts(drawn()[0]).tolist()
    assert "verdict" in succeeded("decide", made, table, "--score", "score", "--format", "csv")


def test_every_option_of_calibrate_is_one_here(database: Any, tmp_path: Path) -> None:
    made = tmp_path / "certificate.json"
    options = ("--max-fpr", "0.1", "--max-fnr", "0.2", "--confidence", "0.9", "--overlap", "raise")
    to_the_end(database, tmp_path, *options, "-o", made)
    table = tmp_path / "table.parquet"
    database.execute(f"COPY scores TO '{table}' (FORMAT parquet)")
    other = tmp_path / "other.json"
    succeeded("calibrate", table, "--score", "score", "--label", "label", *options, "-o", other)
    assert Certificate.load(other).bare.to_json() == Certificate.load(made).bare.to_json()


def test_traffic_is_calibrated_where_it_stays(database: Any, tmp_path: Path) -> None:
    """Four statements whatever the number of rows: the count, a few ranks, their digests."""
    scores, reviews = traffic()
    database.register("given", {"score": scores, "verdict": reviews})
    found = "CASE WHEN NOT isnan(verdict) THEN CAST(verdict AS INTEGER) END AS verdict"
    database.execute(f"CREATE OR REPLACE TABLE scores AS SELECT score, {found} FROM given")
    made, promise = tmp_path / "certificate.json", ("--max-false-alarms", "40 per 10,000")
    to_the_end(database, tmp_path, "--review", "verdict", *promise, "-o", made)
    assert Certificate.load(made).bare.to_json() == in_memory(scores, reviews, "false alarms")
    assert (tmp_path / "answers.csv").read_text().count("statement") <= 4
    told = refused(tmp_path, *ASKED, "--review", "verdict")
    assert told.startswith("--review needs a promise about traffic")
    assert "not traffic" in refused(tmp_path, *ASKED, *promise, "--label", "label")


def test_too_few_labels_are_the_exit_code_and_the_certificate_is_written(
    database: Any, tmp_path: Path
) -> None:
    database.execute("DELETE FROM scores WHERE rowid > 20")
    answers, made = tmp_path / "answers.csv", tmp_path / "certificate.json"
    for _ in range(9):
        done = invoke(*ASKED, "--answers", answers, "-o", made)
        if done.code:
            break
        with answers.open("a", newline="") as file:
            file.write(answered(database, done.out))
    assert done.code == 1
    assert Certificate.load(made).regime.value == "vacuous"
    assert all(line.startswith("--") for line in done.out.splitlines())


def test_answers_come_from_a_pipe_too(database: Any) -> None:
    first = succeeded(*ASKED)
    assert first.startswith("-- pac-wrap: statement 1, labels, and what is missing\n-- append its answer")
    second = succeeded(*ASKED, "--answers", "-", stdin=answered(database, first).encode("utf-8-sig"))
    assert second.startswith("-- pac-wrap: statement 2, scores at ranks\n")


def test_hostile_names_stay_in_their_line(tmp_path: Path) -> None:
    answers = tmp_path / "a\nDROP TABLE scores;"
    out = succeeded("sql", "--calibrate", "--table", "t\n; DROP TABLE t", "--answers", answers)
    comments = [line for line in out.splitlines() if line.startswith("--")]
    assert len(comments) == 2
    assert "\nDROP" not in out
    assert '"t\n; DROP TABLE t"' in out


def test_what_does_not_fit_together_is_one_sentence(tmp_path: Path) -> None:
    both = "--calibrate makes a new certificate; name none, and add the table with --table"
    assert refused(tmp_path, "sql", CERTIFICATE, "--calibrate", "--table", "t") == both
    assert refused(tmp_path, "sql", "--calibrate") == both
    assert refused(tmp_path, "sql").startswith("name the certificate whose rule to print, or")
    for option, value in (("--table", "t"), ("-o", tmp_path / "c.json"), ("--overlap", "raise")):
        sentence = f"{option} works only with --calibrate; add --calibrate, or remove {option}"
        assert refused(tmp_path, "sql", CERTIFICATE, option, value) == sentence
    assert refused(tmp_path, *ASKED, "--group", "g").startswith("--calibrate makes a certificate without gro")
    answers = write(tmp_path / "answers.csv", "label\n")
    assert "is also an input" in refused(tmp_path, *ASKED, "--answers", answers, "-o", answers)
    assert refused(tmp_path, *ASKED, "--answers", answers).startswith(
        "answer 1 must have the columns label,points"
    )
    assert "is not UTF-8" in refused(tmp_path, *ASKED, "--answers", "-", stdin=b"\xff\xfel\x00")
    large = tmp_path / "large.csv"
    large.write_bytes(b"\n" * (2**24 + 1))
    assert "more than answers need" in refused(tmp_path, *ASKED, "--answers", large)
    assert "the table must be a name such as" in refused(tmp_path, "sql", "--calibrate", "--table", "a..b")
    assert "cannot be both" in refused(tmp_path, *ASKED, "--score", "label")


def test_other_options_in_the_middle_are_noticed(database: Any, tmp_path: Path) -> None:
    to_the_end(database, tmp_path)
    message = refused(tmp_path, *ASKED, "--max-fpr", "0.01", "--answers", tmp_path / "answers.csv")
    assert message.startswith("answer 2 belongs to another statement; use the same options every time")


def test_upside_down_scores_are_said_on_standard_error(database: Any, tmp_path: Path) -> None:
    database.execute("UPDATE scores SET score = -score")
    answers = tmp_path / "answers.csv"
    for _ in range(9):
        done = invoke(*ASKED, "--answers", answers)
        if done.err:
            break
        with answers.open("a", newline="") as file:
            file.write(answered(database, done.out))
    assert "anomalies score lower than normal points" in one_sentence(done.err)


def loops() -> list[str]:
    """Return the loops in shell that the page shows."""
    blocks = SCALE.read_text(encoding="utf-8").split("```sh\n")[1:]
    return [block.partition("```")[0] for block in blocks if block.startswith("until ")]


@pytest.mark.slow  # the command and psql are started five times each
def test_the_loop_of_the_page_makes_the_certificate_with_psql_and_a_shell(tmp_path: Path) -> None:
    scores, labels = drawn()
    (loop,) = loops()
    with postgres.server() as connection:
        connection.execute("CREATE TABLE scores (score DOUBLE PRECISION, label BOOLEAN)")
        rows = list(zip(scores.tolist(), (labels == 1).tolist(), strict=True))
        connection.cursor().executemany("INSERT INTO scores VALUES (%s, %s)", rows)
        connection.commit()
        environment = os.environ | {
            "PATH": f"{SCRIPT.parent}:{os.environ['PATH']}",
            "PGHOST": connection.info.host,
            "PGUSER": "postgres",
        }
        done = subprocess.run(
            ["sh", "-c", loop],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=LIMIT,
            check=True,
        )
        assert done.stderr == b""
        made = Certificate.load(tmp_path / "certificate.json")
        assert made.bare.to_json() == calibrate_labelled(scores, labels).to_json()
        assert (tmp_path / "answers.csv").read_text().count("statement") == 4
        # a table that is not there ends the loop
        connection.execute("DROP TABLE scores")
        connection.commit()
        for file in tmp_path.iterdir():
            file.unlink()
        failed = subprocess.run(
            ["sh", "-c", loop],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    assert b'relation "scores" does not exist' in failed.stderr
    assert not (tmp_path / "certificate.json").exists()
