"""Outputs that others read, kept to the byte. `python tests/cli/test_golden.py` writes them anew."""

from dataclasses import replace
from pathlib import Path

import pytest

from pac_wrap import Certificate
from support.shell import CERTIFICATE, GOLDEN, command, invoke, succeeded

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
ASKED = ["--max-fpr", "0.1", "--max-fnr", "0.1", "--delta-fpr", "0.1", "--delta-fnr", "0.1"]
OUTPUTS: dict[str, list[object]] = {
    "show.txt": ["show", CERTIFICATE],
    "show.md": ["show", CERTIFICATE, "--format", "markdown"],
    "certificate.json": ["show", CERTIFICATE, "--format", "json"],
    "duckdb.sql": ["sql", CERTIFICATE, "--score", "anomaly score"],
    "postgres.sql": ["sql", CERTIFICATE, "--score", "anomaly score", "--dialect", "postgres"],
    "spark.sql": ["sql", CERTIFICATE, "--score", "anomaly score", "--dialect", "spark"],
    "verdicts.jsonl": ["decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "--format", "jsonl"],
    "verdicts.csv": ["decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score"],
    "evaluation.txt": ["evaluate", CERTIFICATE, *LABELLED],
    "plan.txt": ["plan", "--max-fpr", "0.01", "--max-fnr", "0.05"],
}
# on standard error
SAID = {
    "verdicts.csv": "pac-wrap: 8 rows: 3 normal, 2 alarms, 3 undecided\n",
    "evaluation.txt": "pac-wrap: 120 rows: 41 normal, 41 alarms, 38 undecided\n",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_is_the_golden_one(name: str) -> None:
    assert succeeded(*OUTPUTS[name]) == (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAID)
def test_the_real_command_prints_the_same(name: str) -> None:
    done = command(*OUTPUTS[name])
    assert (done.code, done.err) == (0, SAID[name])
    assert done.out == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_golden_certificate_is_what_its_scores_give(tmp_path: Path) -> None:
    saved = tmp_path / "certificate.json"
    shown = succeeded("calibrate", *LABELLED, *ASKED, "-o", saved)
    # the golden certificate may be of an older version, and must still be read
    golden = Certificate.load(CERTIFICATE)
    assert replace(Certificate.load(saved), version=golden.version) == golden
    assert shown == (GOLDEN / "show.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["verdicts.csv", "verdicts.jsonl"])
def test_a_file_holds_what_standard_output_shows(name: str, tmp_path: Path) -> None:
    written = tmp_path / name
    assert invoke("decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "-o", written).code == 0
    assert written.read_bytes() == (GOLDEN / name).read_bytes()


if __name__ == "__main__":
    succeeded("calibrate", *LABELLED, *ASKED, "-o", CERTIFICATE)
    Certificate.load(CERTIFICATE).bare.save(CERTIFICATE)  # as no machine in particular makes it
    for name, arguments in OUTPUTS.items():
        (GOLDEN / name).write_text(succeeded(*arguments), encoding="utf-8", newline="\n")
