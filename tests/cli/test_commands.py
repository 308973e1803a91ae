"""Help, examples, completion: what a new user types first."""

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pac_wrap.cli.commands import app
from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN, SCRIPT, command, invoke, succeeded

COMMANDS = [
    *("demo", "plan"),
    *("calibrate", "review", "curve", "compare", "recalibrate"),
    *("decide", "sql"),
    *("evaluate", "monitor", "worth", "verify", "show"),
    "reproduce",
]
DATA = ["list", "get", "where"]
PAGES = [[], *([name] for name in COMMANDS), ["data"], *(["data", name] for name in DATA)]
LABELLED = [str(GOLDEN / "scores.csv"), "--score", "score", "--label", "label"]


def documented() -> dict[str, list[str]]:
    """Return the examples in each command's help, as they are typed."""
    found = {}
    for registered in app.registered_commands:
        assert registered.callback is not None
        text = registered.callback.__doc__ or ""
        found[registered.callback.__name__] = re.findall(r"\[bold\](pac-wrap .*?)\[/bold\]", text)
    return found


EXAMPLES = [
    pytest.param(name, line, marks=[pytest.mark.slow] * (name == "reproduce"), id=line)
    for name, lines in documented().items()
    for line in lines
]


def test_every_command_is_there_and_has_an_example() -> None:
    examples = documented()
    assert list(examples) == COMMANDS
    for name, lines in examples.items():
        assert 1 <= len(lines) <= 3, name
        assert all(line.split()[1] == name for line in lines)


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_no_word_of_a_help_page_is_broken_at_80_columns(words: list[str]) -> None:
    narrow, wide = (
        CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": width}).stdout for width in ("80", "1000")
    )
    shown = r"[^\s│─╭╮╰╯]+"
    assert set(re.findall(shown, narrow)) <= set(re.findall(shown, wide))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_examples(name: str) -> None:
    done = invoke(name, "--help")
    assert (done.code, done.err) == (0, "")
    shown = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", done.out).splitlines()]
    for line in documented()[name]:  # each on one line, so that it can be copied
        assert line in [one.removeprefix("Example: ") for one in shown]
    assert "[bold]" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_every_argument_and_option_says_what_it_is() -> None:
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        for parameter in group.commands[name].params:
            assert parameter.help, f"{name} {parameter.name}"


def test_help_of_the_whole_lists_every_command() -> None:
    done = invoke("--help")
    assert done.code == 0
    for name in COMMANDS:
        assert re.search(rf"^│ {name} ", done.out, flags=re.MULTILINE)
    for option in ("--version", "--debug", "--install-completion", "--show-completion"):
        assert option in done.out
    assert re.findall(r"(\d+) [a-zA-Z]", done.out.split("Exit codes:")[1]) == ["0", "1", "2", "70", "130"]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("scores.csv", "test.csv", "new.csv", "late.csv"):
        rows = [
            ",".join([*(f"{value:.6f}" for value in rng.normal(4 * label, 1, 3)), str(label)])
            for label in [0, 1] * 300
        ]
        (tmp_path / name).write_text("\n".join(["s,forest,lof,y", *rows]) + "\n")
    numbered = [line.split(",") for line in rows]
    forest = [f"{place},{line[1]},{line[3]}" for place, line in enumerate(numbered)]
    (tmp_path / "a.csv").write_text("\n".join(["id,forest,y", *forest]) + "\n")
    lof = [f"{place},{line[2]}" for place, line in enumerate(numbered)]
    (tmp_path / "b.csv").write_text("\n".join(["id,lof", *lof]) + "\n")
    traffic = [f"{value:.6f},{1 if value > 3.5 else ''}" for value in rng.normal(size=8_000)]
    (tmp_path / "days.csv").write_text("\n".join(["s,v", *traffic]) + "\n")
    succeeded("calibrate", "scores.csv", "--score", "s", "--label", "y", "-o", "certificate.json")
    return tmp_path


@pytest.mark.usefixtures("small_demo")
@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_every_example_works_as_typed(name: str, line: str, workplace: Path) -> None:
    words = shlex.split(line)
    out = succeeded(*words[1:])
    if "-o" in words:
        assert (workplace / words[words.index("-o") + 1]).stat().st_size > 0
    else:
        assert out


def test_help_takes_no_longer_than_a_few_imports_of_numpy() -> None:
    resource = pytest.importorskip("resource", reason="processor time is measured by POSIX's getrusage")

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return float(usage.ru_utime + usage.ru_stime)

    times: dict[str, list[float]] = {"help": [], "numpy": []}
    for _ in range(3):
        before = used()
        assert command("--help").code == 0
        between = used()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True, timeout=LIMIT)
        times["help"].append(between - before)
        times["numpy"].append(used() - between)
    # processor time, because other processes do not change it, and as a ratio, because processors differ
    assert statistics.median(times["help"]) < 3 * statistics.median(times["numpy"])


# commands one after the other in one process, each after those that load less, and what none of them loads
LOADED = """
import json, sys
from pac_wrap.cli import main
for names, arguments in json.loads(sys.argv[1]):
    sys.argv = ["pac-wrap", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    found = [name for name in names.split() if name in sys.modules]
    assert not found, (arguments, found)
"""


def test_a_command_loads_nothing_heavy_that_it_does_not_use() -> None:
    commands = [
        ("numpy scipy sklearn pandas duckdb matplotlib polars pyarrow", ["--help"]),
        ("numpy scipy sklearn pandas duckdb matplotlib polars pyarrow", ["calibrate", "--help"]),
        ("sklearn pandas duckdb matplotlib", ["plan", "--max-fnr", "0.05"]),
        ("sklearn pandas duckdb matplotlib", ["show", str(CERTIFICATE)]),
        ("sklearn pandas matplotlib", ["evaluate", str(CERTIFICATE), *LABELLED, "-q"]),
    ]
    words = [sys.executable, "-c", LOADED, json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    # the shell is found among the parents; a second command keeps it from replacing itself
    script = f"'{SCRIPT}' --show-completion; true"
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, check=False)
    assert "_PAC_WRAP_COMPLETE" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["pac-wrap", "cal"], {"calibrate"}),
        (["pac-wrap", ""], {*COMMANDS, "data"}),
        (["pac-wrap", "sql", "--dia"], {"--dialect"}),
        (["pac-wrap", "show", "x.json", "--format", "ma"], {"markdown"}),
    ],
)
def test_completion_works_in_bash(typed: list[str], completed: set[str]) -> None:
    asked = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    environment = os.environ | asked | {"_PAC_WRAP_COMPLETE": "complete_bash"}
    done = subprocess.run([SCRIPT], capture_output=True, text=True, env=environment, check=False)
    assert set(done.stdout.split()) == completed
    assert done.stderr == ""
