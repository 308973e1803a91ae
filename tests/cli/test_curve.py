"""`curve` saves what the library certifies, from every engine, and the certificate of a threshold chosen."""

from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Certificate, Curve, certify_curve
from support.shell import GOLDEN, invoke, refused, succeeded

COLUMNS = ["--score", "score", "--label", "label"]
LABELLED = [GOLDEN / "scores.csv", *COLUMNS]
TABLE = np.loadtxt(GOLDEN / "scores.csv", delimiter=",", skiprows=1)
NORMAL, ANOMALOUS = TABLE[TABLE[:, 1] == 0, 0], TABLE[TABLE[:, 1] == 1, 0]
CURVE = certify_curve(NORMAL, ANOMALOUS)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_the_curve_of_a_file_is_that_of_its_scores(tmp_path: Path, engine: str) -> None:
    saved = tmp_path / "curve.json"
    shown = succeeded("curve", *LABELLED, "-o", saved, "--engine", engine)
    assert Curve.load(saved).bare.to_json() == CURVE.to_json()
    assert shown == f"{CURVE}\n"


def test_deltas_and_labels_are_passed_on(tmp_path: Path) -> None:
    table, saved = tmp_path / "named.csv", tmp_path / "curve.json"
    rows = [f"{score!r},{'bad' if label else 'fine'}" for score, label in TABLE.tolist()]
    table.write_text("score,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    asked = ["--anomaly-label", "bad", "--delta-fpr", "0.01", "--delta-fnr", "0.1"]
    succeeded("curve", table, *COLUMNS, *asked, "-o", saved)
    assert Curve.load(saved) == certify_curve(NORMAL, ANOMALOUS, 0.01, 0.1)


def test_tops_are_passed_on_and_verified(tmp_path: Path) -> None:
    saved, chosen = tmp_path / "curve.json", tmp_path / "certificate.json"
    asked = ["--top-fpr", "0.3", "--top-fnr", "0.6", "--at", "0.5"]
    succeeded("curve", *LABELLED, *asked, "-o", saved, "--certificate", chosen)
    expected = certify_curve(NORMAL, ANOMALOUS, top_fpr=0.3, top_fnr=0.6)
    assert Curve.load(saved) == expected != CURVE
    assert Certificate.load(chosen) == expected.at(0.5)
    for path in (saved, chosen):
        assert "verified" in succeeded("verify", path, *LABELLED)
    assert "--top-fpr must lie strictly between 0 and 1" in refused(
        tmp_path, "curve", *LABELLED, "--top-fpr", "1"
    )


def test_a_chosen_threshold_has_its_certificate(tmp_path: Path) -> None:
    saved = tmp_path / "certificate.json"
    shown = succeeded("curve", *LABELLED, "--max-fpr", "0.2", "--certificate", saved)
    assert Certificate.load(saved) == CURVE.choose(max_fpr=0.2)
    assert shown == f"{CURVE.choose(max_fpr=0.2)}\n"
    assert "verified" in succeeded("verify", saved, *LABELLED)
    succeeded("curve", *LABELLED, "--at", "0.5", "--certificate", saved)
    assert Certificate.load(saved) == CURVE.at(0.5)
    assert "chosen freely" in succeeded("show", saved)
    succeeded("decide", saved, GOLDEN / "new.csv", "--score", "score")
    succeeded("curve", *LABELLED, "--max-fnr", "0.4", "--certificate", saved)
    assert Certificate.load(saved) == CURVE.choose(max_fnr=0.4)


def test_a_ceiling_that_no_threshold_keeps_is_not_certified(tmp_path: Path) -> None:
    saved = tmp_path / "curve.json"
    done = invoke("curve", *LABELLED, "--max-fpr", "0.0001", "-o", saved)
    assert done.code == 1
    assert "no threshold keeps --max-fpr = 0.0001" in done.out
    assert Curve.load(saved) == CURVE


def test_a_rate_that_is_bounded_nowhere_is_not_certified(tmp_path: Path) -> None:
    table, saved = tmp_path / "normal.csv", tmp_path / "curve.json"
    table.write_text("s,y\n" + "0.5,0\n" * 100, encoding="utf-8")
    assert invoke("curve", table, "--score", "s", "--label", "y", "-o", saved).code == 1
    assert Curve.load(saved).empty
    table.write_text("s,y\n" + "0.5,0\n0.7,1\n" * 100, encoding="utf-8")
    assert invoke("curve", table, "--score", "s", "--label", "y", "-o", saved).code == 0


def test_a_curve_is_shown_and_verified(tmp_path: Path) -> None:
    saved = tmp_path / "curve.json"
    CURVE.save(saved)
    assert succeeded("show", saved) == f"{CURVE}\n"
    assert succeeded("show", saved, "--format", "json") == CURVE.to_json()
    promise, table = succeeded("show", saved, "--format", "markdown").split("\n\n")
    assert promise.startswith("The bounds of both rates hold together at every threshold")
    assert table.startswith("| curve | |\n")
    assert succeeded("verify", saved, *LABELLED).startswith("verified")
    other = tmp_path / "other.json"
    certify_curve(NORMAL + 1.0, ANOMALOUS).save(other)
    done = invoke("verify", other, *LABELLED)
    assert done.code == 1
    assert "normal.digest" in done.out


def test_what_a_file_is_stands_in_its_header_however_it_is_spaced(tmp_path: Path) -> None:
    text, saved = CURVE.to_json(), tmp_path / "curve.json"
    saved.write_text(" " * 1_000 + text.replace('"format": ', '"format"\n:\t'))
    assert succeeded("show", saved, "--format", "json") == text
    # a word that stands elsewhere names nothing
    saved.write_text(text.replace('"format": ', '"pac-wrap groups": 1, "format": '))
    assert "has format 'pac-wrap curve'" in refused(tmp_path, "show", saved)


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_it_is_drawn(tmp_path: Path, ending: str) -> None:
    succeeded("curve", *LABELLED, "--report", tmp_path / f"curve.{ending}")
    assert (tmp_path / f"curve.{ending}").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--max-fpr", "0.1", "--at", "1"], "give only one of them"),
        (["--certificate", "c.json"], "needs a threshold"),
        (["--report", "c.gif"], "must end in .svg, .png or .pdf"),
        (["--master", "local[2]"], "--master needs --engine"),
        (["--max-fpr", "1.5"], "strictly between 0 and 1"),
        (["--at", "nan"], "finite number"),
        (["--delta-fpr", "1e-9"], "at least 1e-05"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    assert sentence in refused(tmp_path, "curve", *LABELLED, *words)
