"""The command line: parse, call, render; nothing else."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pac_wrap.cli.commands import app as app


def main() -> None:
    """Run the command line and end the process."""
    from pac_wrap.cli.process import end_with

    end_with(_run)


def _run() -> None:
    # imported here, so that a Ctrl-C meanwhile ends in one sentence too
    from pac_wrap.cli.commands import app

    app()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'pac_wrap.cli' has no attribute {name!r}")
    from pac_wrap.cli.commands import app

    return app
