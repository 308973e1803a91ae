"""`evaluate`, `verify` and `show`: what a certificate is worth, and what the exit code says about it."""

import json
import re
from math import inf, nan, nextafter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pac_wrap import Certificate, calibrate
from support.shell import CERTIFICATE, GOLDEN, command, invoke, refused, succeeded, write

COLUMNS = ["--score", "score", "--label", "label"]
VERIFIED = """\
verified: these scores and labels, in any order, give this certificate
not shown: that the detector gave these scores, that the labels are right,
           that nobody chose the rows; a digest detects accidents, not forgery
"""
CLEAR, BETWEEN, ALARM = 0.0, 1.0, 5.0  # a score below, between and above the golden thresholds


def table(folder: Path, **scores: list[float]) -> Path:
    """Write the scores of normal and of anomalous points."""
    rows = [f"{score!r},{int(name == 'anomalous')}\n" for name, some in scores.items() for score in some]
    return write(folder / "test.csv", "".join(["score,label\n", *rows]))


def row(out: str, name: str) -> str:
    return next(line for line in out.splitlines() if line.split()[:1] == [name])


def test_rates_are_counted_with_abstentions_in_the_denominator(tmp_path: Path) -> None:
    normal = [CLEAR] * 97 + [BETWEEN] * 2 + [ALARM]
    path = table(tmp_path, normal=normal, anomalous=[CLEAR] * 3 + [BETWEEN] + [ALARM] * 46)
    out = succeeded("evaluate", CERTIFICATE, path, *COLUMNS)
    assert row(out, "FPR").split()[1:] == ["0.1", "0.0100", "[0.0003,", "0.0545]", "1", "of", "100", "within"]
    assert row(out, "FNR").split()[1:] == ["0.1", "0.0600", "[0.0125,", "0.1655]", "3", "of", "50", "within"]
    assert "4 of 150" in row(out, "ERR")
    assert "3 of 150" in row(out, "undecided")
    assert "2 of 100" in row(out, "normal")
    assert "1 of 50" in row(out, "anomalous")


# P(X >= 15) = 0.0726 and P(X >= 16) = 0.0399 for X ~ Bin(100, 0.1): only the second is significant at 5 %
@pytest.mark.parametrize(("errors", "code"), [(0, 0), (10, 0), (11, 0), (15, 0), (16, 1), (100, 1)])
@pytest.mark.parametrize("side", ["FPR", "FNR"])
def test_only_a_significant_excess_exits_with_1(errors: int, code: int, side: str, tmp_path: Path) -> None:
    right, wrong = (CLEAR, ALARM) if side == "FPR" else (ALARM, CLEAR)
    points = [wrong] * errors + [right] * (100 - errors)
    sides = {"normal": points} if side == "FPR" else {"anomalous": points}
    done = invoke("evaluate", CERTIFICATE, table(tmp_path, **sides), *COLUMNS, "-q")
    assert (done.code, done.err) == (code, "")
    assert ("exceeded" in row(done.out, side)) == (code == 1)
    assert ("above, not significantly" in row(done.out, side)) == (errors > 10 and code == 0)
    # a rate that is not significantly above its ceiling may well be above it all the same
    assert "by chance" not in done.out
    assert ("within" in row(done.out, side)) == (errors <= 10)


def test_a_rate_and_its_interval_stand_on_one_line_of_a_terminal(tmp_path: Path) -> None:
    path = table(tmp_path, normal=[ALARM] * 11 + [CLEAR] * 89, anomalous=[ALARM])
    out = succeeded("evaluate", CERTIFICATE, path, *COLUMNS)
    assert "0.1100 [0.0562, 0.1883]" in row(out, "FPR")


def test_abstaining_everywhere_exceeds_nothing(tmp_path: Path) -> None:
    path = table(tmp_path, normal=[BETWEEN] * 200, anomalous=[BETWEEN] * 200)
    out = succeeded("evaluate", CERTIFICATE, path, *COLUMNS)
    assert "400 of 400" in row(out, "undecided")


def test_a_class_without_points_is_not_said_to_be_within_its_ceiling(tmp_path: Path) -> None:
    out = succeeded("evaluate", CERTIFICATE, table(tmp_path, normal=[CLEAR] * 20), *COLUMNS)
    assert "0 of 0" in row(out, "FNR")
    assert "within" not in row(out, "FNR")
    assert "nan" not in out


def test_a_certificate_that_promises_nothing_exceeds_nothing(tmp_path: Path) -> None:
    calibrate([0.0], [1.0], overlap="algorithm1").save(tmp_path / "none.json")
    path = table(tmp_path, normal=[9.0] * 50, anomalous=[-9.0] * 50)
    out = succeeded("evaluate", tmp_path / "none.json", path, *COLUMNS)
    assert row(out, "FPR").split()[-2:] == ["no", "promise"]


