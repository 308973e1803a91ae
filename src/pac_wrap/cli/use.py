"""pac-wrap evaluate, verify and show: whether a certificate holds, and what it promises."""

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pac_wrap.cli.options import AnomalyLabel, CertificateFile, Delimiter, Label, Score, Tables
from pac_wrap.cli.process import progress_bar
from pac_wrap.errors import UpsideDownWarning

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.curves.curve import Curve

FAILED = 1
# the format stands in the first line of a file
_START = 200


def evaluate(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    label: Label,
    anomaly_label: AnomalyLabel = None,
    delimiter: Delimiter = None,
) -> None:
    """Measure the error rates on labelled points that were not used to calibrate.

    Exit code 1 if a promised ceiling is significantly exceeded: a one-sided exact test at 5 %.

    That is for one look; a job that looks every night raises a false alarm sooner or later.

    Example: [bold]pac-wrap evaluate certificate.json test.csv --score score --label label[/bold]
    """
    from rich.console import Console

    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.metrics import exceeded
    from pac_wrap.report.terminal import show_evaluation
    from pac_wrap.tables.decide import evaluate_table
    from pac_wrap.tables.table import open_table
    from pac_wrap.tables.text_format import check_delimiter

    loaded = Certificate.load(certificate)
    separator = check_delimiter(delimiter)
    with (
        progress_bar("evaluating") as progress,
        open_table(tables, [score], label, passes=True, delimiter=separator, progress=progress) as table,
    ):
        metrics = evaluate_table(table, loaded, score=score, label=label, anomaly_label=anomaly_label)
    Console().print(show_evaluation(loaded, metrics))
    if exceeded(metrics, loaded.certified):
        raise typer.Exit(FAILED)


def verify(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    label: Label,
    anomaly_label: AnomalyLabel = None,
    delimiter: Delimiter = None,
) -> None:
    """Recompute a certificate or a curve from the scores it was made from; exit code 1 if it differs.

    Detects a wrong file, a missing row or a changed score: accidents, not forgery.

    Not shown: that the detector gave these scores, that the labels are right, that nobody chose the rows.

    Example: [bold]pac-wrap verify certificate.json scores.csv --score score --label label[/bold]
    """
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.curves.certify import CurveRequest, verify_curve_against
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.verify import verify_against
    from pac_wrap.tables.calibrate import calibrate_table
    from pac_wrap.tables.table import open_table
    from pac_wrap.tables.text_format import check_delimiter

    loaded = _certificate_or_curve(certificate)
    separator = check_delimiter(delimiter)
    mark = 1 if anomaly_label is None else anomaly_label
    with (
        progress_bar("verifying", 4) as progress,
        open_table(tables, [score], label, passes=True, delimiter=separator, progress=progress) as table,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UpsideDownWarning)
        read = partial(calibrate_table, table, score=score, label=label, score_type=loaded.score_type)
        if isinstance(loaded, Curve):
            deltas = loaded.normal.delta, loaded.anomalous.delta
            verification = verify_curve_against(loaded, read(CurveRequest(*deltas, mark)))
        else:
            again = read(Request(loaded.guarantee, loaded.overlap, mark))
            verification = verify_against(loaded, again)
    typer.echo(str(verification))
    if not verification:
        raise typer.Exit(FAILED)


def show(
    certificate: CertificateFile,
    form: Annotated[
        Literal["text", "markdown", "json"], typer.Option("--format", help="How to show it.")
    ] = "text",
) -> None:
    """Show what a certificate or a curve promises, if it is whole and does not contradict itself.

    Its checksum detects accidents, not forgery: anyone who can write the file can make it match.

    Example: [bold]pac-wrap show certificate.json --format markdown[/bold]
    """
    from pac_wrap.base.foreign import escape_markdown
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.report.words import lines_of, lines_of_curve

    loaded = _certificate_or_curve(certificate)
    if form == "json":
        typer.echo(loaded.to_json(), nl=False)
    elif form == "markdown":
        curve = isinstance(loaded, Curve)
        lines = lines_of_curve(loaded) if isinstance(loaded, Curve) else lines_of(loaded)
        rows = (f"| {name} | {escape_markdown(text)} |" for name, text in lines)
        typer.echo("\n".join([f"| {'curve' if curve else 'certificate'} | |", "|---|---|", *rows]))
    else:
        typer.echo(str(loaded))


def _certificate_or_curve(path: Path) -> "Certificate | Curve":
    """Return what a file holds; what is neither is refused as a certificate."""
    from pac_wrap.base.codec import MOST_BYTES
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.curves.curve import FORMAT, Curve

    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    return Curve.from_json(text) if FORMAT.encode() in text[:_START] else Certificate.from_json(text)
