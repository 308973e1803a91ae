"""The bar on a terminal while one waits: the pass a job is in, its rows, and the time left."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

# seconds: a shorter wait needs no bar
_PATIENCE: Final = 1.0


class Advance(Protocol):
    """How far a job is: see `pac_wrap.tables.files.connection.Done`."""

    @property
    def share(self) -> float:
        """The percentage done."""

    @property
    def number(self) -> int:
        """The pass it is in."""

    @property
    def rows(self) -> int | None:
        """The rows of a pass, if they are known."""


@contextmanager
def progress_bar(text: str, passes: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield a function that takes how far a job is, or the percentage done and a new text.

    There is one bar for all passes, of which there are at most `passes`; it shows after a second, and only on
    a terminal.
    """
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

        def update(done: "float | Advance", description: str | None = None) -> None:
            nonlocal current
            patient = time.monotonic() - started > _PATIENCE
            if isinstance(done, (int, float)):
                bar.update(task, completed=done, description=description, visible=patient)
                return
            if done.number != current:
                current = done.number
                bar.reset(task)  # or the time left would be that of the pass before
            shown = f"{text}, {described(done, passes)}"
            bar.update(task, completed=done.share, description=shown, visible=patient)

        yield update


def described(done: Advance, passes: int | None) -> str:
    """Return in words which pass a job is in, and how many rows of it are done."""
    most = f" of at most {passes}" if passes is not None and done.number <= passes else ""
    if done.rows is None:
        return f"pass {done.number}{most}"
    # in millions: all of it has to fit into a line of 80 characters
    read = f"{done.rows * done.share / 1e8:,.1f} of {done.rows / 1e6:,.1f}"
    return f"pass {done.number}{most}, {read} million rows"
