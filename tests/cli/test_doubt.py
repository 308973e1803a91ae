"""`decide` says when the scores are likely another detector's, once; and commands say what they did."""

from pathlib import Path

import numpy as np
import pytest

from pac_wrap import calibrate
from pac_wrap.errors import PACWrapWarning
from pac_wrap.method.provenance import Doubt, Provenance
from support.shell import GOLDEN, invoke, parquet, write

CERTIFICATE = calibrate(np.arange(200.0), np.arange(150.0, 350.0)).with_provenance(
    score="forest", lowest=0.0, highest=349.0
)
BEYOND = (
    "pac-wrap: note: {} of the first {} scores lie outside those of the calibration, 0 to 349; check that"
    " they come from the same detector, and that points were labelled without regard to their scores"
)
COLUMN = (
    "pac-wrap: note: the certificate was made from column 'forest', not 'lof'; check that both hold scores of"
    " the same detector"
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    CERTIFICATE.save(tmp_path / "c.json")
    return tmp_path / "c.json"


def rows(column: str, *scores: float) -> str:
    return "".join(f"{line}\n" for line in (column, *scores))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("output", ["out.csv", "out.jsonl", "out.parquet"])
@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_files_of_another_detector(saved: Path, tmp_path: Path, source: str, output: str) -> None:
    table = write(tmp_path / "t.csv", rows("lof", *np.arange(1000.0, 3000.0)))
    if source == "parquet":
        table = parquet(tmp_path / "t.parquet", f"SELECT * FROM read_csv('{table}')")
    done = invoke("decide", saved, table, "--score", "lof", "-o", tmp_path / output)
    assert done.code == 0
    assert done.err.splitlines() == [
        COLUMN,
        BEYOND.format("1,000", "1,000"),
        f"pac-wrap: 2,000 rows: 0 normal, 2,000 alarms, 0 undecided -> {tmp_path / output}",
    ]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_is_warned_once_and_a_short_one_at_its_end(saved: Path, form: str) -> None:
    for count, first in ((5000, "1,000"), (20, "20"), (19, None)):
        text = rows("lof", *[-5.0] * count)
        if form == "jsonl":
            text = '{"lof": -5.0}\n' * count
        done = invoke("decide", saved, "-", "--score", "lof", stdin=text.encode())
        notes = [line for line in done.err.splitlines() if "note" in line]
        assert notes == [COLUMN, *([] if first is None else [BEYOND.format(first, first)])]


@pytest.mark.filterwarnings("default")
def test_what_fits_is_not_doubted(saved: Path, tmp_path: Path) -> None:
    fits = write(tmp_path / "t.csv", rows("forest", *np.arange(0.0, 380.0)))
    done = invoke("decide", saved, fits, "--score", "forest", "-o", tmp_path / "o.csv", "--quiet")
    assert (done.code, done.err) == (0, "")
    CERTIFICATE.bare.save(saved)
    other = write(tmp_path / "u.csv", rows("lof", *np.arange(1000.0, 2000.0)))
    assert invoke("decide", saved, other, "--score", "lof", "-o", tmp_path / "o.csv", "--quiet").err == ""


def test_half_of_the_scores_outside_are_doubted_and_missing_ones_do_not_count() -> None:
    known = Provenance(lowest=0.0, highest=1.0)

    def said(outside: int, inside: int, missing: int = 0) -> bool:
        doubt = Doubt(known, "s")
        values = np.r_[np.full(outside, 5.0), np.full(inside, 0.5), np.full(missing, np.nan)]
        try:
            for part in np.array_split(np.random.default_rng(0).permutation(values.astype(float)), 7):
                doubt.see(part)
            doubt.end()
            doubt.end()
        except PACWrapWarning:
            return True
        return False

    assert said(50, 50)
    assert not said(49, 51)
    assert said(18, 2, missing=500)
    assert not said(18, 1, missing=500)
    assert not said(0, 0)
    assert said(1000, 0)


def test_a_hostile_column_is_compared_and_shown_harmlessly() -> None:
    Doubt(Provenance(score="a\x1b[31m"), "a\x1b[31m")
    with pytest.warns(PACWrapWarning) as caught:
        Doubt(Provenance(score="a\x1b[31m"), "b\x1b[31m")
    assert str(caught[0].message).isprintable()


def test_calibrate_and_evaluate_say_what_they_did_unless_they_are_to_be_quiet(tmp_path: Path) -> None:
    labelled = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
    made, report = tmp_path / "c.json", tmp_path / "r.json"
    done = invoke("calibrate", *labelled, "-o", made, "--report", report)
    assert done.err == f"pac-wrap: 120 rows: 60 normal, 60 anomalous -> {made}, {report}\n"
    assert invoke("calibrate", *labelled, "-o", made, "-q").err == ""
    assert invoke("calibrate", *labelled).err == ""
    done = invoke("evaluate", made, *labelled)
    table = np.loadtxt(GOLDEN / "scores.csv", delimiter=",", skiprows=1)
    verdicts = calibrate(table[table[:, 1] == 0, 0], table[table[:, 1] == 1, 0]).verdicts(table[:, 0])
    counts = [int(np.count_nonzero(verdicts == one)) for one in (0, 1, -1)]
    assert done.err == "pac-wrap: 120 rows: {} normal, {} alarms, {} undecided\n".format(*counts)
    assert invoke("evaluate", made, *labelled, "--quiet").err == ""


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("option", "said"), [("--kind", ""), ("--group", ", 2 groups")])
def test_certificates_by_kind_and_by_group_say_what_they_did_and_doubt(
    option: str, said: str, tmp_path: Path
) -> None:
    lines = [f"{i},{int(i >= 200)},{'a' if i % 2 else 'b'}" for i in range(400)]
    table = write(tmp_path / "t.csv", "\n".join(["forest,y,k", *lines]) + "\n")
    saved, out = tmp_path / "parts.json", tmp_path / "out.csv"
    asked = ["calibrate", table, "--score", "forest", "--label", "y", option, "k", "-o", saved]
    done = invoke(*asked)
    assert done.code == 0
    assert done.err == f"pac-wrap: 400 rows: 200 normal, 200 anomalous{said} -> {saved}\n"
    assert invoke(*asked, "--quiet").err == ""
    strange = write(tmp_path / "new.csv", "\n".join(["lof,k", *(f"{i},a" for i in range(1000, 1100))]) + "\n")
    by = ["--group", "k"] if option == "--group" else []
    done = invoke("decide", saved, strange, "--score", "lof", *by, "-o", out)
    assert done.code == 0
    assert done.err.splitlines() == [
        COLUMN,
        BEYOND.format("100", "100").replace("0 to 349", "0 to 399"),
        f"pac-wrap: 100 rows: 0 normal, 100 alarms, 0 undecided -> {out}",
    ]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_reviewed_alarms_are_noticed_when_they_calibrate_and_when_all_scores_come(
    tmp_path: Path, ending: str
) -> None:
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(0, 1, 10_000), rng.normal(2, 1, 1500)
    reviewed = anomalous[anomalous >= 1.88]  # 45 % of the anomalies raise no alarm, and no one sees them
    rows = [f"{s!r},{y}" for y, scores in enumerate((normal, reviewed)) for s in scores.tolist()]
    table = write(tmp_path / "t.csv", "\n".join(["s,y", *rows]) + "\n")
    if ending == "parquet":
        table = parquet(tmp_path / "t.parquet", f"SELECT * FROM read_csv('{table}')")
    saved = tmp_path / "c.json"
    done = invoke("calibrate", table, "--score", "s", "--label", "y", "-o", saved)
    assert done.code == 0
    assert "note: no anomaly scores below 1.88" in done.err
    assert "the promise of the FNR is void: label points at random" in done.err
    # where the normal points are reviewed alarms as well nothing shows, until all scores are decided on
    alarms = [row for row in rows if float(row.split(",")[0]) >= 1.0]
    table = write(tmp_path / "alarms.csv", "\n".join(["s,y", *alarms]) + "\n")
    assert invoke("calibrate", table, "--score", "s", "--label", "y", "-o", saved).code == 0
    new = write(tmp_path / "new.csv", "\n".join(["s", *map(repr, normal.tolist())]) + "\n")
    done = invoke("decide", saved, new, "--score", "s", "-o", tmp_path / "o.csv")
    assert "and that points were labelled without regard to their scores" in done.err
