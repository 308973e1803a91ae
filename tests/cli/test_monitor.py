"""`monitor`: tables and pipes give the same state; alarms, exit codes, formats; what is refused."""

import contextlib
import gzip
import json
import signal
import subprocess
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from pac_wrap import (
    Certificate,
    Guarantee,
    Monitor,
    calibrate,
    calibrate_labelled,
    calibrate_traffic,
    certify_curve,
    recalibrate,
)
from pac_wrap.streams.monitor import Columns, rows_of_table
from pac_wrap.tables.table import open_table
from support.patience import until
from support.shell import SCRIPT, Done, invoke, refused, write

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(size=1000), RNG.normal(2.5, 1, size=1000)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
CURVE = certify_curve(NORMAL, ANOMALOUS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    CERTIFICATE.save(tmp_path / "c.json")
    CURVE.save(tmp_path / "curve.json")
    return tmp_path


def rows(size: int = 1500, drift: float = 0.0) -> pd.DataFrame:
    """Half of the labels are missing, and one score."""
    rng = np.random.default_rng(3)
    anomalous = rng.random(size) < 0.1
    frame = pd.DataFrame({"s": rng.normal(np.where(anomalous, 2.5, drift)), "y": anomalous.astype(int)})
    frame["y"] = frame["y"].astype("Int64").where(rng.random(size) < 0.5)
    frame.loc[7, "s"] = np.nan
    return frame


def lines(frame: pd.DataFrame) -> bytes:
    # numbers as pandas writes them by default lose digits
    pairs = zip(frame["s"].tolist(), frame["y"].tolist(), strict=True)
    texts = (json.dumps({"s": None if s != s else s, "y": None if y is pd.NA else int(y)}) for s, y in pairs)
    return "\n".join(texts).encode()


def watch(
    folder: Path, table: object, *more: object, stdin: bytes | None = None, name: str = "w.json"
) -> Done:
    words = ["monitor", folder / "c.json", table, "--score", "s", "--label", "y", "--state", folder / name]
    return invoke(*words, "--curve", folder / "curve.json", *more, stdin=stdin)


def expected(frame: pd.DataFrame) -> Monitor:
    monitor = Monitor(CERTIFICATE, CURVE)
    verdicts, _ = CERTIFICATE.rule.decided(frame["s"].to_numpy())
    monitor.update(verdicts, frame["y"], scores=frame["s"])
    return monitor


@pytest.mark.parametrize(
    ("kind", "options"), [("parquet", "FORMAT parquet, ROW_GROUP_SIZE 5000"), ("csv", "HEADER")]
)
@pytest.mark.parametrize(("anomaly_label", "group"), [(None, None), ("1", "g")])
def test_rows_of_a_table_come_in_their_order(
    folder: Path, kind: str, options: str, anomaly_label: str | None, group: str | None
) -> None:
    """More than one thread reads; a list of words in SQL would become a join, which has no order."""
    file = str(folder / ("t.parquet" if "parquet" in options else "t.csv"))
    rows = "SELECT i::DOUBLE AS s, CASE WHEN i % 3 < 2 THEN i % 3 END AS y, (i % 7)::VARCHAR AS g"
    duckdb.sql(f"COPY ({rows} FROM range(200000) t(i)) TO '{file}' ({options})")
    for _ in range(3):
        with open_table([file], ["s", "g"], "y") as table:
            columns = Columns("s", "y", group, anomaly_label)
            found = [
                (one.scores.copy(), one.labels, one.groups or []) for one in rows_of_table(table, columns)
            ]
        scores, labels, groups = (np.concatenate(one) for one in zip(*found, strict=True))
        np.testing.assert_array_equal(scores, np.arange(200000))
        np.testing.assert_array_equal(labels, np.tile([0.0, 1.0, np.nan], 66667)[:200000])
        np.testing.assert_array_equal(groups, [] if group is None else np.tile([*"0123456"], 28572)[:200000])


@pytest.mark.filterwarnings("ignore::pac_wrap.MissingScoreWarning")
def test_every_format_and_every_way_in_gives_the_state_of_python(folder: Path) -> None:
    frame = rows()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    (folder / "t.jsonl").write_bytes(lines(frame))
    with gzip.open(folder / "u.jsonl.gz", "wb") as packed:
        packed.write(lines(frame))
    for number, table in enumerate(("t.csv", "t.parquet", "t.jsonl", "u.jsonl.gz")):
        done = watch(folder, folder / table, name=f"{number}.json")
        assert (done.code, done.err) == (0, "")
    for number, stdin in enumerate(((folder / "t.csv").read_bytes(), lines(frame)), start=4):
        assert watch(folder, "-", stdin=stdin, name=f"{number}.json").code == 0
    watch(folder, "-", stdin=(folder / "t.parquet").read_bytes(), name="6.json")
    states = [(folder / f"{number}.json").read_text() for number in range(7)]
    assert states == [expected(frame).to_json()] * 7


def test_it_goes_on_night_after_night_and_ends_with_1_from_an_alarm_on(folder: Path) -> None:
    for night, drift in enumerate((0.0, 1.0, 0.0)):
        rows(1500, drift).to_csv(folder / "t.csv", index=False)
        done = watch(folder, folder / "t.csv", "--id", f"night {night}")
        assert done.code == int(night > 0)
        assert f"{1500 * (night + 1):,} rows in {night + 1} batch" in done.out
        assert ("FPR alarm" in done.err) == (night == 1)
    assert "in batch 'night 1'" in done.out
    before = (folder / "w.json").read_bytes()
    done = watch(folder, folder / "t.csv", "--id", "night 0")
    assert (done.code, done.out) == (2, "")
    assert "was fed before" in done.err
    assert (folder / "w.json").read_bytes() == before


def test_without_labels_and_late(folder: Path) -> None:
    frame = rows()
    frame.to_csv(folder / "t.csv", index=False)
    words = ["monitor", folder / "c.json", folder / "t.csv", "--score", "s", "--state", folder / "w.json"]
    assert invoke(*words).code == 0
    assert invoke(*words, "--label", "y", "--late").code == 0
    monitor = Monitor(CERTIFICATE).load(folder / "w.json")
    # one row has no score, and counts nowhere
    assert [watch.n for watch in monitor.watches] == [(frame["y"] == 0).sum(), (frame["y"] == 1).sum(), 1499]
    assert monitor.unscored == 2  # it was fed twice


def test_named_labels(folder: Path) -> None:
    write(folder / "t.csv", "s,y\n0,fine\n0,FAULT\n9,fine\n9,\n")
    for number, table in enumerate((folder / "t.csv", "-")):
        stdin = (folder / "t.csv").read_bytes()
        done = watch(folder, table, "--anomaly-label", "fault", stdin=stdin, name=f"{number}.json")
        assert done.code == 0
        counts = [
            (one.count, one.n) for one in Monitor(CERTIFICATE, CURVE).load(folder / f"{number}.json").watches
        ]
        assert counts[:2] == [(1, 2), (1, 1)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s,y\n0,0\n0,2\n", "column 'y' must be 0/1 or true/false, or empty if missing, got '2'"),
        ("s,y\n0,0\nx,0\n", "'x'"),
        ("s,z\n0,0\n", "y"),
        ("s,y\n", "no rows|empty|no row"),
    ],
)
@pytest.mark.parametrize("piped", [False, True])
def test_rows_that_are_none_are_refused(folder: Path, text: str, reason: str, piped: bool) -> None:
    write(folder / "t.csv", text)
    done = watch(folder, "-" if piped else folder / "t.csv", stdin=text.encode())
    if piped and text == "s,y\n":
        assert done.code == 1
        assert done.out.endswith("no point was counted, so nothing is known\n")
        return
    assert done.code == 2
    assert any(one in done.err for one in reason.split("|"))
    # of a pipe, the rows before the bad one count, as it says
    counted = piped and "before it" in done.err
    assert (folder / "w.json").exists() == counted


