"""The benchmarks run, judge what they measured, and the page is what the committed results give."""

import doctest
import json
import math
import re
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks import bounds, memory, peers, tables, timing
from benchmarks.build import HERE, PAGE, SCALE, build_page, build_scale
from benchmarks.lines import NAMES, line
from benchmarks.record import (
    Aim,
    Comparison,
    Growth,
    Measure,
    Result,
    Role,
    SkipError,
    Timing,
    is_met,
    load,
    save,
)
from benchmarks.table import render, summary
from benchmarks.timing import Scale, compare, growths

RESULTS = HERE / "results"
SLOW = ("spark",)
Usage = namedtuple("Usage", "free")


def test_the_page_is_what_the_results_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == build_page(RESULTS), "run python -m benchmarks.build"
    scale = SCALE.read_text(encoding="utf-8")
    assert scale == build_scale(RESULTS, scale), "run python -m benchmarks.build"
    assert "spark.calibrate" in scale


@pytest.mark.parametrize("name", NAMES)
def test_every_line_has_a_committed_result_of_a_whole_run(name: str) -> None:
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(text)["scale"] in ("default", "large")
    assert not re.search(r"/(home|root|tmp|work|Users|opt)/", text)


@pytest.mark.slow
def test_lines_give_records_that_judge_themselves(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--out", str(tmp_path)]
    names = [name for name in NAMES if name not in SLOW]
    done = subprocess.run([*command, *names], cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in names:
        if not (tmp_path / f"{name}.json").exists():
            assert f"{name} is skipped: " in done.stdout  # its package is missing
            continue
        result, made = load(tmp_path / f"{name}.json")
        check(result)
        assert {"python", "numpy", "pac-wrap-ad", "processors"} <= set(made)
        assert f"## {result.title}" in done.stdout
        written = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        entries = [*written["comparisons"], *written["growths"], *written["measures"]]
        records: list[Comparison | Growth | Measure]
        records = [*result.comparisons, *result.growths, *result.measures]
        assert [entry["met"] for entry in entries] == [is_met(record) for record in records]


def check(result: Result) -> None:
    assert result.name in NAMES
    assert result.comparisons or result.measures
    assert result.judged
    for one in result.comparisons:
        assert [run.role for run in one.timings][:2] == ["ours", "limit"]
        for run in one.timings:
            assert 0 < run.fastest <= run.median <= run.slowest
            assert 0 < run.ratio < math.inf
    for growth in result.growths:
        assert len(growth.sizes) >= 4
        assert math.isfinite(growth.exponent)
    for measure in result.measures:
        assert measure.value is None or math.isfinite(measure.value)


@pytest.mark.slow
def test_spark_is_measured_or_says_why_not() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "spark"]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "## Calibrate with Spark" in done.stdout or "spark is skipped: " in done.stdout


def timed(method: str, role: Role, ratio: float) -> Timing:
    return Timing(method, role, ratio, ratio, ratio, ratio, ratio, ratio)


def test_an_aim_is_computed_and_a_missed_one_is_printed() -> None:
    ours, limit = timed("ours", "ours", 2.5), timed("limit", "limit", 1.0)
    missed = Comparison("case", 10, 3, (ours, limit), aim=Aim("<=", 2.0))
    assert is_met(missed) is False
    assert is_met(replace(missed, aim=Aim("<=", 2.5))) is True
    assert is_met(replace(missed, aim=None)) is None
    assert is_met(Measure("row", "column", None, "", Aim("=", 1.0))) is False
    result = Result("calibrate", "Title", "About.", "default", (missed,))
    assert "**not met**" in render(result)
    assert "0 of 1 | case, 10: 2.50, aim <= 2" in summary([result])


def test_a_saved_result_comes_back(tmp_path: Path) -> None:
    one = Comparison("case", 10, 3, (timed("a", "ours", 2.0), timed("b", "limit", 1.0)), aim=Aim("<=", 3.0))
    growth = Growth("case", "a", 1.0, (1, 2, 3, 4), timing.LINEAR)
    result = Result("x", "X", "About.", "default", (one,), (growth,), (Measure("r", "c", 1.0, "MB"),), ("y",))
    save(result, tmp_path)
    assert load(tmp_path / "x.json")[0] == result


def test_ratios_are_those_of_neighbouring_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"ours": iter([1.0, 2.0, 30.0, 4.0]), "limit": iter([1.0, 1.0, 10.0, 1.0])}
    monkeypatch.setattr(timing, "_calls", lambda action: 1)
    monkeypatch.setattr(timing, "_clocked", lambda action, calls: (next(seconds[action()]), 0.0))
    methods: dict[str, tuple[Role, timing.Action]] = {
        "ours": ("ours", lambda: "ours"),
        "limit": ("limit", lambda: "limit"),
    }
    monkeypatch.setattr(Scale, "rounds", 4)
    monkeypatch.setattr(Scale, "patience", math.inf)
    found = compare("case", None, methods, Scale())
    # one slow moment for both, 30 to 10, is a ratio of 3 and not of 30
    assert found.value == 2.5
    assert found.of("ours").fastest == 1.0
    assert found.of("ours").slowest == 30.0


