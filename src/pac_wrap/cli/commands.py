"""The commands as one application. Heavy imports wait until a command needs them."""

import typer

from pac_wrap.cli import options
from pac_wrap.cli.certify import calibrate, compare, curve, recalibrate
from pac_wrap.cli.check import evaluate, show, verify, worth
from pac_wrap.cli.decide import decide, sql
from pac_wrap.cli.monitor import monitor
from pac_wrap.cli.paper import get, reproduce, show_list, where
from pac_wrap.cli.plan import demo, plan
from pac_wrap.cli.process import run

app = typer.Typer(
    cls=options.Commands,
    help="Certified false positive and false negative rates around any anomaly detector.",
    epilog=(
        "Exit codes: 0 done, certified or kept; 1 not certified, not verified or a promise broken; 2 wrong"
        " usage, bad input or an output that cannot be written; 70 an error of pac-wrap itself; 130 Ctrl-C."
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data = typer.Typer(
    name="data",
    help="List, fetch and find the data sets of the experiments.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


app.callback()(options.before_command)
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
data.command("list")(run(show_list))
data.command()(run(get))
data.command()(run(where))
app.add_typer(data)