def test_named_labels_of_three_kinds_are_refused(folder: Path) -> None:
    text = "s,y\n0,fine\n0,fault\n9,odd\n"
    write(folder / "t.csv", text)
    for table in (folder / "t.csv", "-"):
        done = watch(folder, table, "--anomaly-label", "fault", stdin=text.encode())
        assert done.code == 2
        assert "column 'y' must hold 'fault' and one other value, got 'fine', 'odd'" in done.err


@pytest.mark.parametrize(
    "text", [b'{"s": 1, "y": 0}\n[1]\n', b'{"s": 1, "y": 0}\n{"s": \n', b'{"s": 1, "y": null}\n\n{"t": 1}']
)
def test_json_lines(folder: Path, text: bytes) -> None:
    done = watch(folder, "-", stdin=text)
    if b"t" in text:  # a row without a score counts nowhere, one without a label is not labelled
        assert done.code == 0
    else:
        assert done.code == 2
        assert "row 2 is not a JSON object on one line; fix that row; rows monitored before it: 1" in done.err
    assert Monitor(CERTIFICATE, CURVE).load(folder / "w.json").rows in (1, 2)


def test_json_files_of_other_shapes(folder: Path) -> None:
    write(folder / "t.json", '[{"s": 0, "y": 0},\n {"s": 9, "y": 1}]')
    assert watch(folder, folder / "t.json").code == 0
    assert Monitor(CERTIFICATE, CURVE).load(folder / "w.json").rows == 2
    write(folder / "t.jsonl", '{"s": 0, "y": 0}\n{"s": 9, "y": 5}\n')
    before = (folder / "w.json").read_bytes()
    done = watch(folder, folder / "t.jsonl")
    assert "column 'y' must be 0/1" in done.err
    assert (folder / "w.json").read_bytes() == before


