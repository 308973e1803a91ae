"""Certificates by kind and by group on the command line, and the rules of groups as SQL."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pac_wrap.cli.options import NOT_CERTIFIED, keep_apart, on_cluster
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.tables.sql import Dialect

Together = Annotated[
    bool, typer.Option("--together", help="With --group: the promises of all groups hold at once.")
]
Pool = Annotated[
    bool,
    typer.Option(
        "--pool",
        help="With --group: those with too few labels follow one rule, promised for their mixture.",
    ),
]


def check_by_group(group: str | None, options: bool, others: tuple[object, ...]) -> None:
    """Refuse options that mean nothing without --group, or that do not go with it."""
    if group is None and options:
        raise InputError("--together and --pool are for groups; name their column with --group")
    if group is not None and any(one is not None for one in others):
        raise InputError("--group goes with neither --kind nor --time nor --report; leave them out")


def calibrate_by_group(
    tables: list[str],
    request: "GroupRequest",
    columns: tuple[str, str, str],
    delimiter: str | None,
    output: Path | None,
    engine: str,
    master: str | None,
) -> None:
    """Certify thresholds for each group that a column names."""
    from pac_wrap.method.provenance import now
    from pac_wrap.tables.find import found_files
    from pac_wrap.tables.groups import calibrate_groups_table
    from pac_wrap.tables.table import open_found
    from pac_wrap.tables.text_format import check_delimiter

    keep_apart(tables, output)
    score, label, group = columns
    separator = check_delimiter(delimiter)
    with progress_bar("reading") as progress, found_files(tables) as found:
        if engine == "duckdb":
            with open_found(
                found, [score, group], label, passes=True, delimiter=separator, progress=progress
            ) as table:
                certificate = calibrate_groups_table(table, request, columns, request.request.label_text)
        else:
            certificate = on_cluster(engine, found.reader, "calibrate_groups_files")(
                found.files,
                found.reader,
                request,
                score=score,
                label=label,
                group=group,
                delimiter=separator,
                master=master,
            )
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    if output is not None:
        certificate.save(output)
    typer.echo(str(certificate))
    if certificate.empty:
        raise typer.Exit(NOT_CERTIFIED)


def print_rules(
    certificate: "GroupCertificate", score: str, group: str, dialect: "Dialect", join_table: str | None
) -> None:
    """Print the rules of groups as one expression, or as a table to be joined."""
    from pac_wrap.tables.group_sql import group_verdict_sql, join_sql

    if join_table is None:
        typer.echo(group_verdict_sql(certificate, score, group, dialect))
        return
    for statement in join_sql(certificate, score, group, join_table, dialect):
        typer.echo(statement)


def calibrate_by_kind(
    tables: list[str],
    asked: "Guarantee",
    overlap: str,
    columns: tuple[str, str, str],
    anomaly_label: str | None,
    delimiter: str | None,
    output: Path | None,
    report: Path | None,
) -> None:
    """Certify thresholds whose ceilings hold for every kind, as a column names them."""
    from pac_wrap.base.files import whole_file, write_text
    from pac_wrap.method.provenance import now
    from pac_wrap.method.request import as_strategy
    from pac_wrap.report.kinds import kinds_markdown
    from pac_wrap.tables.kinds import calibrate_kinds_table
    from pac_wrap.tables.table import open_table
    from pac_wrap.tables.text_format import check_delimiter

    keep_apart(tables, output, report)
    score, label, kind = columns
    with (
        progress_bar("reading") as progress,
        open_table(
            tables, [score, kind], label, passes=True, delimiter=check_delimiter(delimiter), progress=progress
        ) as table,
    ):
        strategy = as_strategy(overlap.replace("-", "_"))
        certificate = calibrate_kinds_table(table, asked, strategy, columns, anomaly_label)
    noted = certificate.binding.with_provenance(
        score=score, tables=tuple(tables), engine="duckdb", date=now()
    )
    certificate = replace(certificate, binding=noted)
    texts = {output: certificate.to_json(), report: kinds_markdown(certificate)}
    with ExitStack() as files:  # all of them, or none
        for path, text in texts.items():
            if path is not None:
                write_text(files.enter_context(whole_file(path)), text)
    typer.echo(str(certificate))
    if certificate.empty:
        raise typer.Exit(NOT_CERTIFIED)
