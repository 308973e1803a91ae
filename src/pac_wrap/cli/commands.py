"""The commands as one application. Heavy imports wait until a command needs them."""

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pac_wrap.cli.certify import calibrate, compare, demo
from pac_wrap.cli.curve import curve
from pac_wrap.cli.decide import decide
from pac_wrap.cli.monitor import monitor
from pac_wrap.cli.paper import data, reproduce
from pac_wrap.cli.plan import plan
from pac_wrap.cli.process import BAD_INPUT, debug, run, say
from pac_wrap.cli.sql import sql
from pac_wrap.cli.use import evaluate, show, verify
from pac_wrap.cli.worth import worth
from pac_wrap.version import __version__

_WELCOME: Final = """\
PAC-Wrap certifies how often an anomaly detector cries wolf, and how often it misses.

See what it does, in seconds:
  pac-wrap demo
Certify thresholds from a table of scores and labels, and decide on new rows:
  pac-wrap calibrate scores.csv --score s --label y -o certificate.json
  pac-wrap decide certificate.json new.csv --score s -o verdicts.csv

pac-wrap --help lists all commands, pac-wrap plan says how many labels you need."""


class Commands(TyperGroup):
    """The commands; a wrong word on the command line is one sentence, in which that word is harmless."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return what the words before a command say."""
        try:
            return super().make_context(*arguments, **options)
        except Exception as error:
            _say_usage(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the other words name."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            _say_usage(error)
            raise

    def get_params(self, ctx: Any) -> Any:
        """Return the options before a command."""
        return _without_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types(command.get_params(ctx))
        return command


def _without_types(params: Any) -> Any:
    """Return options whose help does not call a switch a <bool>."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.display_type_rich = lambda ctx: None
    return params


def _say_usage(error: Exception) -> None:
    """End the process with the sentence of a usage error; others pass."""
    # usage errors alone have it; their class moves with the version of typer
    if not hasattr(error, "format_message"):
        return
    what = error.format_message().replace("Value error, ", "").rstrip(".")
    if not what:  # the help was shown instead
        raise typer.Exit(BAD_INPUT) from error
    what = what.replace("Input should be", "it should be")
    end = " " if what.endswith("?") else "; "
    where = getattr(getattr(error, "ctx", None), "command_path", None) or "pac-wrap"
    say(f"{what[:1].lower()}{what[1:]}{end}{where.replace('root', 'pac-wrap', 1)} --help shows what there is")
    raise typer.Exit(BAD_INPUT) from error


app = typer.Typer(
    cls=Commands,
    help="Certified false positive and false negative rates around any anomaly detector.",
    epilog=(
        "Exit codes: 0 done, certified or kept; 1 not certified, not verified or a promise broken; 2 wrong"
        " usage, bad input or an output that cannot be written; 70 an error of pac-wrap itself; 130 Ctrl-C."
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pac-wrap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    with_debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    debug(with_debug)
    if ctx.invoked_subcommand is None:
        typer.echo(_WELCOME)


for command in (
    calibrate,
    curve,
    decide,
    evaluate,
    monitor,
    verify,
    show,
    worth,
    compare,
    sql,
    plan,
    demo,
    reproduce,
):
    app.command()(run(command))
app.add_typer(data)
