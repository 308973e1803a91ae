"""Certificates by kind and by group on the command line, and the rules of groups as SQL."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pac_wrap.cli.certificates import end_with, tell_written
from pac_wrap.cli.options import keep_apart, on_cluster
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.tables.sql.expressions import Dialect

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
        raise InputError("--group goes with neither --kind nor --time nor --prevalence; leave it out")


def calibrate_by_group(
    tables: list[str],
    request: "GroupRequest",
    columns: tuple[str, str, str],
    delimiter: str | None,
    files: tuple[Path | None, Path | None],
    engine: str,
    master: str | None,
    *,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds for each group that a column names; `files` are those of certificate and report."""
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.report.pages.groups import page_of_groups, worst
    from pac_wrap.report.pages.parts import render_parts
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.groups import GroupedScores
    from pac_wrap.tables.table import open_found

    output, report = files
    keep_apart(tables, output, report)
    score, label, group = columns
    drawn = None
    separator = check_delimiter(delimiter)
    with progress_bar("reading") as progress, found_files(tables) as found:
        if engine == "duckdb":
            with open_found(
                found,
                [score, group],
                label,
                passes=True,
                delimiter=separator,
                leave_out=leave_out or (),
                progress=progress,
            ) as table:
                scores = GroupedScores(table, columns, request.request.label_text)
                certificate = scores.certify(request)
                if report is not None:
                    drawn = scores.classes(worst(certificate))
        else:
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.calibrate_groups(request, score=score, label=label, group=group)
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        texts[report] = render_parts(page_of_groups(certificate, drawn), report)
    _write(texts)
    if not quiet and texts:
        normal, anomalous = map(int, certificate.columns.n.sum(axis=1))
        tell_written(normal, anomalous, texts, f", {len(certificate.groups):,} groups")
    end_with(certificate, form)


def print_rules(
    certificate: "GroupCertificate", score: str, group: str, dialect: "Dialect", join_table: str | None
) -> None:
    """Print the rules of groups as one expression, or as a table to be joined."""
    from pac_wrap.tables.sql.group_rules import group_verdict_sql, join_sql

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
    files: tuple[Path | None, Path | None],
    engine: str,
    master: str | None,
    *,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds whose ceilings hold for every kind; `files` are those of certificate and report."""
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.kinds.part import points_of
    from pac_wrap.method.request import as_strategy
    from pac_wrap.report.pages.kinds import page_of_kinds
    from pac_wrap.report.pages.parts import render_parts
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.kinds import KindsAsked, KindScores, calibrate_kinds_table
    from pac_wrap.tables.table import open_found

    output, report = files
    keep_apart(tables, output, report)
    score, label, kind = columns
    scores: Any = None, None
    separator, strategy = check_delimiter(delimiter), as_strategy(overlap)
    with progress_bar("reading") as progress, found_files(tables) as found, ExitStack() as opened:
        if engine != "duckdb":
            wanted = KindsAsked(asked, strategy, 1 if anomaly_label is None else anomaly_label, kind)
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.calibrate_kinds(wanted, score=score, label=label)
        if engine == "duckdb" or report is not None:
            table = opened.enter_context(
                open_found(
                    found,
                    [score, kind],
                    label,
                    passes=True,
                    delimiter=separator,
                    leave_out=leave_out or (),
                    progress=progress,
                )
            )
        if engine == "duckdb":
            certificate = calibrate_kinds_table(table, asked, strategy, columns, anomaly_label)
        if report is not None:
            scores = KindScores(table, columns, anomaly_label).by_kind()
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        texts[report] = render_parts(page_of_kinds(certificate, *scores), report)
    _write(texts)
    if not quiet:
        normal, anomalous = map(points_of, (certificate.normal, certificate.anomalous))
        tell_written(normal, anomalous, texts)
    end_with(certificate, form)


def _write(texts: dict[Path, str]) -> None:
    """Write all of some files, or none."""
    from pac_wrap.base.files import whole_file, write_text

    with ExitStack() as files:
        for path, text in texts.items():
            write_text(files.enter_context(whole_file(path)), text)
