"""`import pac_wrap` and `pac-wrap --help` beside `import numpy` and an empty typer app, in new processes."""

import subprocess
import sys
from functools import partial

from benchmarks.record import Aim, Result
from benchmarks.timing import Scale, compare

EMPTY_APP = """
import typer
app = typer.Typer()
@app.command()
def main() -> None:
    "Do nothing."
app()
"""
ABOUT = """\
Fresh processes that take turns, with the interpreter's own start in all of them. The limits are `import
numpy`, and the help of a typer app with one command that does nothing. `pac-wrap --help` is started as the
installed command is. `import pac_wrap` loads no module before a name is used, not even NumPy; so the row
*first name*, without an aim, is the fairer look at what a script pays: `from pac_wrap import calibrate`,
which also loads SciPy's special functions."""
HELP = "import sys; sys.argv[0] = 'pac-wrap'; from pac_wrap.cli import main; main()"


def run(code: str, *arguments: str) -> None:
    """Run Python code in a fresh process."""
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL)


def measure(scale: Scale) -> Result:
    """Return the timings of both starts."""
    imports = compare(
        "import",
        None,
        {
            "pac-wrap": ("ours", partial(run, "import pac_wrap")),
            "the least": ("limit", partial(run, "import numpy")),
        },
        scale,
        aim=Aim("<=", 1.5),
    )
    helps = compare(
        "--help",
        None,
        {
            "pac-wrap": ("ours", partial(run, HELP, "--help")),
            "the least": ("limit", partial(run, EMPTY_APP, "--help")),
        },
        scale,
        aim=Aim("<=", 2.0),
    )
    first = compare(
        "first name",
        None,
        {
            "pac-wrap": ("ours", partial(run, "from pac_wrap import calibrate")),
            "the least": ("limit", partial(run, "import numpy")),
        },
        scale,
    )
    return Result("startup", "Import and help", ABOUT, scale.name, (imports, helps, first))
