"""What surrounds a command: one sentence instead of a traceback, warnings as notes, a bar while you wait."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer

from pac_wrap.cli.ending import ended, say

_PATIENCE = 1.0


def run(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors turned into one sentence on standard error and an exit code."""

    @wraps(command)
    def careful(*arguments: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment]  # its signature has optional parts
            try:
                command(*arguments, **options)
            except (typer.Exit, SystemExit):
                raise
            except BaseException as error:
                raise typer.Exit(ended(error)) from error

    return careful


def _note(message: Warning | str, *_: Any) -> None:
    # how to flip the scores in Python is of no use in a shell
    text = str(message).split(' or pass polarity="lower"')[0]
    say(f"note: {text}")


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[..., None]]:
    """Yield a function that takes the percentage done and, if given, a new text.

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
