"""How a command ends: one sentence instead of a traceback, warnings as notes, a bar while one waits."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer

from pac_wrap.errors import PACWrapError

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
                _end("interrupted; nothing was written")
            except (PACWrapError, OSError) as error:
                if _state["debug"]:
                    raise
                _end(_sentence(error))

    return careful


def _end(sentence: str) -> None:
    sys.stderr.write(f"pac-wrap: {sentence}\n")
    raise typer.Exit(BAD_INPUT)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, PACWrapError) and error.filename is not None:
        return f"cannot open {error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _note(message: Warning | str, *_: Any) -> None:
    sys.stderr.write(f"pac-wrap: note: {message}\n")


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[float], None]]:
    """Yield what takes the percentage done; a bar shows after a second, and only on a terminal."""
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
        yield lambda share: bar.update(task, completed=share, visible=time.monotonic() - started > _PATIENCE)
