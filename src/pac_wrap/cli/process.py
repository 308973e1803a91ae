"""The process around a command: signals, errors, exit codes, standard output and progress."""

import io
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import signature
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

from pac_wrap.base.text import message
from pac_wrap.errors import OutputError, PACWrapError, VacuousWarning

if TYPE_CHECKING:
    from pac_wrap.tables.files.connection import Done

# exit codes beside 0: not certified, not verified or a promise broken; wrong usage, bad input or output; a
# bug of ours; and the number to which that of a signal is added
FAILED: Final = 1
BAD_INPUT: Final = 2
BROKEN: Final = 70
INTERRUPTED: Final = 128
# seconds: signals that come faster are one
_HASTE: Final = 1.0
# seconds: a shorter wait needs no bar
_PATIENCE: Final = 1.0
_SIGNALS: Final = [one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP")]
# what a command takes without naming it, and what Python takes by another name
_ARGUMENTS: Final = ("certificate", "tables", "score", "label", "form", "output", "normal", "anomalous")
state: dict[str, Any] = {"debug": False, "signal": None, "moment": -_HASTE, "options": []}


class Output(io.FileIO):
    """Standard output or error that remembers a failure, and raises it only if `raising` is set."""

    def __init__(self, number: int, open_at_start: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        # a reader that stops early does not change the exit code, and what is closed takes everything
        self.open_at_start, self.raising = open_at_start, False
        self.failure: OSError | None = None

    def write(self, content: Any) -> int:
        """Write some of the content, or remember the failure and drop it."""
        try:
            if self.open_at_start and self.failure is None:
                return super().write(content)
        except OSError as error:
            self.failure = error
            if self.raising and isinstance(error, BrokenPipeError):
                raise
            if self.raising:
                raise OutputError(_full(error)) from error
        return memoryview(content).nbytes


def end_with(command: Callable[[], None]) -> NoReturn:
    """Run the command line in this process, and end the process with the exit code of the command."""
    outputs: list[Output] = []
    code = 0
    try:
        try:
            outputs = _prepare()
            command()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if state["signal"] is None:  # else a write may have been cut off, and would be done again
            sys.stdout.flush()
    except BaseException as error:
        code = ended(error)
    if (number := state["signal"]) is not None:
        say(_interrupted(number))
        # without waiting for readers, for threads, or for the last words of libraries
        os._exit(INTERRUPTED + number)
    if outputs:
        for sign in _SIGNALS:  # the code is settled
            with suppress(ValueError):
                signal.signal(sign, signal.SIG_IGN)
        failure = outputs[0].failure
        if failure is not None and not outputs[0].raising and not isinstance(failure, BrokenPipeError):
            say(_full(failure))
            code = code or BAD_INPUT  # the result was good, but could not be written
    sys.exit(code)


def ended(error: BaseException) -> int:
    """Return the exit code of a command that an error ended, and report the error in one sentence."""
    if state["signal"] is not None:  # whatever libraries have made of it; `end_with` says so
        return INTERRUPTED + int(state["signal"])
    if isinstance(error, KeyboardInterrupt):
        say(_interrupted(signal.SIGINT))
        return INTERRUPTED + signal.SIGINT
    if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has stopped reading
        return 0
    expected = isinstance(error, (PACWrapError, OSError, UnicodeError))
    if state["debug"]:
        import traceback  # not before, so that signals are listened to early

        # line by line: what other software says may stand in it
        lines = "".join(traceback.format_exception(error)).splitlines()
        sys.stderr.writelines(f"{message(line)}\n" for line in lines)
    elif isinstance(error, UnicodeEncodeError):
        say(f"names and texts must be UTF-8, got {ascii(error.object)[1:201]}; rename it")
    elif isinstance(error, OSError) and not isinstance(error, PACWrapError) and error.filename is not None:
        say(f"cannot open {error.filename}: {error.strerror}")
    elif isinstance(error, OSError) and error.strerror:
        say(error.strerror)
    elif expected:
        text = " ".join(str(error).split())
        # the names of columns are the user's own
        say(text if "column" in text else in_options(text))
    else:
        what = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        say(f"a bug in pac-wrap, {what:.300}; run it as pac-wrap --debug to see the traceback")
    return BAD_INPUT if expected else BROKEN


def run(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with every error turned into one sentence on standard error and an exit code."""
    import typer  # as late, for the same reason

    @wraps(command)
    def careful(*arguments: Any, **options: Any) -> None:
        state["options"] = [name for name in signature(command).parameters if name not in _ARGUMENTS]
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment]  # its signature has optional parts
            try:
                command(*arguments, **options)
            except (typer.Exit, SystemExit):
                raise
            except BaseException as error:
                raise typer.Exit(ended(error)) from error

    return careful


def in_options(text: str) -> str:
    """Return a sentence about Python's arguments with the options of the current command in their place."""
    text = re.sub(r"reviews=Reviews\((\w+)=([\w.]+)\)", r"\1 \2", text)
    for name in state["options"]:
        option = f"--{name.replace('_', '-')}"
        text = re.sub(rf"""(?<![\w'"]){name}="(\w+)\"""", rf"{option} \1", text)
        if "_" in name:
            text = re.sub(rf"(?<![\w'\"./-]){name}(?![\w'\"./(])", option, text)
        else:  # a plain word is an argument only if it begins a rule, or gets a value as above
            text = re.sub(rf"^{name}(?= (must|says) )", option, text)
    return text


def _note(warning: Warning | str, *_: Any) -> None:
    if isinstance(warning, VacuousWarning):  # the output of the command says it
        return
    # how to flip the scores in Python is of no use in a shell
    text = in_options(str(warning).split(' or pass polarity="lower"')[0])
    say(f"note: {text}")


def standard_output() -> BinaryIO:
    """Return standard output for a result that goes nowhere else, so that a failure to write is raised."""
    raw = None if sys.stdout is None else getattr(sys.stdout.buffer, "raw", None)
    if isinstance(raw, Output):
        raw.raising = True
    if sys.stdout is None or (isinstance(raw, Output) and not raw.open_at_start):
        raise OutputError("standard output is closed; name a file with -o")
    return sys.stdout.buffer


def say(sentence: str) -> None:
    """Write a sentence to standard error, if it is open."""
    with suppress(OSError):
        sys.stderr.write(f"pac-wrap: {message(sentence)}\n")
        sys.stderr.flush()


def _interrupted(number: int) -> str:
    how = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
    return f"{how}; no file is left half written"


def _prepare() -> list[Output]:
    """Handle signals, replace standard output and error, and return the two if they are real files."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # it is closed, and what is opened later must not take its place
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)
    for sign in _SIGNALS:
        with suppress(ValueError):  # only the main thread may
            # started with nohup, or in the background, it must go on
            if signal.getsignal(sign) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(sign, _stop)
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        return []  # somebody has replaced them already
    outputs = []
    for number, name in ((1, "stdout"), (2, "stderr")):
        usual = getattr(sys, name)
        output = Output(number, usual is not None)
        text = io.TextIOWrapper(
            io.BufferedWriter(output),
            encoding="utf-8" if usual is None else usual.encoding,
            errors="backslashreplace",
            line_buffering=number == 2 or output.isatty(),
        )
        setattr(sys, name, text)
        outputs.append(output)
    return outputs


def _full(failure: OSError) -> str:
    return f"cannot write standard output: {failure.strerror}"


def _stop(number: int, _: FrameType | None) -> None:
    """Unwind as at Ctrl-C, which removes half-written files; signals in quick succession count once."""
    moment = time.monotonic()
    if moment - state["moment"] >= _HASTE:
        state["signal"], state["moment"] = state["signal"] or number, moment
        raise KeyboardInterrupt


@contextmanager
def progress_bar(text: str, passes: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar on a terminal after a second; yield the function that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task, current = bar.add_task(text, total=100, visible=False), 1

        def update(done: "float | Done", description: str | None = None) -> None:
            nonlocal current
            patient = time.monotonic() - started > _PATIENCE
            if isinstance(done, (int, float)):
                bar.update(task, completed=done, description=description, visible=patient)
                return
            if done.number != current:
                current = done.number
                bar.reset(task)  # or the time left would be that of the pass before
            shown = f"{text}, pass {done.number}"
            if passes is not None and done.number <= passes:
                shown += f" of at most {passes}"
            if done.rows is not None:  # in millions: all of it has to fit into a line of 80 characters
                shown += f", {done.rows * done.share / 1e8:,.1f} of {done.rows / 1e6:,.1f} million rows"
            bar.update(task, completed=done.share, description=shown, visible=patient)

        yield update
