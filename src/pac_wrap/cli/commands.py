"""The commands as one application. Heavy imports wait until a command needs them."""

from typing import Annotated

import typer

from pac_wrap.cli.certify import calibrate, compare
from pac_wrap.cli.data import data
from pac_wrap.cli.ending import debug
from pac_wrap.cli.inspect import evaluate, show, verify
from pac_wrap.cli.plan import demo, plan
from pac_wrap.cli.reproduce import reproduce
from pac_wrap.cli.run import run
from pac_wrap.cli.use import decide, sql
from pac_wrap.version import __version__

app = typer.Typer(
    help="Certified false positive and false negative rates around any anomaly detector.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pac-wrap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    with_debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    debug(with_debug)


for command in (calibrate, decide, evaluate, verify, show, compare, sql, plan, demo, reproduce):
    app.command()(run(command))
app.add_typer(data)
