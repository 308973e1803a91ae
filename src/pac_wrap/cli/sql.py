"""pac-wrap sql: the rule of a certificate as SQL, and the statements that make one where the data live."""

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from pac_wrap.cli.certificates import deciding
from pac_wrap.cli.certify import print_rules
from pac_wrap.cli.options import (
    NOT_CERTIFIED,
    AnomalyLabel,
    Confidence,
    DeltaFnr,
    DeltaFpr,
    Group,
    OverlapWord,
    Score,
    guarantee_of,
    keep_apart,
    strategy_of,
)
from pac_wrap.errors import InputError

# answers are a few hundred rows
_MOST: Final = 1 << 24


def sql(
    certificate: Annotated[
        Path | None, typer.Argument(help="A certificate, whose rule is printed; none with --calibrate.")
    ] = None,
    score: Score = "score",
    group: Group = None,
    join_table: Annotated[
        str | None,
        typer.Option(help="For a certificate of groups: print a table of rules of this name, and its join."),
    ] = None,
    dialect: Annotated[
        Literal["duckdb", "postgres", "spark", "ansi"], typer.Option(help="SQL dialect.")
    ] = "duckdb",
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Print the next statement that calibrates a table.")
    ] = False,
    table: Annotated[
        str | None, typer.Option(help="For --calibrate: the table or view, such as schema.table.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="For --calibrate, as all options below: the column of labels, 0/1 or true/false; by default"
            " label."
        ),
    ] = None,
    anomaly_label: AnomalyLabel = None,
    max_fpr: Annotated[
        str | None, typer.Option(help="Ceiling of the false positive rate, or none; by default 0.05.")
    ] = None,
    max_fnr: Annotated[
        str | None, typer.Option(help="Ceiling of the false negative rate, or none; by default 0.05.")
    ] = None,
    delta_fpr: DeltaFpr = None,
    delta_fnr: DeltaFnr = None,
    confidence: Confidence = None,
    overlap: OverlapWord = None,
    answers: Annotated[
        Path | None, typer.Option(help="The answers so far, CSV with a header for each; - is standard input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the certificate in the end.")
    ] = None,
) -> None:
    """Print the rule as an exact SQL expression that abstains on NaN and NULL.

    With --calibrate: print the next of three or four statements that calibrate a table in its database.

    Append each answer to a file and run the command again with --answers, until the certificate is there.

    What is printed is always SQL: the end is a comment. Only counts and the scores at a few ranks come back.

    Example: [bold]pac-wrap sql certificate.json --score score --dialect postgres[/bold]
    """
    if not calibrate:
        for_calibrate = {
            "--table": table,
            "--label": label,
            "--anomaly-label": anomaly_label,
            "--max-fpr": max_fpr,
            "--max-fnr": max_fnr,
            "--delta-fpr": delta_fpr,
            "--delta-fnr": delta_fnr,
            "--confidence": confidence,
            "--overlap": overlap,
            "--answers": answers,
            "-o": output,
        }
        if given := [option for option, value in for_calibrate.items() if value is not None]:
            raise InputError(f"{given[0]} is for --calibrate; give that as well, or leave {given[0]} out")
        if certificate is None:
            raise InputError(
                "name a certificate, whose rule is printed, or make one with --calibrate and --table"
            )
        _print_rule(certificate, score, dialect, group, join_table)
        return
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.tables.database import UnansweredError, from_answers
    from pac_wrap.tables.sql.statements import Source

    if certificate is not None or table is None:
        raise InputError("--calibrate makes a certificate: name no other, and the table with --table")
    if group is not None or join_table is not None:
        raise InputError(
            "--calibrate makes a certificate without groups; leave --group and --join-table out, or export"
            " scores, labels and groups for pac-wrap calibrate --group"
        )
    keep_apart([] if answers is None else [answers], output)
    asked = guarantee_of(max_fpr, max_fnr, delta_fpr, delta_fnr, confidence)
    request = Request.of(asked, strategy_of(overlap, asked), 1 if anomaly_label is None else anomaly_label)
    try:
        found = from_answers(_read(answers), request, Source(table, score, label or "label", dialect))
    except UnansweredError as next_one:
        file = "a file" if answers is None else str(answers)
        _comment(f"pac-wrap: statement {next_one.number}, {next_one.statement.purpose}")
        _comment(f"append its answer, as CSV with a header, to {file}, and run the same command again")
        typer.echo(str(next_one.statement))
        return
    found = found.with_provenance(date=now())
    if output is not None:
        found.save(output)
    _comment("pac-wrap: every statement is answered" + ("; save the certificate with -o" * (output is None)))
    for line in str(found.bare).splitlines():
        _comment(line)
    if found.empty:
        raise typer.Exit(NOT_CERTIFIED)


def _print_rule(
    certificate: Path,
    score: str,
    dialect: Literal["duckdb", "postgres", "spark", "ansi"],
    group: str | None,
    join_table: str | None,
) -> None:
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.tables.sql.expressions import verdict_sql

    loaded = deciding(certificate, group)
    if isinstance(loaded, GroupCertificate):
        print_rules(loaded, score, group or "", dialect, join_table)
        return
    if join_table is not None:
        raise InputError("--join-table is for certificates of groups; leave it out")
    typer.echo(verdict_sql(loaded.rule, score, dialect))


def _comment(line: str) -> None:
    """Print a line that databases skip."""
    from pac_wrap.base.text import message

    typer.echo(f"-- {message(line)}")


def _read(answers: Path | None) -> str:
    """Return the answers so far; a file that is not there yet has none."""
    from pac_wrap.tables.files.text_format import standard_input

    if answers is None:
        return ""
    if str(answers) == "-":
        content = standard_input().read(_MOST + 1)
    elif answers.exists():
        with answers.open("rb") as file:
            content = file.read(_MOST + 1)
    else:
        return ""
    if len(content) > _MOST:
        raise InputError(f"{answers} is larger than any answers, 16 MB; name the file that the answers go to")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{answers} is not UTF-8; let the database write UTF-8") from error
