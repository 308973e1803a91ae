"""pac-wrap decide and pac-wrap sql: a certificate at work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pac_wrap.cli.ending import standard_output
from pac_wrap.cli.options import CertificateFile, Score, Tables, keep_apart
from pac_wrap.cli.run import progress_bar

if TYPE_CHECKING:
    from pac_wrap.certificate import Certificate


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

    CSV or JSON lines on standard input, without -o, are decided as they come, in constant memory.

    In JSON made from such a CSV, the score is a number and every other cell a text. JSON has no infinities:
    they are the texts "Infinity" and "-Infinity", and are read as such.

    Example: [bold]pac-wrap decide certificate.json new.csv --score score -o verdicts.parquet[/bold]
    """
    from pac_wrap.certificate import Certificate
    from pac_wrap.lines import decide_lines, is_streamed, read_start
    from pac_wrap.sources import standard_input

    loaded = Certificate.load(certificate)
    keep_apart([*tables, certificate], output)
    start = b""
    if tables == ["-"] and output is None:
        source = standard_input()
        start = read_start(source)
        if is_streamed(start):
            decide_lines(loaded.rule, source, start, standard_output(), score, form)
            return
    _decide_table(loaded, tables, score, output, form, start)


def _decide_table(
    certificate: "Certificate", tables: list[str], score: str, output: Path | None, form: str, start: bytes
) -> None:
    """Write the whole table with its verdicts, or nothing at all."""
    from pac_wrap.engines.duckdb import refuse_undecidable
    from pac_wrap.files import scratch_file, whole_file
    from pac_wrap.sql import prediction_set_sql, verdict_sql
    from pac_wrap.tables import open_table, output_options

    rule = certificate.rule
    added = {"verdict": verdict_sql(rule, score), "prediction_set": prediction_set_sql(rule, score)}
    options = output_options(f".{form}" if output is None else output.name)
    verbatim = options.startswith("FORMAT csv")
    with (
        progress_bar("deciding") as progress,
        open_table(tables, [score], whole=True, verbatim=verbatim, progress=progress, start=start) as table,
        scratch_file() if output is None else whole_file(output) as target,
    ):
        table.check_scores(score)
        refuse_undecidable(table, certificate, score)
        table.copy(score, added, str(target), options)
        if output is None:
            stdout = standard_output()
            with target.open("rb") as finished:
                while chunk := finished.read(1 << 20):
                    stdout.write(chunk)
            stdout.flush()


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
