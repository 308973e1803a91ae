"""pac-wrap decide and pac-wrap sql: a certificate at work."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pac_wrap.cli.options import CertificateFile, Score, Tables, keep_apart
from pac_wrap.cli.run import progress_bar


def decide(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write: .parquet, .csv, .csv.gz or .jsonl.")
    ] = None,
    form: Annotated[
        Literal["jsonl", "csv"], typer.Option("--format", help="Format on standard output, without -o.")
    ] = "jsonl",
) -> None:
    """Add a verdict (1 anomaly, 0 normal, -1 abstains) and a prediction set to every row of a table.

    Example: [bold]pac-wrap decide certificate.json new.csv --score score -o verdicts.parquet[/bold]
    """
    from pac_wrap.certificate import Certificate
    from pac_wrap.files import scratch_file, whole_file
    from pac_wrap.sql import prediction_set_sql, verdict_sql
    from pac_wrap.tables import open_table, output_options

    rule = Certificate.load(certificate).rule
    added = {"verdict": verdict_sql(rule, score), "prediction_set": prediction_set_sql(rule, score)}
    keep_apart(tables, output)
    options = output_options(f".{form}" if output is None else output.name)
    verbatim = options.startswith("FORMAT csv")
    with (
        progress_bar("deciding") as progress,
        open_table(tables, [score], whole=True, verbatim=verbatim, progress=progress) as table,
        scratch_file() if output is None else whole_file(output) as target,
    ):
        table.check_scores(score)
        table.copy(added, str(target), options)
        if output is None:
            with target.open("rb") as finished:
                while chunk := finished.read(1 << 20):
                    sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()


def sql(
    certificate: CertificateFile,
    score: Score = "score",
    dialect: Annotated[
        Literal["duckdb", "postgres", "spark"], typer.Option(help="Whose SQL it is to be.")
    ] = "duckdb",
) -> None:
    """Print the rule as an SQL expression: exact, with NaN and NULL abstained.

    Example: [bold]pac-wrap sql certificate.json --score score --dialect postgres[/bold]
    """
    from pac_wrap.certificate import Certificate
    from pac_wrap.sql import verdict_sql

    typer.echo(verdict_sql(Certificate.load(certificate).rule, score, dialect))
