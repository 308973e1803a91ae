"""What surrounds a command: one sentence instead of a traceback, an exit code, and the version."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pac_wrap import __version__
from pac_wrap.cli import app, main
from pac_wrap.method.certificate import Certificate
from support.shell import CERTIFICATE, command, invoke, one_sentence

runner = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--max-fpr", "5"], "max_fpr must lie strictly between 0 and 1, got 5.0"),
        (["plan", "--labels", "-1"], "--labels"),
        (["plan", "--labels", "5", "--delta", "1"], "delta must lie strictly between 0 and 1"),
        (["demo", "--margin", "far"], "margin"),
        (["nonsense"], "nonsense"),
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
    assert done.err.startswith("pac-wrap: max_fpr must lie strictly between 0 and 1, got 5.0")


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"pac-wrap {__version__}\n"
    assert runner.invoke(app, []).exit_code == 2
    for name in ("demo", "plan"):
        shown = runner.invoke(app, [name, "--help"]).stdout
        assert f"pac-wrap {name}" in shown


def test_main_runs_the_app(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pac-wrap", "plan", "--max-fpr", "2"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.startswith("pac-wrap: max_fpr")


@pytest.mark.parametrize("with_debug", [[], ["--debug"]])
def test_ctrl_c_is_one_sentence_even_with_debug(
    with_debug: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Certificate, "load", interrupt)
    done = invoke(*with_debug, "show", CERTIFICATE)
    assert (done.code, done.out) == (130, "")
    assert one_sentence(done.err) == "interrupted; no file is left half written"


def test_debug_is_for_one_call_only(tmp_path: Path) -> None:
    invoke("--debug", "show", CERTIFICATE)
    assert invoke("show", tmp_path / "missing.json").code == 2
