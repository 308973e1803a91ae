"""`calibrate` certifies what the library does, says so by its exit code, and writes what is asked for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Abstain, Algorithm1, Certificate, Guarantee, Hold, Raise, calibrate
from pac_wrap.method.provenance import Provenance
from pac_wrap.tables.calibrate import TableSource
from support.shell import GOLDEN, command, invoke, parquet, refused, succeeded, write

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
TABLE = np.loadtxt(GOLDEN / "scores.csv", delimiter=",", skiprows=1)
NORMAL, ANOMALOUS = TABLE[TABLE[:, 1] == 0, 0], TABLE[TABLE[:, 1] == 1, 0]
LOOSE = ["--max-fpr", "0.1", "--max-fnr", "0.2", "--delta-fpr", "0.05", "--delta-fnr", "0.1"]
ASKED = Guarantee(0.1, 0.2, 0.05, 0.1)

VARIANTS: dict[str, tuple[list[str], Guarantee, dict[str, Any]]] = {
    "defaults": ([], Guarantee(), {}),
    "all four numbers": (LOOSE, ASKED, {}),
    "FPR only": (["--max-fnr", "none"], Guarantee(0.05, None), {}),
    "FNR only": (["--max-fpr", "NONE"], Guarantee(None, 0.05), {}),
    "confidence": (["--confidence", "0.9"], Guarantee(confidence=0.9), {}),
    "confidence, FPR only": (
        ["--max-fnr", "none", "--confidence", "0.9"],
        Guarantee(0.05, None, confidence=0.9),
        {},
    ),
    "confidence, FNR only": (
        ["--max-fpr", "none", "--max-fnr", "0.1", "--confidence", "0.99"],
        Guarantee(None, 0.1, confidence=0.99),
        {},
    ),
    "abstain": ([*LOOSE, "--overlap", "abstain"], ASKED, {}),
    "algorithm1": ([*LOOSE, "--overlap", "algorithm1"], ASKED, {"overlap": "algorithm1"}),
    "algorithm1 with a confidence": (
        ["--overlap", "algorithm1", "--confidence", "0.8"],
        Guarantee(confidence=0.8),
        {"overlap": Algorithm1()},
    ),
    "abstain_always": (["--overlap", "abstain-always"], Guarantee(), {"overlap": Abstain(always=True)}),
    "raise": (["--overlap", "raise"], Guarantee(), {"overlap": Raise()}),
    "hold_fnr": (["--overlap", "hold-fnr"], Guarantee(), {"overlap": Hold("fnr")}),
    "hold_fpr": (["--overlap", "hold-fpr"], Guarantee(), {"overlap": Hold("fpr")}),
    "one ceiling": (["--max-fnr", "none"], Guarantee(0.05, None), {}),
}
# options of Algorithm 1 are Python's only; what was made with them is a certificate like any other
ONLY_IN_PYTHON = {
    "double": Algorithm1(growth="double"),
    "step": Algorithm1(step=0.02),
    "ceilings": Algorithm1(raised="fpr"),
    "deltas": Algorithm1(relax_delta=True),
    "as printed": Algorithm1(correction=None),
    "position": Algorithm1(position=1.0),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_option_reaches_the_certificate(name: str, tmp_path: Path) -> None:
    options, guarantee, arguments = VARIANTS[name]
    expected = calibrate(NORMAL, ANOMALOUS, guarantee, **arguments)
    saved = tmp_path / "certificate.json"
    done = invoke("calibrate", "-q", *LABELLED, *options, "-o", saved)
    assert Certificate.load(saved) == expected
    assert (done.out, done.err) == (f"{expected}\n", "")
    assert done.code == (1 if expected.empty else 0)


@pytest.mark.parametrize("options", [[], ["--report", "report.json"]])
def test_the_file_remembers_where_the_scores_came_from(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1801396800")
    table = write(tmp_path / "scores.csv", (GOLDEN / "scores.csv").read_text())
    columns = ["--score", "score", "--label", "label"]
    succeeded("calibrate", table.name, *columns, *options, "-o", "c.json")
    found = Certificate.load("c.json").provenance
    assert found == Provenance(
        score="score",
        tables=("scores.csv",),
        date="2027-01-31T12:00:00Z",
        engine="duckdb",
        lowest=TABLE[:, 0].min(),
        highest=TABLE[:, 0].max(),
    )
    assert " ".join(succeeded("show", "c.json").split()).endswith(str(found))
    assert str(found) in succeeded("show", "c.json", "--format", "markdown").replace("\\", "")


@pytest.mark.parametrize("name", ONLY_IN_PYTHON)
def test_a_certificate_with_options_of_python_is_shown_verified_and_followed(
    name: str, tmp_path: Path
) -> None:
    certificate = calibrate(NORMAL, ANOMALOUS, ASKED, overlap=ONLY_IN_PYTHON[name])
    saved, decided = tmp_path / "certificate.json", tmp_path / "decided.csv"
    certificate.save(saved)
    assert succeeded("show", saved) == f"{certificate}\n"
    assert succeeded("verify", saved, *LABELLED).startswith("verified")
    succeeded("decide", saved, GOLDEN / "scores.csv", "--score", "score", "-o", decided)
    found = np.genfromtxt(decided, delimiter=",", names=True, usecols=(0, 2))
    assert found["verdict"].tolist() == certificate.verdicts(TABLE[:, 0]).tolist()


def test_a_confidence_is_that_of_the_deltas_that_the_counts_give_or_of_a_single_one() -> None:
    shared = calibrate(NORMAL, ANOMALOUS, Guarantee(confidence=0.9))
    assert shared.confidence >= 0.9
    deltas = shared.guarantee.delta_fpr, shared.guarantee.delta_fnr
    assert min(deltas) > 0.05
    by_deltas = succeeded("calibrate", *LABELLED, "--delta-fpr", deltas[0], "--delta-fnr", deltas[1])
    assert succeeded("calibrate", *LABELLED, "--confidence", "0.9") == by_deltas == f"{shared}\n"
    alone = ["--max-fpr", "none"]
    assert succeeded("calibrate", *LABELLED, *alone, "--confidence", "0.95") == succeeded(
        "calibrate", *LABELLED, *alone, "--delta-fnr", "0.05"
    )


def test_without_an_output_only_the_terminal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert succeeded("calibrate", *LABELLED) == f"{calibrate(NORMAL, ANOMALOUS)}\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_read() -> None:
    content = (GOLDEN / "scores.csv").read_bytes()
    out = succeeded("calibrate", "-", "--score", "score", "--label", "label", stdin=content)
    assert out == f"{calibrate(NORMAL, ANOMALOUS)}\n"


@pytest.mark.parametrize(
    ("options", "words"), [([], "too few labels"), (["--overlap", "algorithm1"], "Nothing is promised")]
)
def test_too_few_labels_are_saved_shown_and_exit_with_1(
    options: list[str], words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,1\n")
    saved = tmp_path / "certificate.json"
    done = invoke("calibrate", "-q", path, "--score", "score", "--label", "label", *options, "-o", saved)
    assert (done.code, done.err) == (1, "")
    assert words in done.out
    assert Certificate.load(saved).empty


@pytest.mark.filterwarnings("default")
def test_scores_upside_down_are_one_note() -> None:
    rows = "".join(f"{-i},1\n{i},0\n" for i in range(1, 100))
    done = invoke(
        "calibrate", "-", "--score", "score", "--label", "label", stdin=f"score,label\n{rows}".encode()
    )
    assert done.code == 0
    assert done.err.startswith("pac-wrap: note: anomalies score lower than normal points (AUC 0.000)")
    assert done.err.count("\n") == 1
    assert "Warning" not in done.err
    assert done.out.startswith("In the long run, at most 5 % of normal points raise a false alarm")


def test_the_real_command_gives_the_note_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + "".join(f"{-i},1\n{i},0\n" for i in range(1, 100)))
    done = command("calibrate", "-q", path, "--score", "score", "--label", "label", "-o", tmp_path / "c.json")
    assert done.code == 0
    assert done.err.startswith("pac-wrap: note: anomalies score lower")
    assert done.err.count("\n") == 1
    # the remedy must be one that this user has
    assert "polarity=" not in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--max-fpr", "five"],
            "--max-fpr must be a number between 0 and 1, or none; got 'five'; write five percent as 0.05",
        ),
        (["--max-fpr", "5"], "--max-fpr must lie strictly between 0 and 1, got 5.0"),
        (["--max-fnr", "nan"], "--max-fnr must lie strictly between 0 and 1, got nan"),
        (["--max-fpr", "none", "--max-fnr", "None"], "promise at least one of them"),
        (["--delta-fpr", "0"], "--delta-fpr must lie strictly between 0 and 1, got 0.0"),
        (["--delta-fnr", "inf"], "--delta-fnr must lie strictly between 0 and 1, got inf"),
        (["--confidence", "1"], "--confidence must lie strictly between 0 and 1, got 1.0"),
        (["--confidence", "95"], "--confidence must lie strictly between 0 and 1, got 95.0"),
        (["--confidence", "nan"], "--confidence must lie strictly between 0 and 1, got nan"),
        (["--confidence", "0.9", "--delta-fpr", "0.05"], "give either confidence or deltas"),
        (
            ["--max-fpr", "none", "--delta-fpr", "0.05"],
            "--delta-fpr needs a ceiling, and --max-fpr is none; remove --delta-fpr",
        ),
        (["--max-fnr", "none", "--overlap", "raise"], "--overlap needs a ceiling for both classes"),
    ],
)
def test_impossible_promises_are_refused(options: list[str], words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, "calibrate", *LABELLED, *options, "-o", tmp_path / "c.json")


@pytest.mark.parametrize(
    "options",
    [
        ["--overlap", "hope"],
        ["--overlap", "hold_fnr"],
        ["--overlap"],
        ["--confidence", "sure"],
        ["--no-abstain"],
        ["--strategy", "hope"],
        ["--growth", "fast"],
        ["--ceilings", "none"],
        ["--correction", "some"],
        ["--delta-fpr", "five"],
        ["--unknown"],
    ],
)
def test_wrong_usage_exits_with_2_and_writes_nothing(options: list[str], tmp_path: Path) -> None:
    done = invoke("calibrate", "-q", *LABELLED, *options, "-o", tmp_path / "c.json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("pac-wrap: ")
    assert done.err.endswith("see pac-wrap calibrate --help\n")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["--score", "--label", "table"])
def test_what_is_required_is_asked_for(missing: str) -> None:
    given = {"table": [str(LABELLED[0])], "--score": ["--score", "score"], "--label": ["--label", "label"]}
    done = invoke(
        "calibrate", "-q", *(word for name, words in given.items() if name != missing for word in words)
    )
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("pac-wrap: missing ")


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_a_report_is_written_in_the_format_of_its_name(suffix: str, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    query = f"SELECT score AS \"{hostile}\", label FROM read_csv('{GOLDEN / 'scores.csv'}')"
    path = parquet(tmp_path / "a.parquet", query)
    report = tmp_path / f"report{suffix}"
    done = invoke("calibrate", "-q", path, "--score", hostile, "--label", "label", "--report", report)
    assert (done.code, done.err) == (0, "")
    text = report.read_text(encoding="utf-8")
    if suffix == ".html":
        assert hostile not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    elif suffix == ".json":
        assert hostile in json.dumps(json.loads(text))
    else:
        assert "alert(1)" in text


def test_a_report_of_a_certificate_that_promises_nothing_is_written_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,1\n")
    report = tmp_path / "report.html"
    done = invoke("calibrate", "-q", path, "--score", "score", "--label", "label", "--report", report)
    assert (done.code, done.err) == (1, "")
    assert report.read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.parametrize("kind", ["CSV", "DOUBLE", "FLOAT"])
def test_a_report_leaves_the_certificate_as_it_is_and_reads_the_scores_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = GOLDEN / "scores.csv"
    if kind != "CSV":
        query = f"SELECT CAST(score AS {kind}) AS score, label FROM read_csv('{scores}')"
        scores = parquet(tmp_path / "scores.parquet", query)
    passes = []
    call = TableSource.__call__

    def count(self: TableSource, task: Any) -> Any:
        passes.append(task)
        return call(self, task)

    monkeypatch.setattr(TableSource, "__call__", count)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    texts = []
    for more in ([], ["--report", tmp_path / "report.md"]):
        passes.clear()
        options = ["--score", "score", "--label", "label", "-o", tmp_path / "certificate.json", *more]
        assert invoke("calibrate", "-q", scores, *options).code == 0
        texts.append((tmp_path / "certificate.json").read_bytes())
    assert texts[0] == texts[1]
    assert len(passes) == 1


def test_a_report_needs_no_matplotlib(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    words = ["calibrate", "-q", *map(str, LABELLED), "--report", str(report), "--prevalence", "0.01-0.02"]
    hidden = "import sys; sys.modules['matplotlib'] = None; from pac_wrap.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    page = report.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert 'id="figure-scores"' in page
    assert "if 1 % to 2 % are anomalous:" in page


@pytest.mark.parametrize("text", ["2", "x", "0.03-0.01", ""])
def test_a_prevalence_is_a_share_or_a_range(text: str, tmp_path: Path) -> None:
    options = ["--report", tmp_path / "report.html", "--prevalence", text]
    assert "--prevalence must be a share" in refused(tmp_path, "calibrate", *LABELLED, *options)
    assert "--prevalence needs --report" in refused(tmp_path, "calibrate", *LABELLED, "--prevalence", text)


@pytest.mark.usefixtures("small_demo")
def test_the_demo_writes_a_report(tmp_path: Path) -> None:
    done = invoke("demo", "--report", tmp_path / "report.json")
    assert (done.code, done.err) == (0, "")
    assert "isolation forest" in (tmp_path / "report.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_real_demo_writes_a_report(tmp_path: Path) -> None:
    done = command("demo", "--report", tmp_path / "report.md")
    assert (done.code, done.err) == (0, "")
    assert "isolation forest" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
