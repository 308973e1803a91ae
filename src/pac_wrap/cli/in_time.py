"""pac-wrap calibrate and verify --time: certificates of scores in the order of time, by series."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pac_wrap.cli.certificates import end_with, write_certified
from pac_wrap.cli.options import keep_apart
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.certificates.verify import Verification
    from pac_wrap.series.several import Several
    from pac_wrap.series.splits import SeriesSplit

# the label of anomalies, those to be left out, and the delimiter
Reading = tuple[str | None, list[str] | None, str | None]
Time = Annotated[
    str | None,
    typer.Option(
        "--time", help="A column of times: rows are ordered by it, and how far they depend is judged."
    ),
]
Series = Annotated[
    str | None, typer.Option("--series", help="With --time: a column that names the series of each row.")
]
Every = Annotated[
    int | None, typer.Option("--every", min=1, help="With --time: take one in so many steps of a series.")
]
HoldOut = Annotated[
    float | None,
    typer.Option(
        "--hold-out",
        help="With --series: the share of whole series that do not calibrate, and show how the rule does.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="With --hold-out: fixes which series are drawn. With --weight: fixes which points are, instead"
        " of a seed from the system; it must not have been tried before.",
    ),
]


def check_in_time(
    time: str | None,
    series: str | None,
    every: int | None,
    hold_out: float | None,
    seed: int | None,
    *,
    kind: str | None,
    engine: str = "duckdb",
) -> None:
    """Refuse options that mean nothing without another one, or that do not go with --time."""
    if time is not None and (kind is not None or engine != "duckdb"):
        raise InputError("--time goes with neither another --engine nor --kind; leave them out")
    for option, value, needed, other in (
        ("--series", series, "--time", time),
        ("--every", every, "--time", time),
        ("--hold-out", hold_out, "--series", series),
        ("--seed", seed, "--hold-out", hold_out),
    ):
        if value is not None and other is None:
            raise InputError(f"{option} goes with {needed}; add that, or leave {option} out")


def calibrate_in_time(
    tables: list[str],
    request: "Request",
    columns: tuple[str, str, str, str | None],
    *,
    delimiter: str | None,
    output: Path | None,
    report: Path | None,
    every: int | None,
    hold_out: float | None,
    seed: int | None,
    shares: tuple[float, float] | None,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds from rows in the order of time, and say how far they depend on each other."""
    import numpy as np

    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.report.subject import Origin
    from pac_wrap.report.words.in_time import lines_of_several
    from pac_wrap.series.points import calibrate_points

    score, label, time, _ = columns
    keep_apart(tables, output, report)
    reading = (request.label_text, leave_out, delimiter)
    several, split = _taken(tables, columns, reading, every or 1, hold_out, seed)
    certificate = calibrate_points(several.points, request, split=split)
    classes = _classes(several, split)
    used = np.concatenate(classes)
    certificate = certificate.with_provenance(
        score=score,
        tables=tuple(tables),
        engine="duckdb",
        lowest=float(used.min()),
        highest=float(used.max()),
        date=now(),
    )
    lines = tuple(lines_of_several(several, certificate, time, split))
    origin = Origin(tuple(tables), score, label)
    write_certified(certificate, classes, origin, output, report, shares, lines, quiet=quiet)
    end_with(certificate, form, lines)


def verify_in_time(
    certificate: object,
    tables: list[str],
    columns: tuple[str, str, str, str | None],
    reading: Reading,
    hold_out: float | None,
    seed: int | None,
) -> "Verification":
    """Make a certificate again from rows in the order of time; it says itself how many steps were taken."""
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.certificates.verify import verify

    sampling = certificate.sampling if isinstance(certificate, Certificate) else None
    if not isinstance(certificate, Certificate) or sampling is None or sampling.length != 1:
        raise InputError("--time is for certificates that were made with it; leave it out")
    if (hold_out is not None) != (sampling.split == "series"):
        raise InputError(
            "--hold-out is for certificates that were made with it; leave it out"
            if hold_out is not None
            else "some series were held out of the calibration; give --hold-out and --seed as they were then"
        )
    several, split = _taken(tables, columns, reading, sampling.every, hold_out, seed)
    return verify(certificate, *_classes(several, split))


def _taken(
    tables: list[str],
    columns: tuple[str, str, str, str | None],
    reading: Reading,
    every: int,
    hold_out: float | None,
    seed: int | None,
) -> "tuple[Several, SeriesSplit | None]":
    """Return the steps of all series, and which of them calibrate if some are held out."""
    import numpy as np

    from pac_wrap.series.several import several_series
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.in_time import rows_in_time
    from pac_wrap.tables.table import open_table

    score, label, time, series = columns
    anomaly_label, leave_out, delimiter = reading
    wanted = [score, time, *([] if series is None else [series])]
    options: Any = {"delimiter": check_delimiter(delimiter), "leave_out": leave_out or ()}
    with (
        progress_bar("reading") as progress,
        open_table(tables, wanted, label, progress=progress, **options) as table,
    ):
        rows = rows_in_time(table, score, label, anomaly_label, time, series)
    several = several_series(rows.names, rows.sizes, rows.scores, rows.anomalous, every=every)
    if hold_out is None:
        return several, None
    return several, several.divided(np.random.default_rng(seed or 0), calibration=1.0 - hold_out)


def _classes(several: "Several", split: "SeriesSplit | None") -> "list[NDArray[Any]]":
    """Return the scores of either class that calibrate."""
    among = None if split is None else split.calibration
    return [several.points.scores[several.points.of_class(one, among)] for one in (False, True)]
