"""Units on the command line: machines, events and days, from a table to a verified certificate."""

import json
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Certificate, Day, Event, Monitor, calibrate_labelled
from support.shell import invoke, refused, succeeded

COLUMNS = ["--score", "s", "--label", "y"]
IN_UNITS = [*COLUMNS, "--unit", "machine"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(3)
    units = random.permutation(np.repeat(np.arange(100), 8))
    labels = (random.random(800) < 0.4).astype(int)
    scores = random.normal(5 * labels) + random.normal(size=100)[units] / 2
    path = tmp_path_factory.mktemp("units") / "steps.csv"
    rows = (f"m{u},{s!r},{y}" for u, s, y in zip(units, scores.tolist(), labels, strict=True))
    path.write_text("\n".join(["machine,s,y", *rows]) + "\n")
    return path


def columns(table: Path) -> tuple[list[str], list[float], list[int]]:
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    return [one[0] for one in rows], [float(one[1]) for one in rows], [int(one[2]) for one in rows]


def test_a_table_is_certified_verified_and_measured_over_its_units(table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "c.json"
    shown = succeeded("calibrate", table, *IN_UNITS, "-o", saved)
    units, scores, labels = columns(table)
    expected = calibrate_labelled(scores, labels, units=units)
    found = Certificate.load(saved)
    # the order of the test is drawn anew, so the budgets may differ
    assert [one.n for one in found.clauses] == [one.n for one in expected.clauses]
    assert [one.units for one in found.clauses] == [one.units for one in expected.clauses]
    assert [one.digest for one in found.clauses] == [one.digest for one in expected.clauses]
    assert f"{found.fpr.n} labels of {found.fpr.units} units" in " ".join(shown.split())
    marks, values, names = np.array(labels), np.array(scores), np.array(units)
    normal, anomalous = marks == 0, marks == 1
    assert found.verify(values[normal], values[anomalous], units=(names[normal], names[anomalous]))
    assert "verified" in succeeded("verify", saved, table, *IN_UNITS)
    page = tmp_path / "c.html"
    succeeded("calibrate", table, *IN_UNITS, "--report", page)
    assert f"normal ({int(normal.sum()):,})" in page.read_text()
    measured = succeeded("evaluate", saved, table, *IN_UNITS)
    assert "normal points" in measured
    assert "within" in measured


def test_events_and_days_are_those_of_python(table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "c.json"
    counts = ["--per", "both", "--alarms", "1", "--first", "3", "--more-than", "1"]
    shown = " ".join(succeeded("calibrate", table, *IN_UNITS, *counts, "-o", saved).split())
    units, scores, labels = columns(table)
    expected = calibrate_labelled(scores, labels, units=units, per=[Day(1), Event(1, 3)])
    assert Certificate.load(saved) == expected
    assert "at most 5 % of days have more than 1 false alarm, and at most 5 % of events are missed" in shown
    assert "verified" in succeeded("verify", saved, table, *IN_UNITS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--per", "event"], "--per works only with --unit; add --unit, or remove --per"),
        (["--unit", "machine", "--alarms", "2"], "--alarms works only with --per event"),
        (["--unit", "machine", "--per", "day", "--first", "2"], "--first works only with --per event"),
        (
            ["--unit", "machine", "--per", "event", "--more-than", "2"],
            "--more-than works only with --per day",
        ),
        (
            ["--unit", "machine", "--per", "event", "--alarms", "2", "--first", "3"],
            "9 of 98 events have fewer points than it takes alarms to notice one",
        ),
        (["--unit", "y"], "column 'y' cannot be the unit as well; name another column"),
        (["--unit", "machine", "--engine", "dask"], "--unit does not work with --engine; remove one of them"),
        (["--unit", "machine", "--group", "machine"], "--unit does not work with --group"),
        (["--unit", "nothing"], "nothing"),
        (["--unit", "machine", "--overlap", "raise"], "units need --overlap abstain"),
    ],
)
def test_what_does_not_work_is_refused(table: Path, tmp_path: Path, options: list[str], said: str) -> None:
    assert said in refused(tmp_path, "calibrate", table, *COLUMNS, *options)


def test_a_certificate_of_units_and_a_plain_one_are_not_confused(table: Path, tmp_path: Path) -> None:
    saved, plain = tmp_path / "c.json", tmp_path / "p.json"
    succeeded("calibrate", table, *IN_UNITS, "-o", saved)
    succeeded("calibrate", table, *COLUMNS, "-o", plain)
    for command in ("verify", "evaluate"):
        assert "name their column with --unit" in refused(tmp_path, command, saved, table, *COLUMNS)
        assert "--unit needs a certificate" in refused(tmp_path, command, plain, table, *IN_UNITS)
    assert invoke("worth", saved, "--prevalence", "0.1").code == 2
    assert invoke("recalibrate", saved, table, *COLUMNS, "-o", tmp_path / "n.json").code == 2
    assert not (tmp_path / "n.json").exists()


def test_units_are_monitored_from_a_table_and_from_a_pipe_of_whole_batches(
    table: Path, tmp_path: Path
) -> None:
    saved, state = tmp_path / "c.json", tmp_path / "m.json"
    succeeded("calibrate", table, *IN_UNITS, "-o", saved)
    units, scores, labels = columns(table)
    monitor = Monitor(Certificate.load(saved))
    assert monitor.in_units is not None
    monitor.update(monitor.in_units.verdicts(scores), labels, units=units, together=True)
    shown = succeeded("monitor", saved, table, *IN_UNITS, "--state", state)
    assert shown == f"{monitor}\n"
    assert shown.startswith("100 units in 1 batch\n")
    assert monitor.load(state).rows == 100
    halves = [f"{'a' if int(unit[1:]) < 50 else 'b'}" for unit in units]
    rows = sorted(zip(halves, units, scores, labels, strict=True), key=lambda row: row[0])
    lines = "\n".join(["half,machine,s,y", *(",".join(map(str, row)) for row in rows)]) + "\n"
    batches = ["--batch", "half", "--state", tmp_path / "n.json", "--format", "json"]
    piped = json.loads(succeeded("monitor", saved, "-", *IN_UNITS, *batches, stdin=lines.encode()))
    assert piped["rows"] == 100
    assert [one["points"] for one in piped["watches"]] == [watch.n for watch in monitor.watches]
    assert "made with units; name their column with --unit" in refused(
        tmp_path, "monitor", saved, table, *COLUMNS, "--state", state
    )
    wrong = "column 's' cannot be the unit as well"
    assert wrong in refused(tmp_path, "monitor", saved, table, *COLUMNS, "--unit", "s", "--state", state)
