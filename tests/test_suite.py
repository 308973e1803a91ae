"""What `make test` runs and leaves out, that CI runs the rest, and that workflows ask for what there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_three_that_are_left_out(number: int) -> None:
    """The test below counts these."""


def test_a_worker_says_how_many_slow_tests_it_left_out() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "-q", __file__]
    done = subprocess.run(
        [*command, "-m", "not slow", "-k", "left_out and not worker"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
    spent, left_out = done.stdout.splitlines()[-2:]
    assert re.fullmatch(r"\d+\.\d minutes of processor time", spent)
    assert left_out.startswith("3 slow tests were left out: make test-slow runs them")


def test_the_time_of_a_process_counts_whose_parent_has_ended() -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    parent = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {busy!r}])"
    script = (
        "import subprocess, sys\nfrom support.processes import adopt_orphans, minutes_spent\n"
        "adopt_orphans()\n"
        f"subprocess.run([sys.executable, '-c', {parent!r}])\nprint(60 * minutes_spent())"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], cwd=ROOT / "tests", text=True)
    assert 0.5 <= float(printed) < 5.0


def test_a_run_fails_that_takes_more_processor_time_than_it_may() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-m", "not slow", "-k", "three or workflows", "--minutes", "0.001"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "4 passed" in done.stdout
    line = r"\d+\.\d minutes of processor time; at most 0.001 are allowed, so this run fails"
    spent, left_out = done.stdout.splitlines()[-2:]
    assert re.fullmatch(line, spent)
    assert left_out.startswith("3 slow tests were left out: make test-slow runs them")


def test_ci_runs_every_test_and_the_floor_of_coverage_is_for_all() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    tested = [line for line in lines if re.match(r"make (test|check)", line)]
    assert [line.split()[1] for line in tested] == ["test", "test-slow", "test-oldest"]
    first, rest, _ = tested
    assert "--cov " in first
    assert "--cov-fail-under=0" in first
    assert "--minutes 14.6" in first
    assert "--cov --cov-append" in rest
    assert "fail-under" not in rest
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r'^test: .*\n\t\$\(PYTEST\) -m "not slow" \$\(PYTEST_ARGS\)$', makefile, re.MULTILINE)
    slow = (
        r'^test-slow: .*\n\t\$\(PYTEST\) -m "slow or hypothesis" --hypothesis-profile many \$\(PYTEST_ARGS\)$'
    )
    assert re.search(slow, makefile, re.MULTILINE)


@pytest.mark.parametrize("name", ["test", "wheels", "docs", "release"])
def test_workflows_call_targets_and_workflows_that_exist(name: str) -> None:
    workflow = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = re.findall(r"run: make (\S+)", workflow) + re.findall(r"uses: \./(\S+)|bash (\S+)", workflow)
    assert called
    for target in called:
        if isinstance(target, tuple):
            assert (ROOT / "".join(target)).is_file()
        else:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    # pages, tests and files that are named as arguments
    for path in re.findall(r"\b(?:tests|src)/[\w./]+\w", workflow):
        assert (ROOT / path).exists(), path
