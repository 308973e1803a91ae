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
    assert [line.split()[1] for line in tested] == ["test", "test-slow", "test-oldest"]
    first, rest, _ = tested
    assert "--cov " in first
    assert "--cov-fail-under=0" in first
    assert "--cov --cov-append" in rest
    assert "fail-under" not in rest
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r'^test: .*\n\t\$\(PYTEST\) -m "not slow" \$\(PYTEST_ARGS\)$', makefile, re.MULTILINE)
    assert re.search(r"^test-slow: .*\n\t\$\(PYTEST\) -m slow \$\(PYTEST_ARGS\)$", makefile, re.MULTILINE)


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
