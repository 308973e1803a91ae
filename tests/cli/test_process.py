"""The process around a command: one sentence and one exit code for each kind of end, whatever outputs do."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pac_wrap import __version__
from pac_wrap.cli import main, process
from pac_wrap.cli.commands import app
from pac_wrap.cli.process import Output, ended, standard_output
from pac_wrap.errors import InputError, OutputError
from pac_wrap.method.certificate import Certificate
from support.patience import LIMIT
from support.shell import CERTIFICATE, command, invoke, one_sentence

runner = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--max-fpr", "5"], "--max-fpr must lie strictly between 0 and 1, got 5.0"),
        (["plan", "--labels", "-1"], "--labels"),
        (["plan", "--labels", "5", "--delta", "1"], "--delta must lie strictly between 0 and 1"),
        (["demo", "--margin", "far"], "margin"),
        (["nonsense"], "nonsense"),
        (["nonsense"], "; see pac-wrap --help"),
        (["decide", "--score"], "requires an argument; see pac-wrap decide --help"),
        (["data", "get", "--folder"], "; see pac-wrap data"),
    ],
)
def test_bad_arguments_give_exit_code_2_and_no_traceback(arguments: list[str], words: str) -> None:
    done = invoke(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_real_command_ends_alike() -> None:
    done = command("plan", "--max-fpr", "5")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("pac-wrap: --max-fpr must lie strictly between 0 and 1, got 5.0")


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"pac-wrap {__version__}\n"
    welcome = runner.invoke(app, [])
    assert welcome.exit_code == 0
    assert max(map(len, welcome.stdout.splitlines())) <= 80
    for first in ("pac-wrap demo", "pac-wrap calibrate scores.csv", "pac-wrap decide certificate.json"):
        assert f"  {first}" in welcome.stdout
    for name in ("demo", "plan"):
        shown = runner.invoke(app, [name, "--help"]).stdout
        assert f"pac-wrap {name}" in shown


def commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the words of every command, from none of them to those of a command within a command."""
    named = getattr(group, "commands", {}).items()
    return [words, *(found for name, one in named for found in commands(one, (*words, name)))]


@pytest.mark.parametrize("words", commands(typer.main.get_command(app)), ids=" ".join)
def test_help_speaks_of_what_is_written_and_not_of_types(words: tuple[str, ...]) -> None:
    shown = runner.invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    assert "--help" in shown
    assert max(map(len, shown.splitlines())) <= 80
    for kind in ("bool", "str", "int", "float", "list", "path", "range"):
        assert f"<{kind}" not in shown
    assert "[default: (" not in shown
    # a sentence is broken where the screen ends, not where its source does
    text = shown.split("╭")[0].splitlines()
    for line, following in pairwise(text):
        word = (following.split() or [""])[0]
        if word and line.strip() and line.rstrip()[-1] not in ".:":
            assert len(line.rstrip()) + 1 + len(word) >= 79, line


def test_main_runs_the_app(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pac-wrap", "plan", "--max-fpr", "2"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.startswith("pac-wrap: --max-fpr")


@pytest.mark.parametrize("with_debug", [[], ["--debug"]])
def test_ctrl_c_is_one_sentence_even_with_debug(
    with_debug: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Certificate, "from_json", interrupt)
    done = invoke(*with_debug, "show", CERTIFICATE)
    assert (done.code, done.out) == (130, "")
    assert one_sentence(done.err) == "interrupted; no file is left half written"


def test_debug_is_for_one_call_only(tmp_path: Path) -> None:
    invoke("--debug", "show", CERTIFICATE)
    assert invoke("show", tmp_path / "missing.json").code == 2


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_what_is_written_comes_out(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1], True)
    assert output.writable()
    assert output.fileno() == pipe[1]
    assert not output.isatty()
    assert output.write(b"abc") == 3
    assert os.read(pipe[0], 10) == b"abc"
    assert output.failure is None


def test_a_reader_that_has_gone_is_remembered_and_raises_only_if_asked(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1], True)
    os.close(pipe[0])
    assert output.write(b"abc") == 3
    assert isinstance(output.failure, BrokenPipeError)
    assert output.write(b"more") == 4
    raising = Output(pipe[1], True)
    raising.raising = True
    with pytest.raises(BrokenPipeError):
        raising.write(b"abc")


