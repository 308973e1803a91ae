"""The server machines: an LSTM encoder-decoder per machine, windows of all machines as points."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from pac_wrap import calibrate
from pac_wrap.series import Points, dependence, joined, window_points
from pac_wrap.tails import Rate, min_samples
from pac_wrap_paper.data import load
from pac_wrap_paper.data.series import missing_machines, smd_machines
from pac_wrap_paper.data.store import results_of
from pac_wrap_paper.studies import series_runs
from pac_wrap_paper.studies.charts import KINDS, ChartLine, LineChart
from pac_wrap_paper.studies.printed import SMD
from pac_wrap_paper.studies.scored import Training
from pac_wrap_paper.studies.series_runs import ASKED, LEVEL, SeriesRun
from pac_wrap_paper.studies.study import Floats, Indices, Labels, Progress, Row, Study, StudyTable, silent

WINDOWS: Final = ((15, 60), (15, 120), (15, 240), (30, 60), (30, 120), (30, 240))
SPACINGS: Final = (15, 30, 60, 120, 240)
BLOCK: Final = 1440  # a day of minutes
GAP: Final = 240
SHARE: Final = 0.2
HALF: Final = 0.5  # in the study of spacing, so that no spacing leaves too few anomalies to calibrate
LAGS: Final = 240


def run(seed: int = 0, trials: int | None = None, quick: bool = False, progress: Progress = silent) -> Study:
    """Return error rates for six kinds of windows over `trials` seeds, with random and block splits."""
    # torch is needed to train, and not to read this module
    from pac_wrap_paper.detectors import LSTMEncoderDecoder

    names, usual = (smd_machines()[:3], 1) if quick else (smd_machines(), 3)
    seeds = usual if trials is None else trials
    few: dict[str, Any] = {"epochs": 1, "windows_per_epoch": 640} if quick else {}
    trainings = [
        Training("smd", name, LSTMEncoderDecoder(random_state=seed + number, **few), normalise=True)
        for number in range(seeds)
        for name in names
    ]
    scores = results_of(trainings, progress, "training")
    labels = [data.y[data.n_train :] for data in (load("smd", name) for name in names)]
    runs: list[SeriesRun] = []
    for number in range(seeds):
        mine = scores[number * len(names) : (number + 1) * len(names)]
        for length, every in WINDOWS:
            runs += _runs(pooled(mine, labels, length, every), seed + number)
    first = scores[: len(names)]
    steps = [window_points(one, truth) for one, truth in zip(first, labels, strict=True)]
    spacings = [_spacing(first, labels, every, seed, 50 if quick else 500) for every in SPACINGS]
    return Study(
        question="smd",
        title="Server machines",
        setting=_setting(len(names), seeds, quick),
        tables=series_runs.tables_of(
            runs,
            SMD,
            "windows",
            StudyTable("spacing", "Windows of 15 steps: dependence against spacing", tuple(spacings)),
        ),
        findings=(*_findings(runs, spacings), _concentration(steps)),
        charts=(
            series_runs.rate_chart(
                [one for one in runs if one.split == "random" and one.share == SHARE],
                "Server machines: error rates of the detector at its best F1, and wrapped with one threshold",
            ),
            _autocorrelation(steps),
            _violations(spacings),
        ),
    )


def pooled(scores: list[Floats], labels: list[Labels], length: int, every: int) -> Points:
    """Return the windows of all machines as one set of points."""
    return joined(
        [
            window_points(one, truth, length=length, every=every)
            for one, truth in zip(scores, labels, strict=True)
        ]
    )


def _runs(points: Points, seed: int) -> Iterator[SeriesRun]:
    title = f"{points.length}-{points.every}"
    for blocks in (None, (BLOCK, GAP)):
        split = series_runs.divide(points, seed, blocks=blocks, share=SHARE)
        yield series_runs.wrap_series(title, points, split, seed)
    needed, there = min_samples(LEVEL, LEVEL), int(points.labels.sum())
    if round(SHARE * there) < needed < there:
        share = next(p for p in range(1, 100) if round(p / 100 * there) >= needed) / 100
        split = series_runs.divide(points, seed, share=share)
        yield series_runs.wrap_series(title, points, split, seed, share)


def _spacing(scores: list[Floats], labels: list[Labels], every: int, seed: int, trials: int) -> Row:
    """Return the effective number of windows at one spacing, and how often divisions break a ceiling."""
    points = pooled(scores, labels, 15, every)
    normal, anomalous = (points.scores[points.of_class(kind)] for kind in (False, True))
    thresholds = calibrate(normal, anomalous, ASKED).thresholds
    row: Row = {"every": every, "windows": points.scores.size}
    for name, kind in (("normal", False), ("anomalous", True)):
        found = points.dependence(thresholds, kind)
        row |= {name: points.of_class(kind).size, f"effective, {name}": None, f"spacing, {name}": None}
        if found is not None:
            row |= {f"effective, {name}": found.effective, f"spacing, {name}": found.lag * every}
    random = np.random.default_rng([seed, 11, every])
    broken = points.violation(ASKED, random, trials=trials, calibration=HALF, block=BLOCK, gap=GAP)
    return (
        row
        | {"FPR exceeded": broken.fpr, "FNR exceeded": broken.fnr}
        | series_runs.if_independent(points, HALF)
    )


def _setting(count: int, seeds: int, quick: bool) -> tuple[str, ...]:
    absent = ", ".join(name.removeprefix("machine-") for name in missing_machines())
    return (
        f"An LSTM encoder-decoder is trained on each of {count} machines; its reconstruction error is made"
        " comparable across machines by the mean and the spread of its logarithm on the training part. A"
        " point is a window: the first 15 or 30 of every 60, 120 or 240 steps, with the largest score of its"
        f" steps, anomalous if any step is. {100 * SHARE:.0f} % of the windows calibrate. Ceilings and deltas"
        f" {LEVEL}, Algorithm 1 in steps of 0.1, as printed (*eps*) and where it is a theorem (*eps,"
        f" proved*), and overlap raise up to 0.9 (*eps, raise*); {seeds} seeds. Cells give the mean and the"
        " range over the seeds.",
        f"The copy of the data has the series of {len(smd_machines())} of 28 machines; the missing ones are"
        f" {absent}. The paper had all of them, so its sizes differ.",
        f"*Blocks*: {BLOCK:,} steps (a day), and a gap of {GAP} steps between calibration and test. Spacing"
        f" is studied with {100 * HALF:.0f} % of the windows calibrating, so that none is left with too few"
        " anomalies." + (" Quick run: few machines, hardly trained." if quick else ""),
    )


def _findings(runs: list[SeriesRun], spacings: list[Row]) -> Iterator[str]:
    yield (
        "Nothing is guaranteed unconditionally: the promise is proved for independent points, and on series"
        " it is conditional on mixing. The column *effective* estimates from the errors at the thresholds how"
        " many independent points carry as much information. The estimate is too high where few errors are"
        " allowed, because few errors show little; it treats machines as drawn at random, and is pessimistic"
        " for the same machines."
    )
    yield from series_runs.split_findings([one for one in runs if one.share == SHARE], SMD)
    larger = list(dict.fromkeys(one.title for one in runs if one.share != SHARE))
    if larger:
        yield (
            f"With {100 * SHARE:.0f} % calibrating there are too few anomalous windows"
            f" ({min_samples(LEVEL, LEVEL)} are needed) in: {', '.join(larger)}. Nothing is cleared then, and"
            " no FNR is promised; a second row has the smallest share, in whole percent, that suffices."
        )
    spaced = [
        (row["every"], row["normal"], row["effective, normal"], row["FPR exceeded"]) for row in spacings
    ]
    ends = [
        f"every {every} steps {count:,} normal windows carry the information of about {size:,.0f}, and"
        f" {rate.value:.2f} of divisions in blocks exceed the FPR ceiling"
        for every, count, size, rate in (spaced[0], spaced[-1])
        if isinstance(count, int) and isinstance(size, float) and isinstance(rate, Rate)
    ]
    if ends:
        yield (
            f"Windows of 15 steps: {'; '.join(ends)}. Spacing brings n nearer to the effective number of"
            " windows; it adds no information."
        )
    rates = [one.wrapped.two.fpr.value for one in runs if one.split == "random"]
    yield (
        f"FPR_tt lies between {min(rates):.3f} and {max(rates):.3f} with a random split; the printed 0.000 in"
        " four rows would be explained by scores that were squashed and saturate."
    )


def _autocorrelation(series: list[Points]) -> LineChart:
    """Return the autocorrelation of errors against distance: one threshold for all, or each its own."""
    together, lags = joined(series), range(0, LAGS + 1, 10)
    found = {kind: _correlations(together, kind == "anomalous", lags) for kind in KINDS}
    curves = [ChartLine(kind, kind, values, values, values) for kind, values in found.items()]
    alone = zip(*(_correlations(points, False, lags) for points in series), strict=True)
    means = tuple(float(np.mean(lag)) for lag in alone)
    curves.append(ChartLine("normal, own thresholds", "normal", means, means, means))
    return LineChart(
        "autocorrelation",
        "How long errors of steps depend on each other",
        "distance in steps",
        "autocorrelation of errors",
        tuple(map(float, lags)),
        tuple(curves),
        0.0,
        "independent",
    )


def _errors(points: Points, anomalous: bool) -> tuple[Floats, Indices]:
    """Return which points of one class err if a tenth of them does, and where they lie."""
    index = points.of_class(anomalous)
    tenth = np.quantile(points.scores[index], LEVEL if anomalous else 1.0 - LEVEL)
    errors = points.scores[index] < tenth if anomalous else points.scores[index] > tenth
    return errors.astype(np.float64), points.positions[index] // points.every


def _correlations(points: Points, anomalous: bool, lags: range) -> tuple[float, ...]:
    found = dependence(*_errors(points, anomalous), max_lag=lags[-1]).autocorrelation
    return tuple(float(found[lag]) for lag in lags)


def _concentration(series: list[Points]) -> str:
    """Return on how few machines most errors of normal steps lie, with one threshold for all."""
    level = np.quantile(np.concatenate([one.scores[one.of_class(False)] for one in series]), 1.0 - LEVEL)
    counts = sorted((int((one.scores[one.of_class(False)] > level).sum()) for one in series), reverse=True)
    few = next(k for k in range(1, len(counts) + 1) if 10 * sum(counts[:k]) >= 9 * sum(counts))
    return (
        f"With one threshold for all machines, nine tenths of the errors on normal steps lie on {few} of"
        f" {len(counts)} machines. So errors stay together at any distance, and no spacing helps; a"
        " threshold for each machine would help, if each had enough labels."
    )


def _violations(spacings: list[Row]) -> LineChart:
    curves = []
    for label, kind in zip(("FPR", "FNR"), KINDS, strict=True):
        rates = [rate for row in spacings if isinstance(rate := row[f"{label} exceeded"], Rate)]
        curves.append(ChartLine.of(label, kind, rates))
        plain = tuple(float(str(row[f"{label}, if independent"])) for row in spacings)
        curves.append(ChartLine(f"{label}, if independent", kind, plain, plain, plain))
    return LineChart(
        "violations",
        "Share of divisions in blocks whose test rate exceeds its ceiling",
        "spacing of windows in steps",
        "share of divisions",
        tuple(map(float, SPACINGS)),
        tuple(curves),
        LEVEL,
        f"delta = {LEVEL}",
    )
