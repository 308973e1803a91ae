"""The commands as one application, in the panels that `pac-wrap --help` shows.

A command imports NumPy, DuckDB and other large packages only when it runs, so that `--help` answers quickly.
"""

import typer

from pac_wrap.cli import options
from pac_wrap.cli.certify import calibrate, compare, curve, recalibrate
from pac_wrap.cli.check import evaluate, show, verify, worth
from pac_wrap.cli.decide import decide, sql
from pac_wrap.cli.monitor import monitor
from pac_wrap.cli.paper import get, reproduce, show_list, where
from pac_wrap.cli.plan import demo, plan
from pac_wrap.cli.process import run
from pac_wrap.cli.review import review

app = typer.Typer(
    cls=options.Commands,
    help="Certify false positive and false negative rates of any anomaly detector.",
    epilog=(
        "Exit codes: 0 success; 1 a rate is not certified, a certificate not verified, or a promise broken;"
        " 2 wrong usage, bad input, or output that cannot be written; 70 a bug in pac-wrap; 130 Ctrl-C."
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data = typer.Typer(
    name="data",
    help="List, download and find the data sets of the experiments.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


app.callback()(options.before_command)
panels = {
    "Start": (demo, plan),
    "Certify": (calibrate, review, curve, compare, recalibrate),
    "Decide": (decide, sql),
    "Check": (evaluate, monitor, worth, verify, show),
    "Paper": (reproduce,),
}
for panel, commands in panels.items():
    for command in commands:
        app.command(rich_help_panel=panel)(run(options.expanded(command)))
data.command("list")(run(show_list))
data.command()(run(get))
data.command()(run(where))
app.add_typer(data, rich_help_panel="Paper")
