"""pac-wrap worth: what the alarms of a certificate are worth."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pac_wrap.cli.certificates import of_classes
from pac_wrap.cli.options import CertificateFile, Delimiter, Form, shares_in
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate


def worth(
    certificate: CertificateFile,
    prevalence: Annotated[
        str | None,
        typer.Option(help="The share of anomalies among future points: 0.01, or a range, 0.01-0.03."),
    ] = None,
    per: Annotated[
        int | None,
        typer.Option(min=1, help="With --prevalence: count the work for so many points; by default 1000."),
    ] = None,
    unlabelled: Annotated[
        list[str] | None, typer.Option(help="A table of new points without labels; give it several times.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="With --unlabelled: the column of its scores.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Chance that a share counted for this does not hold.")
    ] = None,
    delimiter: Delimiter = None,
    form: Form = "text",
) -> None:
    """Say how many alarms are right, and how much work they make.

    With --prevalence: for a share of anomalies that you state; false alarms need no labelled anomaly.

    With --unlabelled: from new points whose labels nobody knows, without any labelled anomaly.

    That needs no prevalence, and bounds it too.

    Examples: [bold]pac-wrap worth certificate.json --prevalence 0.01[/bold],
    [bold]pac-wrap worth certificate.json --unlabelled new.csv --score score[/bold]
    """
    from pac_wrap.report.render import as_json, short
    from pac_wrap.report.results import account_of_worth

    loaded = of_classes(certificate)
    if prevalence is None and not unlabelled:
        raise InputError("say what is known: --prevalence 0.01, or --unlabelled new.parquet --score score")
    if prevalence is None and per is not None:
        raise InputError("--per counts the work at a prevalence; give --prevalence as well, or leave it out")
    if not unlabelled and (score is not None or delimiter is not None):
        raise InputError("--score and --delimiter are for --unlabelled; give it as well, or leave them out")
    found: dict[str, Any] = {}
    if prevalence is not None:
        share = shares_in(prevalence)
        found["workload"] = loaded.workload(share, 1000 if per is None else per, delta=delta)
        if loaded.certified is not None and loaded.certified.max_fnr is not None:
            found["precision"] = loaded.precision(share, delta=delta)
    if unlabelled:
        found |= _from_unlabelled(loaded, unlabelled, score, 0.05 if delta is None else delta, delimiter)
    if form == "json":
        typer.echo(as_json(account_of_worth(**found)), nl=False)
    else:
        typer.echo(short(account_of_worth(**found)))


def _from_unlabelled(
    certificate: "Certificate", tables: list[str], score: str | None, delta: float, delimiter: str | None
) -> dict[str, Any]:
    from pac_wrap.tables.decide import count_table
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_table

    if score is None:
        raise InputError("--unlabelled needs the column of its scores; give --score")
    separator = check_delimiter(delimiter)
    with (
        progress_bar("reading") as progress,
        open_table(tables, [score], delimiter=separator, progress=progress) as table,
    ):
        counted = count_table(table, certificate, score)
    return {
        "counted": counted,
        "unlabelled": certificate.precision_from_counts(counted, delta),
        "prevalence": certificate.prevalence_from_counts(counted, delta),
    }
