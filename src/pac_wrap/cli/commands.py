"""The commands as one application. Heavy imports wait until a command needs them."""

import re
from functools import partial
from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperGroup

from pac_wrap.cli.certify import calibrate, compare, curve, recalibrate
from pac_wrap.cli.check import evaluate, show, verify, worth
from pac_wrap.cli.decide import decide, sql
from pac_wrap.cli.monitor import monitor
from pac_wrap.cli.paper import data, reproduce
from pac_wrap.cli.plan import demo, plan
from pac_wrap.cli.process import BAD_INPUT, debug, run, say
from pac_wrap.version import __version__

_WELCOME: Final = """\
PAC-Wrap certifies how often an anomaly detector cries wolf and how often it
misses.

See what it does, in seconds:
  pac-wrap demo
Certify thresholds from a table of scores and labels, and decide on new rows:
  pac-wrap calibrate scores.csv --score s --label y -o certificate.json
  pac-wrap decide certificate.json new.csv --score s -o verdicts.csv

pac-wrap --help lists all commands, pac-wrap plan says how many labels you need."""


# what Python calls a value, and what one writes
_WORDS: Final = {"str": "text", "int": "whole number", "float": "number", "path": "file", "file": "file"}


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
            _say_usage(error, f"pac-wrap {ctx.invoked_subcommand or ''}".strip())
            raise

    def get_params(self, ctx: Any) -> Any:
        """Return the options before a command."""
        return _in_words(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        command = super().get_command(ctx, cmd_name)
        for one in [command, *getattr(command, "commands", {}).values()]:
            if one is not None:
                _in_words(one.get_params(ctx))
        return command


def _in_words(params: Any) -> Any:
    """Return options whose help names what is to be written, not the type that Python makes of it."""
    for param in params:
        param.display_type_rich = partial(_written, param)
    return params


def _written(param: Any, ctx: Any) -> str | None:
    """Return what stands after an option, which is nothing after a switch."""
    if getattr(param, "is_flag", False):
        return None
    words: str = param.display_type(ctx)
    kind = re.sub(r"^list\[(.*)\]$", r"\1", words.strip("<>")).removesuffix(" range")
    return f"<{_WORDS[kind]}>" if kind in _WORDS else words


def _say_usage(error: Exception, within: str = "pac-wrap") -> None:
    """End the process with the sentence of a usage error; others pass."""
    # usage errors alone have it; their class moves with the version of typer
    if not hasattr(error, "format_message"):
        return
    what = error.format_message().replace("Value error, ", "").rstrip(".")
    if not what:  # the help was shown instead
        raise typer.Exit(BAD_INPUT) from error
    what = what.replace("Input should be", "it should be")
    end = " " if what.endswith("?") else "; "
    where = getattr(getattr(error, "ctx", None), "command_path", None) or within
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
        bool, Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    with_debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
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
    recalibrate,
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
