"""The options that several commands share, and what they mean together."""

from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.guarantee import Guarantee

Tables = Annotated[
    list[str], typer.Argument(help="Files or patterns: CSV, Parquet, JSON lines, NumPy; - is standard input.")
]
CertificateFile = Annotated[Path, typer.Argument(help="A certificate made by pac-wrap calibrate.")]
Score = Annotated[str, typer.Option("--score", help="The column of scores, higher for anomalies.")]
Label = Annotated[str, typer.Option("--label", help="The column of labels: 0/1 or true/false.")]
AnomalyLabel = Annotated[
    str | None, typer.Option("--anomaly-label", help="The label that marks an anomaly, if it is another.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What separates the cells of a CSV, a character or tab; else found from its header.",
    ),
]
MaxFpr = Annotated[str, typer.Option(help="Ceiling of the false positive rate, or none.")]
MaxFnr = Annotated[str, typer.Option(help="Ceiling of the false negative rate, or none.")]
DeltaFpr = Annotated[float, typer.Option(help="Chance that the FPR ceiling does not hold.")]
DeltaFnr = Annotated[float, typer.Option(help="Chance that the FNR ceiling does not hold.")]
Step = Annotated[float, typer.Option(help="Strategy relax: how much a level raises the ceilings.")]


def guarantee_of(max_fpr: str, max_fnr: str, delta_fpr: float, delta_fnr: float) -> "Guarantee":
    """Return the guarantee that the options ask for."""
    from pac_wrap.guarantee import Guarantee

    return Guarantee(_ceiling("--max-fpr", max_fpr), _ceiling("--max-fnr", max_fnr), delta_fpr, delta_fnr)


def keep_apart(tables: list[str], *outputs: Path | None) -> None:
    """Refuse an output that is one of the tables, or the same as another output."""
    given = [Path(name) for table in tables for name in (glob(table, recursive=True) or [table])]
    for output in (path for path in outputs if path is not None):
        if any(output.exists() and table.exists() and output.samefile(table) for table in given):
            raise InputError(f"{output} is one of the tables; write to another file, so that nothing is lost")
        given.append(output)
        if len({str(path.absolute()) for path in outputs if path}) < len([path for path in outputs if path]):
            raise InputError(f"{output} is given twice; certificate and report need a file each")


def _ceiling(option: str, text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} must be a number between 0 and 1, or none; got {text!r}") from None
