"""Groups on the command line: their certificates, and their rules as SQL."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pac_wrap.cli.options import NOT_CERTIFIED, keep_apart
from pac_wrap.cli.process import progress_bar

if TYPE_CHECKING:
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.tables.sql import Dialect


def calibrate_by_group(
    tables: list[str],
    request: "GroupRequest",
    columns: tuple[str, str, str],
    delimiter: str | None,
    output: Path | None,
) -> None:
    """Certify thresholds for each group that a column names."""
    from pac_wrap.method.provenance import now
    from pac_wrap.tables.groups import calibrate_groups_table
    from pac_wrap.tables.table import open_table
    from pac_wrap.tables.text_format import check_delimiter

    keep_apart(tables, output)
    score, label, group = columns
    separator = check_delimiter(delimiter)
    with (
        progress_bar("reading") as progress,
        open_table(
            tables, [score, group], label, passes=True, delimiter=separator, progress=progress
        ) as table,
    ):
        certificate = calibrate_groups_table(table, request, columns, request.request.label_text)
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
