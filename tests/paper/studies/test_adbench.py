"""pac-wrap reproduce adbench --quick on the real tables."""

import csv
import os
from pathlib import Path

import pytest

from support.datafolder import needs
from support.shell import invoke


@pytest.mark.slow
def test_a_quick_run_on_the_real_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("adbench")
    for package in ("pyod", "crepes", "mapie", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = invoke("reproduce", "adbench", "--quick", "--out", tmp_path / "results")
    assert done.code == 0, done.err
    assert done.out.startswith("ADBench. Thresholds compared")
    names = set(os.listdir(tmp_path / "results"))
    assert {"adbench.md", "adbench.json", "adbench-tables.svg", "adbench-exceeded.csv"} <= names
    with (tmp_path / "results" / "adbench-exceeded.csv").open(newline="") as text:
        rows = {(row["threshold"], row["set up for"][:3]): row for row in csv.DictReader(text)}
    # a percentile is above its rate about every other time, a promise rarely; few divisions, wide margins
    assert float(rows["95th percentile of normals", "FPR"]["divisions above it mean"]) > 0.3
    assert float(rows["abstain", "FPR"]["divisions above it mean"]) < 0.3