def test_an_output_that_was_closed_from_the_start_takes_everything() -> None:
    output = Output(1, False)
    assert output.write(b"abc") == 3
    assert output.failure is None


def test_a_result_needs_an_open_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Output(1, False))))
    with pytest.raises(OutputError, match="standard output is closed"):
        standard_output()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="standard output is closed"):
        standard_output()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("wrong"), 2, "pac-wrap: wrong\n"),
        (OSError(5, "Input/output error"), 2, "pac-wrap: Input/output error\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), 2, "pac-wrap: cannot open a.csv: No such file\n"),
        (
            UnicodeEncodeError("utf-8", "\udcff", 0, 1, "x"),
            2,
            "pac-wrap: names and texts must be UTF-8, got ",
        ),
        (RuntimeError("odd"), 70, "pac-wrap: a bug in pac-wrap, RuntimeError: odd; "),
        (KeyboardInterrupt(), 130, "pac-wrap: interrupted; no file is left half written\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_every_end_has_its_code(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(error) == code
    assert capsys.readouterr().err.startswith(words)


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(process.state, "debug", True)
    assert ended(RuntimeError("odd")) == 70
    assert "RuntimeError: odd" in capsys.readouterr().err


def test_after_a_signal_its_number_is_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(process.state, "signal", None)
    monkeypatch.setitem(process.state, "moment", -10.0)
    with pytest.raises(KeyboardInterrupt):
        process._stop(signal.SIGTERM, None)
    process._stop(signal.SIGTERM, None)  # in haste: what is being removed is not disturbed
    assert ended(RuntimeError("whatever libraries have made of it")) == 143
    assert process._interrupted(signal.SIGTERM).startswith("stopped by SIGTERM")


@pytest.fixture
def signals() -> Iterator[None]:
    """Let a test change what is done at a signal, and put it back."""
    before = {sign: signal.getsignal(sign) for sign in process._SIGNALS}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


@pytest.mark.parametrize(
    ("failure", "raising", "code", "expected"),
    [
        (None, False, 0, 0),
        (BrokenPipeError(), False, 1, 1),
        (OSError(28, "No space left on device"), False, 0, 2),
        (OSError(28, "No space left on device"), False, 1, 1),
        (OSError(28, "No space left on device"), True, 0, 0),
    ],
)
def test_a_full_output_turns_only_success_into_a_failure(
    failure: OSError | None,
    raising: bool,
    code: int,
    expected: int,
    signals: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = Output(1, False)
    output.failure, output.raising = failure, raising
    monkeypatch.setattr(process, "_prepare", lambda: [output])
    with pytest.raises(SystemExit) as caught:
        process.end_with(lambda: sys.exit(code))
    assert caught.value.code == expected
    assert ("No space left" in capsys.readouterr().err) == (
        failure is not None and failure.errno == 28 and not raising
    )
    assert all(signal.getsignal(sign) == signal.SIG_IGN for sign in process._SIGNALS)  # the code is settled


def test_texts_are_escaped_where_an_encoding_has_no_place_for_them() -> None:
    words = [sys.executable, "-m", "pac_wrap", "show", "\N{GREEK SMALL LETTER DELTA}.json"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run(words, capture_output=True, env=ascii_only, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert rb"cannot open \u03b4.json" in done.stderr


def test_outputs_that_somebody_has_replaced_are_left_alone(
    signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert process._prepare() == []
    assert isinstance(sys.stdout, io.StringIO)


@pytest.mark.parametrize(
    ("raised", "code"), [(None, 0), (SystemExit(1), 1), (SystemExit("x"), 1), (KeyError(), 70)]
)
def test_a_command_ends_with_the_code_it_settled_on(
    raised: BaseException | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(process, "_prepare", list)
    with pytest.raises(SystemExit) as caught:
        process.end_with(command)
    assert caught.value.code == code


def test_python_runs_the_package_as_the_command() -> None:
    words = [sys.executable, "-m", "pac_wrap", "show", str(CERTIFICATE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout) == (0, command("show", CERTIFICATE).out)
    failed = subprocess.run(words[:-1], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert failed.returncode == 2
    assert "see python -m pac_wrap show --help" in one_sentence(failed.stderr)
