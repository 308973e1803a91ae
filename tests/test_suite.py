"""What `make test` runs and leaves out, and that CI runs the rest."""

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


@pytest.mark.parametrize("workers", [["-p", "no:xdist"], ["-n", "1"]], ids=["alone", "by a worker"])
def test_the_last_line_says_how_many_slow_tests_were_left_out(workers: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", *workers, "-p", "no:cacheprovider", "-q", __file__]
    done = subprocess.run(
        [*command, "-m", "not slow", "-k", "left_out and not last_line"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
    assert done.stdout.splitlines()[-1].startswith("3 slow tests were left out: make test-slow runs them")


def test_ci_runs_every_test_once_and_the_floor_of_coverage_is_for_all() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    tested = [line for line in lines if re.match(r"make (test|check)", line)]
    assert [line.split()[1] for line in tested] == ["test", "test-slow"]
    first, rest = tested
    assert "--cov " in first
    assert "--cov-fail-under=0" in first
    assert "--cov --cov-append" in rest
    assert "fail-under" not in rest
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r'^test: .*\n\t\$\(PYTEST\) -m "not slow" \$\(PYTEST_ARGS\)$', makefile, re.MULTILINE)
    assert re.search(r"^test-slow: .*\n\t\$\(PYTEST\) -m slow \$\(PYTEST_ARGS\)$", makefile, re.MULTILINE)
