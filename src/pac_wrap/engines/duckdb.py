"""DuckDB, embedded: tables in files, larger than memory if need be."""

from collections.abc import Sequence
from functools import partial
from os import PathLike, fspath
from typing import Unpack

import numpy as np

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import calibrate_passes
from pac_wrap.csvform import check_delimiter
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores
from pac_wrap.metrics import Metrics, Tally, metrics_of, tally
from pac_wrap.precision import ScoreType
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.sql import quote_number
from pac_wrap.staging import Staged
from pac_wrap.tables import Table, open_table


def calibrate(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    guarantee: Guarantee | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of labelled scores in files or patterns, in bounded memory.

    Labels are compared as text: 0/1 or true/false, or `anomaly_label` and one other value. The delimiter of a
    CSV is found from its header, unless it is given.
    """
    listed = [files] if isinstance(files, (str, PathLike)) else files
    if not listed:
        raise InputError("files are empty; name at least one file or pattern")
    with open_table(
        [fspath(file) for file in listed], [score], label, passes=True, delimiter=check_delimiter(delimiter)
    ) as table:
        return calibrate_table(
            table,
            guarantee,
            score=score,
            label=label,
            anomaly_label=anomaly_label,
            abstain=abstain,
            strategy=strategy,
            **options,
        )


def calibrate_table(
    table: Table,
    guarantee: Guarantee | None = None,
    *,
    score: str,
    label: str,
    anomaly_label: str | None,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    score_type: ScoreType | None = None,
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of two columns of an open table; wider scores are rounded to `score_type`."""
    staged = Staged(table, score, label, anomaly_label, score_type)
    certificate = calibrate_passes(staged, guarantee, abstain=abstain, strategy=strategy, **options)
    if anomaly_label is not None and not certificate.anomalous.n:
        staged.check_labels()
    return certificate


def evaluate_table(
    table: Table, certificate: Certificate, *, score: str, label: str, anomaly_label: str | None
) -> Metrics:
    """Return how a certificate does on two columns of an open table."""
    staged = Staged(table, score, label, anomaly_label)
    refuse_undecidable(table, certificate, score)
    counts: Tally = staged(partial(_tally, certificate))
    if anomaly_label is not None and not counts[1].any():
        staged.check_labels()
    return metrics_of(counts)


def refuse_undecidable(table: Table, certificate: Certificate, score: str) -> None:
    """Refuse scores that have lost the digits on which their verdicts hang."""
    kind = table.score_type(score)
    if not (values := certificate.undecidable(kind)):
        return
    listed = ", ".join(map(quote_number, values))
    found = f"SELECT count(*) FROM source WHERE {table.score_sql(score)} IN ({listed})"
    if count := table.rows(found)[0][0]:
        raise InputError(
            f"{count:,} scores of column {score!r} cannot be decided: as {kind} they are"
            f" {' or '.join(map(repr, values))}, which stands for numbers on both sides of a threshold, and"
            f" the certificate is of {certificate.score_type} scores; give it such scores, or calibrate on"
            f" {kind} ones"
        )


def _tally(certificate: Certificate, normal: Scores, anomalous: Scores) -> Tally:
    anomalies = np.repeat([False, True], [normal.size, anomalous.size])
    return tally(certificate.verdicts(np.concatenate([normal, anomalous])), anomalies)