def test_growth_needs_four_sizes_that_are_large_enough() -> None:
    def runs(*sizes: int) -> list[Comparison]:
        pair: list[tuple[Role, float]] = [("ours", 1e-6), ("limit", 1e-7)]
        return [Comparison("case", n, 3, tuple(timed(role, role, n * s) for role, s in pair)) for n in sizes]

    assert growths(runs(10**3, 10**4, 10**5, 10**6), Scale()) == ()
    ours, limit = growths(runs(10**3, 10**5, 10**6, 10**7, 10**8), Scale())
    assert (ours.sizes[0], len(ours.sizes)) == (10**5, 4)
    assert ours.exponent == pytest.approx(1.0)
    assert is_met(ours) is True
    assert limit.aim is None


def test_missing_peers_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    result = line("single")(Scale("quick"))
    assert "crepes is not installed" in result.left_out
    assert {run.role for one in result.comparisons for run in one.timings} == {"ours", "limit"}
    with pytest.raises(SkipError, match="dask is not installed"):
        line("dask")(Scale("quick"))


def test_without_room_on_the_disk_a_line_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(10))
    with pytest.raises(SkipError, match=r"1,000 rows need 0\.0 GB"), tables.labelled_files(1000, "csv"):
        pass


def test_memory_is_that_of_the_process_and_of_the_call() -> None:
    held = b"x" * 300_000_000
    ran = memory.run_alone([sys.executable, "-S", "-c", "held = b'x' * 50_000_000"])
    assert 50e6 < ran.peak < 100e6 < len(held)
    with pytest.raises(RuntimeError, match="ended with code 3"):
        memory.run_alone([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    assert 3_000_000 <= memory.temporaries(lambda: bytes(1_000_000) + bytes(2_000_000), 1_000_000) < 6_000_000


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux only")
def test_memory_of_several_processes_is_added_up_while_they_run() -> None:
    hold = "import time; held = b'x' * 50_000_000; time.sleep(1.5)"
    both = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-S', '-c', {hold!r}]); {hold}"
    ran = memory.run_together([sys.executable, "-S", "-c", f"{both}; child.wait()"])
    assert 100e6 < ran.peak < 200e6
    assert ran.seconds > 1.5
    with pytest.raises(RuntimeError, match=r"ended with code 3: wrong"):
        memory.run_together(
            [sys.executable, "-S", "-c", "import sys; print('wrong', file=sys.stderr); sys.exit(3)"]
        )
    assert memory.run_together([sys.executable, "-S", "-c", "raise SystemExit(1)"], (0, 1)).peak < 50e6


def test_the_memory_of_several_processes_is_known_on_linux_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "_PROCESSES", tmp_path)
    with pytest.raises(SkipError, match="on Linux only"):
        memory.run_together([sys.executable, "-c", ""])


@pytest.mark.parametrize("module", [timing, bounds], ids=["timing", "bounds"])
def test_examples_of_the_benchmarks_run(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed
