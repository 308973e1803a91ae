"""`calibrate --time`: rows in order, dependence told, warm-ups left out, whole series held out."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from pac_wrap import Certificate, DependenceWarning, Guarantee
from pac_wrap.series import calibrate_points, several_series
from support.shell import invoke, refused, write

pytestmark = pytest.mark.filterwarnings("always::pac_wrap.errors.DependenceWarning")

RNG = np.random.default_rng(0)
COLUMNS = ["--score", "s", "--label", "y", "--time", "t"]
TENTH = ["--max-fpr", "0.1", "--max-fnr", "0.1", "--delta-fpr", "0.1", "--delta-fnr", "0.1"]
SERIES, STEPS, WARM_UP = 12, 240, 20
LABELS = np.tile(np.repeat([0, 1], [20, 10]), (SERIES, STEPS // 30))


def made(folder: Path, coefficient: float, spread: float = 0.0) -> tuple[Path, NDArray[np.float64]]:
    """Write series of an autoregression with a warm-up, their rows shuffled, and return the scores."""
    noise = lfilter([1.0], [1.0, -coefficient], RNG.normal(size=(SERIES, STEPS)), axis=1)
    scores = noise + spread * np.arange(SERIES)[:, None] + 40.0 * LABELS
    scores[:, :WARM_UP] = np.nan
    rows = [
        f"{'' if np.isnan(scores[m, t]) else repr(float(scores[m, t]))},{LABELS[m, t]},{t},m{m:02d}"
        for m in range(SERIES)
        for t in range(STEPS)
    ]
    return write(folder / "rows.csv", "\n".join(["s,y,t,m", *RNG.permutation(rows)]) + "\n"), scores


def test_the_certificate_is_that_of_the_series_in_order(tmp_path: Path) -> None:
    table, scores = made(tmp_path, 0.95)
    saved, report = tmp_path / "c.json", tmp_path / "r.json"
    done = invoke("calibrate", table, *COLUMNS, "--series", "m", *TENTH, "-o", saved, "--report", report)
    names = [f"m{m:02d}" for m in range(SERIES)]
    points = several_series(names, [STEPS] * SERIES, scores.ravel(), LABELS.ravel())
    with (
        pytest.warns(DependenceWarning, match="^[0-9,]+ normal steps are worth about"),
        pytest.warns(DependenceWarning, match="anomalous steps are worth about"),
    ):
        expected = calibrate_points(points, Guarantee(0.1, 0.1, 0.1, 0.1))
    certificate = Certificate.load(saved)
    assert certificate == expected
    assert certificate.provenance is not None
    assert certificate.provenance.score == "s"
    assert certificate.provenance.lowest == np.nanmin(scores)
    assert done.code == 0
    assert done.out.startswith(str(expected))
    assert f"in time    {SERIES * (STEPS - WARM_UP):,} steps of 12 series, ordered by 't'" in done.out
    assert "without a score yet (warm-up), so left out: 240 steps" in done.out
    assert "normal steps: dependence found in 12 of 12 series, most in 'm" in done.out
    *notes, said = done.err.splitlines()
    assert said == f"pac-wrap: 2,640 rows: 1,680 normal, 960 anomalous -> {saved}, {report}"
    assert all(note.startswith("pac-wrap: note: ") for note in notes)
    assert "normal steps are worth about" in notes[0]
    assert "independent ones, so the stated confidence is too high; take one in about " in notes[0]
    assert json.loads(report.read_text())["assumptions"]


def overlapping(folder: Path, coefficient: float) -> Path:
    """Write series whose classes overlap, of steps that depend on each other as the coefficient says."""
    rng = np.random.default_rng(5)
    noise = lfilter([1.0], [1.0, -coefficient], rng.normal(size=(SERIES, 600)), axis=1)
    noise *= np.sqrt(1.0 - coefficient**2)
    labels = np.tile(np.repeat([0, 1], [40, 10]), (SERIES, 12))
    scores = noise + 2.0 * labels
    lines = [
        f"{float(scores[m, t])!r},{labels[m, t]},{t},m{m:02d}"
        for m in range(SERIES)
        for t in range(labels.shape[1])
    ]
    return write(folder / "overlapping.csv", "\n".join(["s,y,t,m", *lines]) + "\n")


HEADLINE = "ertified only if points of one series do not depend on each other"


def test_points_worth_too_few_make_every_headline_conditional(tmp_path: Path) -> None:
    table, saved = overlapping(tmp_path, 0.995), tmp_path / "c.json"
    words = ["calibrate", table, *COLUMNS, "--series", "m", *TENTH, "--hold-out", "0.5", "-o", saved]
    texts = {}
    for ending in ("html", "md", "json"):
        report = tmp_path / f"r.{ending}"
        done = invoke(*words, "--report", report)
        assert done.code == 1
        texts[ending] = report.read_text(encoding="utf-8")
        assert HEADLINE in texts[ending]
    only = "If the points were independent, in the long run, at most 10 % of normal points"
    assert done.out.startswith(only)
    assert invoke("show", saved).out.startswith(only)
    # what was held out stands in the report as in the terminal
    held_out = [line[11:] for line in done.out.splitlines() if line.startswith("           FPR ")]
    assert held_out
    page = json.loads(texts["json"])
    assert f"{held_out[0]}." in page["in_time"]
    assert held_out[0] in texts["md"]
    assert held_out[0].replace("'", "&#39;") in texts["html"].replace("\N{NO-BREAK SPACE}", " ")
    # and labels are counted by what they are worth
    certificate = Certificate.load(saved)
    assert certificate.overstated == ("normal", "anomalous")
    assert certificate.sampling is not None
    worth = [certificate.sampling.effective_normal, certificate.sampling.effective_anomalous]
    at_hand = {row["side"]: row["at_hand"] for row in page["plan"]}
    assert at_hand == {"FPR": int(worth[0] or 0), "FNR": int(worth[1] or 0)}
    assert f"Do not rely on the FPR yet: {certificate.fpr.n:,} normal points" in page["next_steps"][0]
    assert not any("suffice for ceilings down to 0." in step for step in page["next_steps"])


def test_independent_points_of_series_have_a_plain_headline(tmp_path: Path) -> None:
    table, report = overlapping(tmp_path, 0.0), tmp_path / "r.json"
    done = invoke(
        "calibrate", table, *COLUMNS, "--series", "m", *TENTH, "--hold-out", "0.5", "--report", report
    )
    assert done.code == 0
    assert "only if" not in done.out
    assert json.loads(report.read_text())["status"] == "certified"


def test_independent_steps_are_not_warned_of(tmp_path: Path) -> None:
    table, _ = made(tmp_path, 0.0)
    done = invoke("calibrate", table, *COLUMNS, "--series", "m", *TENTH)
    assert (done.code, done.err) == (0, "")
    assert "series     every step, all of them calibrate" in done.out
    assert "the series differ" not in done.out


def test_series_that_differ_are_told(tmp_path: Path) -> None:
    table, _ = made(tmp_path, 0.0, spread=2.0)
    done = invoke("calibrate", table, *COLUMNS, "--series", "m", *TENTH)
    assert "the series differ: normal steps count as about " in done.out
    assert "so no spacing helps, and the promise about all series may hold for no" in done.out
    assert "normal steps are worth about" in done.err


def test_one_in_so_many_steps_is_taken(tmp_path: Path) -> None:
    table, scores = made(tmp_path, 0.0)
    done = invoke("calibrate", table, *COLUMNS, "--series", "m", *TENTH, "--every", "7")
    kept = np.count_nonzero(np.isfinite(scores[:, ::7]))
    assert f"in time    {kept} steps of 12 series, one in every 7, ordered by 't'" in done.out
    assert "series     one in every 7 steps, all of them calibrate" in done.out


def test_whole_series_are_held_out_and_show_how_the_rule_does(tmp_path: Path) -> None:
    table, scores = made(tmp_path, 0.0)
    saved = tmp_path / "c.json"
    options = ["--series", "m", *TENTH, "--hold-out", "0.25", "--seed", "3", "-o", saved]
    done = invoke("calibrate", table, *COLUMNS, *options)
    certificate = Certificate.load(saved)
    assert certificate.fpr.n + certificate.fnr.n == 9 * (STEPS - WARM_UP)
    heading = next(line for line in done.out.splitlines() if line.startswith("held out"))
    assert heading.startswith("held out   3 of 12 series: ")
    places = [int(name.removeprefix("m")) for name in heading.partition(": ")[2].split(", ")]
    kept = np.isfinite(scores[places])
    wrong = (certificate.verdicts(scores[places][kept]) == 1) & (LABELS[places][kept] == 0)
    of = np.count_nonzero(LABELS[places][kept] == 0)
    assert f"FPR {np.count_nonzero(wrong) / of:.4f} over {of} normal steps; above 0.1 in " in done.out
    assert "FNR 0.0000 over" in done.out
    assert invoke("calibrate", table, *COLUMNS, *options).out == done.out
    one_sided = invoke("calibrate", table, *COLUMNS, *options[:2], "--max-fnr", "none", "--hold-out", "0.5")
    assert "FNR 0" not in one_sided.out


def test_a_single_series_needs_no_name(tmp_path: Path) -> None:
    rows = [
        f"{RNG.normal() + 9 * (t % 20 == 0)},{int(t % 20 == 0)},2027-01-01T00:{t // 60:02d}:{t % 60:02d}"
        for t in range(1200)
    ]
    table = write(tmp_path / "one.csv", "\n".join(["s,y,t", *rows]) + "\n")
    done = invoke("calibrate", table, *COLUMNS, *TENTH)
    assert (done.code, done.err) == (0, "")
    assert "in time    1,200 steps of 1 series, ordered by 't'" in done.out
    assert "steps depend on each other" not in done.out


def test_too_few_labels_end_with_the_usual_code(tmp_path: Path) -> None:
    table = write(tmp_path / "few.csv", "s,y,t\n1,0,1\n2,1,2\n3,0,3\n")
    done = invoke("calibrate", table, *COLUMNS)
    assert done.code == 1
    assert "in time    3 steps of 1 series" in done.out


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--series", "m"], "--series works only with --time; add --time, or remove --series"),
        (["--every", "5"], "--every works only with --time"),
        (["--time", "t", "--hold-out", "0.5"], "--hold-out works only with --series"),
        (["--time", "t", "--series", "m", "--seed", "5"], "--seed works only with --hold-out"),
        (
            ["--time", "t", "--kind", "m"],
            "--time does not work with --kind or another --engine",
        ),
        (["--time", "t", "--engine", "dask"], "--time does not work with --kind or another --engine"),
        (
            ["--time", "t"],
            "column 't' has 12 rows at 0.0, whose order is unknown; name the column of series",
        ),
        (["--time", "when"], "there is no column 'when'"),
        (["--time", "t", "--series", "m", "--hold-out", "1.5"], "must lie strictly between 0 and 1"),
        (["--time", "t", "--series", "m", "--report", "r.pdf"], "r.pdf"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], reason: str, tmp_path: Path) -> None:
    table, _ = made(tmp_path, 0.0)
    assert reason in refused(tmp_path, "calibrate", table, "--score", "s", "--label", "y", *options)


@pytest.mark.parametrize(
    "more", [[], ["--every", "5"], ["--hold-out", "0.5"], ["--hold-out", "0.3", "--seed", "7"]]
)
def test_what_was_made_in_time_is_verified_from_its_table(more: list[str], tmp_path: Path) -> None:
    table, _ = made(tmp_path, 0.2)
    saved = tmp_path / "c.json"
    by_series = [*COLUMNS, "--series", "m"]
    assert invoke("calibrate", table, *by_series, *TENTH, *more, "-o", saved).code == 0
    again = [] if "--every" in more else more  # which the certificate knows
    done = invoke("verify", saved, table, *by_series, *again)
    assert (done.code, done.out.split(":")[0]) == (0, "verified")
    head, *rows = table.read_text().splitlines()
    rows = [
        one if one.startswith(",") else f"{float(one.split(',')[0]) + 1},{one.partition(',')[2]}"
        for one in rows
    ]
    changed = write(tmp_path / "changed.csv", "\n".join([head, *rows]) + "\n")
    done = invoke("verify", saved, changed, *by_series, *again, "--format", "json")
    assert (done.code, json.loads(done.out)["verified"]) == (1, False)


def test_verify_says_what_a_certificate_in_time_needs(tmp_path: Path) -> None:
    table, _ = made(tmp_path, 0.2)
    saved, plain = tmp_path / "c.json", tmp_path / "p.json"
    by_series = [*COLUMNS, "--series", "m"]
    invoke("calibrate", table, *by_series, *TENTH, "--hold-out", "0.5", "-o", saved)
    said = refused(tmp_path, "verify", saved, table, *by_series)
    assert "some series were held out of the calibration; repeat its --hold-out and --seed" in said
    said = refused(tmp_path, "verify", saved, table, *by_series, "--seed", "1")
    assert "--seed works only with --hold-out; add" in said
    done = invoke("verify", saved, table, *COLUMNS[:4])
    assert done.code == 2
    assert "if it was made with --time, repeat --time" in done.err
    assert "must not be empty or NaN" in done.err
    invoke("calibrate", table, *by_series, *TENTH, "-o", saved)
    said = refused(tmp_path, "verify", saved, table, *by_series, "--hold-out", "0.5")
    assert "--hold-out needs a certificate that was made with --hold-out; remove it" in said
    rows = "".join(f"{i},{int(i > 90)},{i}\n" for i in range(100))
    sound = write(tmp_path / "sound.csv", f"s,y,t\n{rows}")
    invoke("calibrate", sound, *COLUMNS[:4], "-o", plain)
    said = refused(tmp_path, "verify", plain, sound, *COLUMNS)
    assert "--time needs a certificate that was made with --time; remove it" in said
