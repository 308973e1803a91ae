"""The command line: parse, call, render; nothing else."""


def main() -> None:
    """Run the command line and end the process."""
    from pac_wrap.cli.process import end_with

    end_with(_run)


def _run() -> None:
    # imported here, so that a Ctrl-C meanwhile ends in one sentence too
    from pac_wrap.cli.commands import app

    app()
