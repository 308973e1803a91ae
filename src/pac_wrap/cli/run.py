"""How a command ends: one sentence instead of a traceback, warnings as notes, a bar while one waits."""

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer

from pac_wrap.errors import PACWrapError
from pac_wrap.foreign import message as harmless

BAD_INPUT = 2
_PATIENCE = 1.0
_state = {"debug": False}


def debug(wanted: bool) -> None:
    """Let errors through with their traceback, or not."""
    _state["debug"] = wanted


def run(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors turned into one sentence on standard error and exit code 2."""

    @wraps(command)
    def careful(*arguments: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment]  # its signature has optional parts
            try:
                command(*arguments, **options)
            except KeyboardInterrupt:
                _end("interrupted; no file is left half written")
            except BrokenPipeError:  # the reader, `head` say, has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except (PACWrapError, OSError) as error:
                if _state["debug"]:
                    # line by line: what other software says may stand in it
                    sys.stderr.writelines(
                        f"{harmless(line)}\n" for line in traceback.format_exc().split("\n")
                    )
                    raise typer.Exit(BAD_INPUT) from error
                _end(_sentence(error))

    return careful


def _end(sentence: str) -> None:
    sys.stderr.write(f"pac-wrap: {harmless(sentence)}\n")
    raise typer.Exit(BAD_INPUT)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, PACWrapError) and error.filename is not None:
        return f"cannot open {error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())


def _note(message: Warning | str, *_: Any) -> None:
    # how to flip the scores in Python is of no use in a shell
    text = str(message).split(' or pass polarity="lower"')[0]
    sys.stderr.write(f"pac-wrap: note: {harmless(text)}\n")


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[..., None]]:
    """Yield what takes the percentage done, and a new text if it likes.

    The bar shows after a second, and only on a terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(text, total=100, visible=False)

        def update(share: float, description: str | None = None) -> None:
            patient = time.monotonic() - started > _PATIENCE
            bar.update(task, completed=share, description=description, visible=patient)

        yield update