def test_labels_of_another_name_are_evaluated(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n0,1\n5,-1\n")
    out = succeeded("evaluate", CERTIFICATE, path, *COLUMNS, "--anomaly-label=-1")
    assert "0 of 2" in row(out, "ERR")


def test_the_scores_it_was_made_of_verify_a_certificate_in_any_order(tmp_path: Path) -> None:
    assert succeeded("verify", CERTIFICATE, GOLDEN / "scores.csv", *COLUMNS) == VERIFIED
    lines = (GOLDEN / "scores.csv").read_text().splitlines()
    shuffled = write(tmp_path / "a.csv", "\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert succeeded("verify", CERTIFICATE, shuffled, *COLUMNS) == VERIFIED


@pytest.mark.parametrize("change", ["one score", "one label", "one row less", "one row twice"])
def test_other_scores_do_not_verify_and_exit_with_1(change: str, tmp_path: Path) -> None:
    lines = (GOLDEN / "scores.csv").read_text().splitlines()
    score, label = lines[1].split(",")
    changed = {
        "one score": [f"{nextafter(float(score), inf)!r},{label}"],
        "one label": [f"{score},{1 - int(label)}"],
        "one row less": [],
        "one row twice": [lines[1], lines[1]],
    }[change]
    path = write(tmp_path / "a.csv", "\n".join([lines[0], *changed, *lines[2:]]) + "\n")
    done = invoke("verify", CERTIFICATE, path, *COLUMNS)
    assert (done.code, done.err) == (1, "")
    first, *lines = done.out.splitlines()
    assert first.startswith("not verified: ")
    # one difference a line, a few of them
    more = lines.pop() if "more difference" in lines[-1] else None
    assert (more is not None) == (len(lines) == 10), lines
    assert all(re.fullmatch(r"  \S+ is .* in the certificate, .* from the scores", line) for line in lines)


def test_a_difference_is_told_in_words_and_not_in_python(tmp_path: Path) -> None:
    done = invoke("verify", CERTIFICATE, table(tmp_path, normal=[1.0], anomalous=[2.0]), *COLUMNS)
    assert done.code == 1
    assert "<Regime" not in done.out


@pytest.mark.parametrize("name", ["algorithm1", "hold-fnr", "hold-fpr"])
def test_certificates_of_one_threshold_verify_too(name: str, tmp_path: Path) -> None:
    saved = tmp_path / "certificate.json"
    options = ["--overlap", name, "-o", saved]
    assert invoke("calibrate", GOLDEN / "scores.csv", *COLUMNS, *options).code == 0
    assert succeeded("verify", saved, GOLDEN / "scores.csv", *COLUMNS) == VERIFIED


def test_an_edited_certificate_is_refused_before_it_is_verified(tmp_path: Path) -> None:
    edited = write(tmp_path / "c.json", CERTIFICATE.read_text().replace("0.46", "0.47", 1))
    sentence = refused(tmp_path, "verify", edited, GOLDEN / "scores.csv", *COLUMNS)
    assert "changed after it was written" in sentence


@pytest.mark.slow
def test_the_real_commands_give_the_same_exit_codes(tmp_path: Path) -> None:
    bad = table(tmp_path, normal=[ALARM] * 100)
    for arguments, code in (
        (["evaluate", CERTIFICATE, GOLDEN / "scores.csv", *COLUMNS, "-q"], 0),
        (["evaluate", CERTIFICATE, bad, *COLUMNS, "-q"], 1),
        (["verify", CERTIFICATE, GOLDEN / "scores.csv", *COLUMNS], 0),
        (["verify", CERTIFICATE, bad, *COLUMNS], 1),
    ):
        done = command(*arguments)
        assert (done.code, done.err) == (code, ""), arguments


def test_what_is_shown_as_json_is_a_certificate_again(tmp_path: Path) -> None:
    shown = succeeded("show", CERTIFICATE, "--format", "json")
    assert shown == CERTIFICATE.read_text(encoding="utf-8")
    assert Certificate.from_json(shown) == Certificate.load(CERTIFICATE)
    assert [one["threshold"] for one in json.loads(shown)["clauses"]] == [1.9350000000000003, 0.46]


def test_what_is_shown_as_markdown_is_one_table() -> None:
    said, _, *lines = succeeded("show", CERTIFICATE, "--format", "markdown").splitlines()
    assert said.startswith("In the long run, at most 10 % of normal points")
    assert lines[1] == "|---|---|"
    assert all(line.startswith("| ") and line.endswith(" |") for line in [lines[0], *lines[2:]])
    assert {line.count("|") for line in lines} == {3}


def test_the_sql_rule_runs_as_printed_and_agrees_with_decide() -> None:
    rule = succeeded("sql", CERTIFICATE, "--score", "score")
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {rule} FROM read_csv('{GOLDEN / 'new.csv'}')").fetchall()
    decided = succeeded("decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "--format", "jsonl")
    assert [verdict for (verdict,) in found] == [json.loads(line)["verdict"] for line in decided.splitlines()]


def test_the_sql_rule_abstains_on_nan_in_a_parquet_file_whose_statistics_leave_it_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"score": [0.25, nan, 1.0, 3.0]}), path)
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {succeeded('sql', CERTIFICATE)} FROM '{path}'").fetchall()
    assert found == [(0,), (-1,), (-1,), (1,)]


@pytest.mark.parametrize(("option", "value"), [("--dialect", "oracle"), ("--format", "yaml")])
def test_an_unknown_dialect_or_format_is_wrong_usage(option: str, value: str) -> None:
    done = invoke("sql" if option == "--dialect" else "show", CERTIFICATE, option, value)
    assert (done.code, done.out) == (2, "")
    assert value in done.err
