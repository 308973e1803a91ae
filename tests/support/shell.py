"""The command line as tests run it, in process or as a real command, and what a refusal must look like."""

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import typer.testing
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from pac_wrap.cli.commands import app
from support.patience import LIMIT

GOLDEN = Path(__file__).parents[1] / "golden"
CERTIFICATE = GOLDEN / "certificate.json"
SCRIPT = Path(sys.executable).with_name("pac-wrap")
_PREFIX = "pac-wrap: "
_DONE = re.compile(f"{_PREFIX}([0-9,]+ (rows?( of traffic)?: |(days|normal), )|written as CSV, since)")
_SCREEN = {"COLUMNS": "80"}
# the parser is built once, not for every command that is run in this process
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def invoke(*arguments: object, stdin: bytes | None = None) -> Done:
    """Run a command in this process, so that coverage counts; an exception it lets through is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, env=_SCREEN)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def command(*arguments: object, stdin: bytes | None = None, cwd: Path | None = None) -> Done:
    """Run a command as a user would, in a process of its own."""
    words = [str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(
        words,
        input=stdin,
        capture_output=True,
        timeout=LIMIT,
        cwd=cwd,
        env=os.environ | _SCREEN,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def succeeded(*arguments: object, stdin: bytes | None = None) -> str:
    """Return the standard output of a command that must end well and say nothing but what it did."""
    done = invoke(*arguments, stdin=stdin)
    notes = [line for line in done.err.splitlines() if not _DONE.match(line)]
    assert (done.code, notes) == (0, []), done
    return done.out


def one_sentence(err: str) -> str:
    """Return the only line of standard error, without its prefix."""
    assert err.startswith(_PREFIX), err
    assert err.endswith("\n"), err
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err, err
    return err.removeprefix(_PREFIX).strip()


def refused(folder: Path, *arguments: object, stdin: bytes | None = None) -> str:
    """Return the one sentence of a command that must end with code 2 and leave the folder as it was."""
    with nothing_left(folder):
        done = invoke(*arguments, stdin=stdin)
    assert done.code == 2, done
    assert done.out == "", done
    return one_sentence(done.err)


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Fail if a file in the folder has come, gone or changed, or if a temporary one is left."""
    before, usual = listing(folder), tempfile.tempdir
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        try:
            yield
        finally:
            tempfile.tempdir = usual
        assert os.listdir(scratch) == [], os.listdir(scratch)
    after = listing(folder)
    assert after == before, sorted(after.items() ^ before.items())


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return every file under a folder with its size, its number and when it was changed."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        found[str(path)] = facts.st_size, facts.st_ino, facts.st_mtime_ns
    return found


def text_of(shown: RenderableType, width: int = 80) -> str:
    """Return what a screen of this width shows."""
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def write(path: Path, text: str | bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def parquet(path: Path, query: str) -> Path:
    """Write what a query gives as Parquet and return its path."""
    name = str(path).replace("'", "''")
    # in the database that all tests share: to make one takes longer than to write a small file
    duckdb.execute(f"COPY ({query}) TO '{name}' (FORMAT parquet)")
    return path
