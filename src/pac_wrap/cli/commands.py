"""The commands as one application. Heavy imports wait until a command needs them."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pac_wrap.base.foreign import message
from pac_wrap.cli.certify import calibrate, compare, demo
from pac_wrap.cli.curve import curve
from pac_wrap.cli.paper import data, reproduce
from pac_wrap.cli.plan import plan
from pac_wrap.cli.process import debug, run
from pac_wrap.cli.use import decide, evaluate, show, sql, verify
from pac_wrap.cli.worth import worth
from pac_wrap.version import __version__


class Commands(TyperGroup):
    """The commands; what is said of a wrong word on the command line shows that word harmless."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return what the words before a command say."""
        try:
            return super().make_context(*arguments, **options)
        except Exception as error:
            _make_harmless(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the other words name."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            _make_harmless(error)
            raise


def _make_harmless(error: Exception) -> None:
    # usage errors alone have it; their class moves with the version of typer
    if hasattr(error, "format_message") and isinstance(error.message, str):  # type: ignore[attr-defined]
        error.message = message(error.message)  # type: ignore[attr-defined]


app = typer.Typer(
    cls=Commands,
    help="Certified false positive and false negative rates around any anomaly detector.",
    epilog=(
        "Exit codes: 0 done, certified or kept; 1 not certified, not verified or a promise broken; 2 wrong"
        " usage, bad input or an output that cannot be written; 70 an error of pac-wrap itself; 130 Ctrl-C."
    ),
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


for command in (calibrate, curve, decide, evaluate, verify, show, worth, compare, sql, plan, demo, reproduce):
    app.command()(run(command))
app.add_typer(data)