def test_a_misspelt_column_of_json_lines_is_refused(folder: Path) -> None:
    """Else every label or group would be missing, and a false alarm rate of 1 would be no alarm."""
    stdin = b'{"s": 9, "y": 0, "t": "a"}\n' * 100
    words = [
        "monitor",
        folder / "c.json",
        "-",
        "--score",
        "s",
        "--state",
        folder / "w.json",
        "--label",
        "label",
    ]
    done = invoke(*words, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "there is no column 'label'; the columns are s, y, t; the first row must name every" in done.err
    assert not (folder / "w.json").exists()
    calibrate_labelled(np.r_[NORMAL, ANOMALOUS + 4], np.repeat([0, 1], 1000), by=["a"] * 2000).save(
        folder / "c.json"
    )
    done = invoke(*words[:-1], "y", "--group", "tenant", stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "there is no column 'tenant'" in done.err


def test_to_have_counted_nothing_is_not_to_have_no_alarm(folder: Path) -> None:
    calibrate(range(1000), range(2000, 3000)).save(folder / "c.json")
    write(folder / "t.csv", "s,y\n0,\n9,\n")
    words = ["monitor", folder / "c.json", folder / "t.csv", "--score", "s", "--state", folder / "w.json"]
    for more in ([], ["--label", "y"]):
        done = invoke(*words, *more)
        assert done.code == 1
        assert done.out.endswith("no point was counted, so nothing is known\n")
    write(folder / "t.csv", "s,y\n0,0\n")
    done = invoke(*words, "--label", "y")
    assert (done.code, done.out.splitlines()[-1]) == (0, "no alarm")


@pytest.mark.parametrize("word", ["none", "null", "na", "<NA>"])
def test_words_that_some_programs_write_for_nothing_are_labels(folder: Path, word: str) -> None:
    """None of these is a fault that was found: all rows are normal, and all are false alarms."""
    table = pd.DataFrame({"s": [9.0] * 50, "y": [word] * 50})
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    ways: list[tuple[object, bytes | None]] = [(folder / "t.csv", None), (folder / "t.parquet", None)]
    ways += [
        ("-", (folder / "t.csv").read_bytes()),
        ("-", table.to_json(orient="records", lines=True).encode()),
    ]
    for number, (way, stdin) in enumerate(ways):
        done = watch(folder, way, "--anomaly-label", "fault", stdin=stdin, name=f"{number}.json")
        assert done.code == 1
        monitor = Monitor(CERTIFICATE, CURVE).load(folder / f"{number}.json")
        assert (monitor.watches[0].count, monitor.watches[0].n) == (50, 50)


def test_a_certificate_of_kinds_is_refused(folder: Path) -> None:
    """The ceiling of the kind that binds is not that of all anomalies."""
    kinds = calibrate(NORMAL, {"a": ANOMALOUS + 2, "b": ANOMALOUS + 3})
    kinds.save(folder / "c.json")
    write(folder / "t.csv", "s,y,k\n0,0,\n9,1,a\n")
    words = ["monitor", folder / "c.json", folder / "t.csv", "--score", "s", "--label", "y"]
    message = refused(folder, *words, "--state", folder / "w.json")
    assert "the certificate has a promise for each kind; a monitor cannot tell kinds apart" in message


@pytest.mark.parametrize("groups", [["1.0", "2.5"], ["", "x"], ["true", "false"], ["7", "null"]])
def test_groups_of_json_lines_in_a_pipe_are_those_of_the_file(folder: Path, groups: list[str]) -> None:
    rng = np.random.default_rng(0)
    labels, own = rng.integers(0, 2, 2000), rng.choice(groups, 2000)
    scores = rng.normal(6.0 * labels)
    text = "".join(
        f'{{"s": {score!r}, "y": {label}, "g": {json.dumps(group) if group in ("", "x") else group}}}\n'
        for score, label, group in zip(scores.tolist(), labels.tolist(), own.tolist(), strict=True)
    )
    write(folder / "t.jsonl", text)
    words = ["--score", "s", "--label", "y", "--group", "g"]
    assert invoke("calibrate", folder / "t.jsonl", *words, "-o", folder / "g.json").code == 0
    for state, way in (("a.json", folder / "t.jsonl"), ("b.json", "-")):
        done = invoke(
            "monitor", folder / "g.json", way, *words, "--state", folder / state, stdin=text.encode()
        )
        assert done.code == 0
        assert "2 of 2 monitored groups occurred\nno alarm" in done.out
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


def test_rows_of_groups_never_seen_are_counted(folder: Path) -> None:
    calibrate_labelled(np.r_[NORMAL, ANOMALOUS + 4], np.repeat([0, 1], 1000), by=["a"] * 2000).save(
        folder / "c.json"
    )
    text = "s,y,g\n0,0,a\n9,0,b\n9,0,b\n9,0,\n"
    write(folder / "t.csv", text)
    for number, way in enumerate((folder / "t.csv", "-")):
        words = ["--score", "s", "--label", "y", "--group", "g", "--state", folder / f"{number}.json"]
        done = invoke("monitor", folder / "c.json", way, *words, stdin=text.encode())
        assert done.code == 0
        assert "not monitored: 3 rows of groups never seen at calibration" in done.out


def days(folder: Path, sizes: tuple[int, ...] = (700, 900, 600)) -> pd.DataFrame:
    """Labels of each day, alarms first, at a rate of false alarms far below the ceiling."""
    rng, frames = np.random.default_rng(5), []
    certificate = calibrate(range(1000), range(2000, 3000))
    certificate.save(folder / "c.json")
    for day, size in enumerate(sizes):
        alarms = np.sort(rng.random(size) < 0.015)[::-1]
        frames.append(pd.DataFrame({"s": np.where(alarms, 5000.0, 0.5), "y": 0, "day": f"day {day}"}))
    return pd.concat(frames, ignore_index=True)


def test_batches_count_together_from_tables_and_pipes(folder: Path) -> None:
    frame = days(folder)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    (folder / "t.jsonl").write_text(frame.to_json(orient="records", lines=True))
    certificate = Certificate.load(folder / "c.json")
    expected = Monitor(certificate)
    for day, rows in frame.groupby("day"):
        verdicts = certificate.verdicts(rows["s"])
        expected.update(verdicts, rows["y"], scores=rows["s"], id=str(day), together=True)
    words = ["--score", "s", "--label", "y"]
    plain = invoke("monitor", folder / "c.json", folder / "t.csv", *words, "--state", folder / "p.json")
    assert "FPR alarm" in plain.out  # though the promise is kept
    ways: list[tuple[object, bytes | None]] = [
        (folder / f"t.{kind}", None) for kind in ("csv", "parquet", "jsonl")
    ]
    ways += [("-", (folder / f"t.{kind}").read_bytes()) for kind in ("csv", "parquet", "jsonl")]
    for number, (way, stdin) in enumerate(ways):
        state = folder / f"{number}.json"
        done = invoke(
            "monitor", folder / "c.json", way, *words, "--state", state, "--batch", "day", stdin=stdin
        )
        assert (done.code, done.err) == (0, "")
        assert state.read_text() == expected.to_json()
    again = refused(
        folder, "monitor", folder / "c.json", folder / "t.csv", *words, "--state", state, "--batch", "day"
    )
    assert "the batch 'day 0' was fed before" in again


def test_batches_of_groups_count_together(folder: Path) -> None:
    frame = tenants(3000, 0.0, 1).dropna()
    frame = frame[frame["t"] != "never seen"].assign(day=lambda one: np.arange(len(one)) // 500)
    certificate = calibrate_labelled(frame["s"], frame["y"].astype(int), by=frame["t"])
    certificate.save(folder / "g.json")
    frame.to_parquet(folder / "t.parquet")
    expected = Monitor(certificate)
    for day, rows in frame.groupby("day"):
        verdicts = certificate.verdicts(rows["s"], rows["t"])
        expected.update(verdicts, rows["y"], groups=rows["t"], id=str(day), together=True)
    words = ["--score", "s", "--label", "y", "--group", "t", "--batch", "day"]
    for state, way in (("a.json", folder / "t.parquet"), ("b.json", "-")):
        stdin = frame.to_csv(index=False).encode()
        done = invoke("monitor", folder / "g.json", way, *words, "--state", folder / state, stdin=stdin)
        assert done.code == 0
        assert (folder / state).read_text() == expected.to_json()


def test_a_batch_counts_whole_or_not_at_all(folder: Path) -> None:
    frame = days(folder)
    text = frame.to_csv(index=False)
    words = ["monitor", folder / "c.json", "-", "--score", "s", "--label", "y", "--batch", "day", "--state"]
    cut = text.rstrip("\n").rpartition("\n")[0] + "\nx,0,day 2\n"
    done = invoke(*words, folder / "w.json", stdin=cut.encode())
    assert done.code == 2
    assert "rows monitored before it: 1,600" in done.err
    assert json.loads((folder / "w.json").read_text())["rows"] == 1600
    # what follows goes on with the row after those, which is the first of the batch
    rest = "\n".join([text.splitlines()[0], *text.splitlines()[1601:]])
    assert invoke(*words, folder / "w.json", stdin=rest.encode()).code == 0
    assert invoke(*words, folder / "v.json", stdin=text.encode()).code == 0
    assert (folder / "w.json").read_text() == (folder / "v.json").read_text()


@pytest.mark.parametrize("piped", [False, True])
def test_every_row_names_its_batch_and_batches_do_not_come_back(folder: Path, piped: bool) -> None:
    days(folder)
    words = ["--score", "s", "--label", "y", "--batch", "day", "--state", folder / "w.json"]
    for text, problem in (
        ("s,y,day\n0,0,a\n0,0,\n", "column 'day' must name the batch of every row, got a row without a name"),
        ("s,y,day\n0,0,a\n0,0,b\n0,0,a\n", "the batch 'a' was fed before"),
        ("s,y\n0,0\n", "there is no column 'day'"),
    ):
        write(folder / "t.csv", text)
        way = "-" if piped else folder / "t.csv"
        done = invoke("monitor", folder / "c.json", way, *words, stdin=text.encode())
        assert done.code == 2
        assert problem in done.err
        (folder / "w.json").unlink(missing_ok=True)
    message = refused(folder, "monitor", folder / "c.json", folder / "t.csv", *words, "--id", "x")
    assert "--batch names the batch of each row already; remove --id" in message
    message = refused(
        folder, "monitor", folder / "c.json", folder / "t.csv", *words[:4], "--batch", "y", *words[6:]
    )
    assert "column 'y' cannot be the batch as well" in message


def test_the_table_that_calibrated_a_series_raises_no_alarm_by_its_warm_up(folder: Path) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < 0.3).astype(int)
    scores = rng.normal(2.5 * labels)
    scores[:30] = np.nan
    pd.DataFrame({"t": range(3000), "s": scores, "y": labels}).to_csv(folder / "t.csv", index=False)
    words = [folder / "t.csv", "--score", "s", "--label", "y"]
    assert invoke("calibrate", *words, "--time", "t", "-o", folder / "c.json").code == 0
    done = invoke("monitor", folder / "c.json", *words, "--state", folder / "w.json")
    assert (done.code, done.err) == (0, "")
    assert "3,000 rows in 1 batch, 30 of them without a score" in done.out
    assert "undecided" in done.out


def test_options_that_do_not_go_together(folder: Path) -> None:
    write(folder / "t.csv", "s,y\n0,0\n")
    words = ["monitor", folder / "c.json", folder / "t.csv", "--score", "s", "--state"]
    assert "--late needs labels" in refused(folder, *words, folder / "w.json", "--late")
    assert "is also an input" in refused(folder, *words, folder / "c.json")
    assert watch(folder, folder / "t.csv").code == 0
    assert "alpha cannot change" in refused(
        folder, *words, folder / "w.json", "--curve", folder / "curve.json", "--alpha", ".1"
    )
    assert "another curve" in refused(folder, *words, folder / "w.json")


def test_formats_and_files(folder: Path) -> None:
    rows(1500, 1.0).to_csv(folder / "t.csv", index=False)
    content = json.loads(watch(folder, folder / "t.csv", "--format", "json").out)
    assert content["rows"] == 1500
    output, page = folder / "watch.prom", folder / "w.html"
    done = watch(folder, folder / "t.csv", "--format", "prometheus", "-o", output, "--report", page)
    assert done.out == ""
    assert "pac_wrap_monitor_rows_total 3000\n" in output.read_text()
    assert "Evidence over time" in page.read_text()


HOSTILE = 'x"\\\n<b>'
TENANTS = np.array(["a", "b", HOSTILE])


def tenants(size: int, drift: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < 0.3).astype(int)
    groups = rng.choice([*TENANTS, "never seen"], size)
    scores = rng.normal(3.0 * labels + drift * (groups == HOSTILE) * (1 - labels))
    known = pd.array(np.where(rng.random(size) < 0.8, labels, -1), dtype="Int64")
    return pd.DataFrame({"s": scores, "y": known, "t": groups}).assign(
        y=lambda one: one["y"].replace(-1, pd.NA)
    )


def test_a_certificate_of_groups_is_watched_group_by_group_from_tables_and_pipes(folder: Path) -> None:
    old = tenants(6000, 0.0, 1).dropna()
    old = old[old["t"] != "never seen"]
    certificate = calibrate_labelled(old["s"], old["y"].astype(int), by=old["t"])
    certificate.save(folder / "g.json")
    first, second = tenants(3000, 0.0, 2), tenants(3000, 2.0, 3)
    expected = Monitor(certificate)
    for night, frame in enumerate((first, second)):
        verdicts = certificate.verdicts(frame["s"], frame["t"])
        expected.update(verdicts, frame["y"], groups=frame["t"], id=f"night {night}")
    words = ["--score", "s", "--label", "y", "--group", "t"]
    for way in ("csv", "parquet", "pipe", "lines"):
        state, page, metrics = (folder / f"{way}.{one}" for one in ("json", "html", "prom"))
        for night, frame in enumerate((first, second)):
            table: object = folder / f"t.{way}"
            stdin = None
            if way == "parquet":
                frame.to_parquet(folder / "t.parquet")
            elif way == "csv":
                frame.to_csv(folder / "t.csv", index=False)
            else:
                table = "-"
                stdin = frame.to_csv(index=False).encode()
                if way == "lines":
                    stdin = frame.to_json(orient="records", lines=True, double_precision=15).encode()
            more = ["--state", state, "--id", f"night {night}"]
            told = ["--report", page, "-o", metrics, "--format", "prometheus"] if night else []
            done = invoke("monitor", folder / "g.json", table, *words, *more, *told, stdin=stdin)
            assert done.code == night, done.err
        assert "FPR alarm" in done.err
        assert "in batch 'night 1'" in done.err
        assert "<b>" not in page.read_text()
        assert 'group="x\\"\\\\\\n<b>"' in metrics.read_text()
        if way != "lines":  # pandas writes fewer digits there
            assert state.read_text() == expected.to_json(), way
    twice = refused(folder, "monitor", folder / "g.json", folder / "t.csv", *words, *more[:4])
    assert "was fed before" in twice
    plain = ["monitor", folder / "g.json", folder / "t.csv", "--score", "s", "--state", folder / "n.json"]
    assert "name the column of groups with --group" in refused(folder, *plain)
    assert "cannot be the group as well" in refused(folder, *plain, "--group", "s")
    assert "--curve needs a certificate without groups" in refused(
        folder, *plain, "--group", "t", "--curve", folder / "curve.json"
    )
    assert "remove it" in refused(folder, "monitor", folder / "c.json", *plain[2:], "--group", "t")


def test_a_pool_is_watched_as_its_rows_come_and_not_sorted_by_group(folder: Path) -> None:
    """One of its groups is far worse than their mixture, which is what is promised."""

    def drawn(size: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        groups, labels = rng.integers(0, 60, size), (rng.random(size) < 0.3).astype(int)
        scores = rng.normal(6.0 * labels + 3.0 * (groups == 7) * (1 - labels))
        return pd.DataFrame({"s": scores, "y": labels, "t": groups})

    old, new = drawn(2400, 0), drawn(6000, 1)
    certificate = calibrate_labelled(old["s"], old["y"], pool=True, by=old["t"])
    certificate.save(folder / "g.json")
    new.to_parquet(folder / "t.parquet")
    verdicts = certificate.verdicts(new["s"], new["t"])
    expected = Monitor(certificate)
    expected.update(verdicts, new["y"], groups=new["t"])
    words = ["--score", "s", "--label", "y", "--group", "t", "--state", folder / "w.json"]
    done = invoke("monitor", folder / "g.json", folder / "t.parquet", *words)
    assert (done.code, done.err) == (0, "")
    assert (folder / "w.json").read_text() == expected.to_json()
    by_group = Monitor(certificate)
    order = np.argsort(new["t"], kind="stable")
    by_group.update(verdicts[order], new["y"][order], groups=new["t"][order])
    assert by_group.alarm is not None  # so the order matters


@pytest.mark.slow
def test_what_was_counted_is_saved_though_nothing_more_comes(folder: Path) -> None:
    state = folder / "w.json"
    words: list[str | Path] = [SCRIPT, "monitor", folder / "c.json", "-", "--score", "s", "--label", "y"]
    with subprocess.Popen(
        [*words, "--state", state], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"s,y\n")
        for _ in range(30):  # quickly, one after the other
            process.stdin.write(b"0.5,0\n")
            process.stdin.flush()
            time.sleep(0.01)
        until(lambda: state.exists() and json.loads(state.read_text())["rows"] == 30, "all rows are saved")
        process.stdin.close()
    assert process.returncode == 0


@pytest.mark.slow
def test_a_stream_that_is_killed_goes_on_from_its_state(folder: Path) -> None:
    """Killed at random moments, and fed from the row after those that were counted: the same state."""
    frame = rows(6000).dropna(subset="s")
    texts = [
        f"{score!r},{'' if label is pd.NA else label}\n"
        for score, label in zip(frame["s"], frame["y"], strict=True)
    ]
    state, rng = folder / "w.json", np.random.default_rng(1)
    words: list[str | Path] = [
        SCRIPT,
        "monitor",
        folder / "c.json",
        "-",
        "--score",
        "s",
        "--label",
        "y",
        "--state",
        state,
    ]
    words += ["--curve", folder / "curve.json"]
    kills = 0
    while (done := json.loads(state.read_text())["rows"] if state.exists() else 0) < len(texts):
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            assert process.stdin is not None
            process.stdin.write(b"s,y\n")
            try:
                for start in range(done, len(texts), 200):
                    process.stdin.write("".join(texts[start : start + 200]).encode())
                    process.stdin.flush()
                    time.sleep(0.12)
                    if kills < 4 and rng.random() < 0.05:
                        process.send_signal(signal.SIGKILL if kills % 2 else signal.SIGTERM)
                        kills += 1
            except BrokenPipeError:
                pass
            finally:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            process.wait()
    assert kills > 0
    whole = expected(frame.reset_index(drop=True))
    content, other = json.loads(state.read_text()), json.loads(whole.to_json())
    for one in (content, other):
        del one["batches"], one["checksum"]
    assert content == other


def test_recalibrate_follows_and_says_so(folder: Path) -> None:
    frame = rows(4000).assign(y=lambda one: one["y"].fillna(0)).dropna()
    frame.to_csv(folder / "t.csv", index=False)
    words = ["recalibrate", folder / "c.json", folder / "t.csv", "--score", "s", "--label", "y"]
    done = invoke(*words, "-o", folder / "d.json")
    assert done.code == 0
    assert f"number 2 after {CERTIFICATE.checksum[:12]}" in done.out
    made = Certificate.load(folder / "d.json")
    classes = [frame["s"][frame["y"] == label].to_numpy() for label in (0, 1)]
    again = recalibrate(
        CERTIFICATE, np.concatenate(classes), np.repeat([0, 1], [one.size for one in classes])
    )
    assert made == again
    own = invoke(*words, "-o", folder / "e.json", "--own-delta")
    assert "each has its own delta" in own.out
    for before, options, remedy in (
        ("d", ["--own-delta"], "remove --own-delta"),
        ("e", [], "add --own-delta"),
    ):
        after = ["recalibrate", folder / f"{before}.json", *words[2:], "-o", folder / "g.json", *options]
        assert f"delta, which cannot change; {remedy}" in refused(folder, *after)
    assert "is also an input" in refused(folder, *words, "-o", folder / "c.json")
    write(folder / "few.csv", "s,y\n0,0\n9,1\n")
    few = invoke("recalibrate", folder / "c.json", folder / "few.csv", *words[3:], "-o", folder / "f.json")
    assert few.code == 1


def traffic(folder: Path) -> tuple[Certificate, pd.DataFrame]:
    """Save a certificate of traffic, and return it with five days of 600 points; the last is not reviewed."""
    rng = np.random.default_rng(6)
    anomaly = rng.random(20_000) < 0.02
    scores = rng.normal(4.0 * anomaly)
    asked = Guarantee(max_alarms=0.05, max_false_alarms=0.01)
    made = calibrate_traffic(scores, np.where(scores > 1.5, anomaly, np.nan), asked)
    made.save(folder / "t.json")
    frame = pd.DataFrame({"s": scores[:3000], "day": np.repeat([*"abcde"], 600)})
    alarms = made.verdicts(frame["s"]) == 1
    frame["review"] = np.where(alarms & (frame["day"] != "e"), anomaly[:3000], np.nan)
    frame.loc[7, "s"] = np.nan
    return made, frame


@pytest.mark.filterwarnings("ignore::pac_wrap.MissingScoreWarning")
def test_reviewed_alarms_of_traffic_are_monitored_by_day(folder: Path) -> None:
    made, frame = traffic(folder)
    words = ["monitor", folder / "t.json"]
    more = ["--score", "s", "--state", folder / "m.json"]
    reviewed, whole = frame[frame["day"] != "e"], Monitor(made)
    for day, rows in reviewed.groupby("day"):
        whole.update(
            made.verdicts(rows["s"]), reviews=rows["review"], scores=rows["s"], id=day, together=True
        )
    reviewed.to_csv(folder / "t.csv", index=False)
    done = invoke(*words, folder / "t.csv", *more, "--review", "review", "--batch", "day")
    assert (done.code, done.err) == (0, "")
    assert "false alarms" in done.out
    assert (folder / "m.json").read_text() == whole.to_json()
    # the last day is not reviewed yet: its alarms count at once, and false ones later
    last = frame[frame["day"] == "e"]
    last.to_csv(folder / "e.csv", index=False)
    refusal = refused(folder, *words, folder / "e.csv", *more, "--review", "review", "--id", "e")
    assert "alarms without a review" in refusal
    assert "feed the batch again with late" in refusal
    assert (folder / "m.json").read_text() == whole.to_json()
    assert invoke(*words, folder / "e.csv", *more, "--id", "e").code == 0
    last.assign(review=last["review"].fillna(0)).to_csv(folder / "e.csv", index=False)
    late = ["--review", "review", "--id", "e", "--late"]
    assert invoke(*words, folder / "e.csv", *more, *late, "--report", folder / "m.html").code == 0
    whole.update(made.verdicts(last["s"]), scores=last["s"], id="e")
    whole.update(made.verdicts(last["s"]), reviews=np.zeros(600), scores=last["s"], id="e", late=True)
    assert (folder / "m.json").read_text() == whole.to_json()
    assert [(watch.name, watch.n) for watch in whole.watches] == [("alarms", 3000), ("false alarms", 3000)]


def test_a_file_of_traffic_is_a_batch_and_a_pipe_comes_in_order(folder: Path) -> None:
    """Rows sorted by score raise no false alarm from a file; a pipe has no end to wait for."""
    made, frame = traffic(folder)
    frame = frame.assign(s=frame["s"].fillna(0.0))[frame["day"] != "e"].sort_values("s", ascending=False)
    frame.to_csv(folder / "t.csv", index=False)
    frame.sample(frac=1.0, random_state=0).to_parquet(folder / "u.parquet")
    words = ["monitor", folder / "t.json"]
    more = ["--score", "s", "--review", "review", "--state"]
    for number, table in enumerate(("t.csv", "u.parquet")):
        assert invoke(*words, folder / table, *more, folder / f"{number}.json").code == 0
    whole, single = Monitor(made), Monitor(made)
    verdicts = made.verdicts(frame["s"])
    whole.update(verdicts, reviews=frame["review"])
    states = [(folder / f"{number}.json").read_text() for number in range(2)]
    assert states == [whole.to_json()] * 2
    piped = invoke(*words, "-", *more, folder / "p.json", stdin=(folder / "t.csv").read_bytes())
    single.update(verdicts, reviews=frame["review"], together=False)
    assert (folder / "p.json").read_text() == single.to_json()
    assert piped.code == 1
    assert single.alarm is not None


def test_labels_are_for_classes_and_reviews_for_traffic(folder: Path) -> None:
    _, frame = traffic(folder)
    frame.to_csv(folder / "t.csv", index=False)
    more = ["--score", "s", "--state", folder / "m.json"]
    wrong = refused(folder, "monitor", folder / "t.json", folder / "t.csv", *more, "--label", "review")
    assert "--review is for a certificate of traffic" in wrong
    wrong = refused(folder, "monitor", folder / "c.json", folder / "t.csv", *more, "--review", "review")
    assert "--review is for a certificate of traffic" in wrong
    wrong = refused(folder, "monitor", folder / "t.json", folder / "t.csv", *more, "--late")
    assert "name their column with --label, or --review of traffic" in wrong
