"""`plan` for labels at hand, with a pilot sample, and for labels that come one after the other."""

import json
from pathlib import Path

import numpy as np
import pytest

from pac_wrap.tails import error_budget
from support.shell import invoke, refused


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(4), tmp_path / "pilot.csv"
    scores = np.append(rng.normal(0, 1, 200), rng.normal(5, 1, 60))
    lines = [f"{one!r},{int(i >= 200)}" for i, one in enumerate(scores.tolist())]
    path.write_text("s,y\n" + "\n".join(lines) + "\n")
    return path


def test_both_classes_at_once() -> None:
    done = invoke("plan", "--normal", "6860", "--anomalous", "140", "--max-fpr", "0.003")
    assert done.code == 0
    found = {row[0]: row[1:] for row in rows(done.out)}
    assert found["0.05"] == ["313 (4.56 %)", "2 (1.42 %)"]
    assert found["0.003"][0].startswith(f"{error_budget(6860, 0.003, 0.05)} ")
    assert found["0.02"][1] == "too few, 9 missing"
    assert "from 0.0004367 on" in done.out
    assert "from 0.02118 on" in done.out


def test_one_class_and_none() -> None:
    done = invoke("plan", "--anomalous", "0")
    assert "nothing yet" in done.out
    assert "FPR" not in done.out


def test_a_pilot_sample(pilot: Path) -> None:
    done = invoke("plan", "--pilot", pilot, "--score", "s", "--label", "y")
    assert done.code == 0
    assert [row[0] for row in rows(done.out)[-4:]] == ["50 %", "80 %", "90 %", "95 %"]
    assert rows(done.out)[-4][1] == "59 (0)"
    assert "the pilot's best threshold is" in done.out
    assert "a forecast, not a promise" in " ".join(done.out.split())


def test_labels_as_they_come() -> None:
    done = invoke("plan", "--sequential", "--max-fpr", "0.05", "--true-rate", "0.02")
    assert done.code == 0
    assert rows(done.out)[-1] == ["0.02", "240", "500", "286", "99.9 %", "311"]
    words = " ".join(done.out.split())
    assert "share one delta: each has 0.007405; the first that can succeed is at 100" in words
    assert "must not depend on their scores" in words
    assert "FNR" not in done.out
    assert len(rows(invoke("plan", "--sequential", "--every", "50").out)) == 10
    assert "no look can succeed" in " ".join(invoke("plan", "--sequential", "--up-to", "40").out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--true-rate", "0.02"], "--true-rate, --every and --up-to need --sequential"),
        (["--every", "30"], "--true-rate, --every and --up-to need --sequential"),
        (["--up-to", "200"], "--true-rate, --every and --up-to need --sequential"),
        (
            ["--score", "score"],
            "--score, --label, --anomaly-label, --leave-out and --delimiter need --pilot",
        ),
        (["--sequential", "--true-rate", "2"], "--true-rate must lie strictly between 0 and 1, got 2.0"),
        (["--guess-precision", "0.8"], "--traffic and --guess-... need a promise about traffic"),
        (["--max-alarms", "0.1", "--normal", "9"], "--pilot and --sequential are for labelled classes"),
        (["--max-alarms", "20 a day"], "--max-alarms must be a rate such as 0.001, or points of so many"),
        (["--sequential", "--every", "0"], "every must be a whole number, 1 or more, got 0"),
        (
            ["--pilot", "p.csv"],
            "--pilot needs the columns of its scores and labels; add --score and --label",
        ),
        (["--guess-errors", "0.01"], "--guess-errors and --guess-correlation need --unit-points; add it"),
        (["--unit-points", "20", "--labels", "9"], "count labels, and --unit-points counts units"),
        (["--unit-points", "20", "--guess-errors", "0.01"], "belong together; give both, or none"),
        (["--unit-points", "20", "--max-alarms", "0.01"], "units cannot be planned from traffic"),
        (["--unit-points", "20", "--shift", "tv:0.01"], "a promise about units"),
    ],
)
def test_bad_usage_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    assert sentence in refused(tmp_path, "plan", *arguments)


def test_a_pilot_with_one_ceiling_is_refused(pilot: Path) -> None:
    sentence = refused(
        pilot.parent, "plan", "--pilot", pilot, "--score", "s", "--label", "y", "--max-fpr", "0.1"
    )
    assert "a pilot sample needs two ceilings" in sentence


def test_a_pilot_that_leaves_a_promise_unlikely(tmp_path: Path) -> None:
    path = tmp_path / "pilot.csv"
    path.write_text("s,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    done = invoke("plan", "--pilot", path, "--score", "s", "--label", "y")
    assert rows(done.out)[-1][1:].count("-") >= 1
    assert "-: no number of labels is enough with up to 500 errors allowed" in done.out


def test_units() -> None:
    guesses = ["--unit-points", "20", "--guess-errors", "0.01", "--guess-correlation", "0.2"]
    done = invoke("plan", *guesses, "--normal", "120")
    assert rows(done.out)[-1] == ["0", "59", "59"]
    words = " ".join(done.out.split())
    assert "FPR <= 0.05: 120 at hand; the lowest ceiling that they can keep is 0.02466" in words
    assert "FNR <= 0.05: by the guess, 97 units with anomalous points are enough 9 times in 10" in words
    assert "a wrong guess never breaks the promise itself" in words
    found = json.loads(invoke("plan", "--unit-points", "20", "--max-fnr", "0.05", "--format", "json").out)
    assert found["needed"][0]["needed"] == [{"errors": 0, "units": 59}]


def test_traffic_and_reviews() -> None:
    arguments = ["--max-alarms", "0.002", "--max-false-alarms", "20/50000", "--min-precision", "0.9"]
    guesses = ["--guess-alarms", "0.001", "--guess-precision", "0.95", "--traffic", "20000"]
    done = invoke("plan", *arguments, *guesses)
    assert [row for row in rows(done.out) if row[0] == "2"] == [
        ["2", "3,146", "15,738", "60", "61", "61,000"]
    ]
    words = " ".join(done.out.split())
    assert "alarms <= 0.002: 20,000 at hand tolerate 29 errors" in words
    assert "It is a forecast, not a promise" in words
    found = json.loads(invoke("plan", *arguments, *guesses, "--format", "json").out)["needed"]
    assert [one["needed"][2] for one in found] == [
        {"errors": 2, "traffic": 3146},
        {"errors": 2, "traffic": 15738, "reviews": 60.0},
        {"errors": 2, "alarms": 61, "traffic": 61000.0},
    ]
    assert (found[2]["tested_first"], found[1]["at_hand"], found[1]["allowed"]) == (89, 20_000, 3)
