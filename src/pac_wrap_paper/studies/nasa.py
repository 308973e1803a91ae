"""NASA telemetry: an LSTM forecaster per channel, every test step a point."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from pac_wrap.series import Points, window_points
from pac_wrap.tails import Rate, min_samples
from pac_wrap_paper.data import load
from pac_wrap_paper.data.series import nasa_channels
from pac_wrap_paper.data.store import results_of
from pac_wrap_paper.studies import series_runs
from pac_wrap_paper.studies.printed import NASA
from pac_wrap_paper.studies.scored import Training
from pac_wrap_paper.studies.series_runs import ASKED, LEVEL, SeriesRun
from pac_wrap_paper.studies.study import Cell, Progress, Row, Study, StudyTable, silent

BLOCK: Final = 50
GAP: Final = 10
SHARE: Final = 0.2
RATES: Final = ("FPR", "FNR")


def run(
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = silent,
    everything: bool = False,
) -> Study:
    """Return error rates per channel over `trials` seeds, with a random split and with a split in blocks."""
    # torch is needed to train, and not to read this module
    from pac_wrap_paper.detectors import LSTMForecaster

    names = usable_channels() if everything else tuple(NASA)
    names, usual = (("S-1",), 1) if quick else (names, 3)
    seeds = usual if trials is None else trials
    few: dict[str, Any] = {"epochs": 2, "windows_per_epoch": 500} if quick else {}
    trainings = [
        Training("nasa", name, LSTMForecaster(random_state=seed + number, **few))
        for name in names
        for number in range(seeds)
    ]
    scores = results_of(trainings, progress, "training")
    runs: list[SeriesRun] = []
    checks: list[Row] = []
    for place, training in enumerate(trainings):
        data, number = load("nasa", training.part), place % seeds
        points = window_points(scores[place], data.y[data.n_train :])
        for blocks in (None, (BLOCK, GAP)):
            split = series_runs.divide(points, seed + number, blocks=blocks, share=SHARE)
            runs.append(series_runs.wrap_series(training.part, points, split, seed + number))
        if number == 0:
            checks.append(_check(training.part, points, seed, 100 if quick else 1000))
    return Study(
        question="nasa",
        title="NASA telemetry",
        setting=_setting(seeds, quick),
        tables=series_runs.tables_of(
            runs,
            NASA,
            "points",
            StudyTable("check", "Share of many divisions whose test rate exceeds its ceiling", tuple(checks)),
        ),
        findings=tuple(_findings(runs, checks)),
        charts=(
            series_runs.rate_chart(
                [one for one in runs if one.split == "random"],
                "NASA channels: error rates of the detector at its best F1, and wrapped with one threshold",
            ),
        ),
    )


def usable_channels(share: float = SHARE, most: int | None = None) -> tuple[str, ...]:
    """Return the first channels of which this share of the anomalous steps is enough for the promise."""
    needed = min_samples(LEVEL, LEVEL)
    enough = (name for name in nasa_channels() if share * np.count_nonzero(load("nasa", name).y) >= needed)
    return tuple(islice(enough, most))


def _check(name: str, points: Points, seed: int, trials: int) -> Row:
    """Return how often a ceiling is exceeded on the rest of the series, over many divisions of it."""
    random = np.random.default_rng([seed, 10])
    mixed = points.violation(ASKED, random, trials=trials, calibration=SHARE)
    apart = points.violation(ASKED, random, trials=trials, calibration=SHARE, block=BLOCK, gap=GAP)
    return {
        "channel": name,
        "FPR, random": mixed.fpr,
        "FPR, blocks": apart.fpr,
        "FNR, random": mixed.fnr,
        "FNR, blocks": apart.fnr,
        **series_runs.if_independent(points, SHARE),
    }


def _setting(seeds: int, quick: bool) -> tuple[str, ...]:
    return (
        "An LSTM forecaster (Hundman et al. 2018: telemetry and commands in, absolute error smoothed) is"
        " trained on the training part of a channel. Every step of the test part is a point, except the"
        f" detector's warm-up; about {100 * SHARE:.0f} % of them calibrate. Ceilings and deltas {LEVEL},"
        " Algorithm 1 in steps of 0.1, as printed (*eps*) and where it is a theorem (*eps, proved*), and"
        f" overlap raise up to 0.9 (*eps, raise*); seeds for network and split: {seeds}. Cells give the mean"
        " and the range over the seeds.",
        f"*Random split*: the paper's. *Blocks*: time is cut into blocks of {BLOCK} steps, and test points"
        f" closer than {GAP} steps to a calibration point are left out. The detector looks back further than"
        " that, and a channel has one to three anomalies, so blocks still share some of both: no division of"
        " such a series makes its points independent. The effective number of points (*effective*) is the"
        " effective sample size of their errors at the thresholds, where there are errors; it is too large"
        " where few errors are allowed, because few errors show little. Where no level below 1 can be kept,"
        " every point is left undecided; such seeds of the printed algorithm are counted (no ceiling kept)"
        " and are not in the means of *th*. The mean of each *eps* is over the seeds in which it exists.",
        "The publishers scaled the telemetry by the range of its test part."
        + (" Quick run." if quick else ""),
    )


def _findings(runs: list[SeriesRun], checks: list[Row]) -> Iterator[str]:
    yield (
        "Nothing is guaranteed unconditionally: the promise is proved for independent points, and on a series"
        " it is conditional on mixing."
    )
    yield from series_runs.split_findings(
        runs,
        NASA,
        " An AUC below one half means that the labelled stretch is predicted better than the rest of the test"
        " part; no single threshold separates them then, and nothing was tuned on the test part to fix it.",
    )
    held = [
        _holds(row[f"{rate}, random"], row[f"{rate}, if independent"]) for row in checks for rate in RATES
    ]
    yield (
        "Over many divisions of one scored series (last table), a random split exceeds its ceilings as often"
        " as if the points were independent, or less often where scores tie: the exact probability lies"
        f" within or above {sum(held)} of {len(held)} intervals. This holds for every series (docs/theory.md,"
        " eq. (20)), so a random split says nothing about dependence."
    )
    seen = [between(checks, f"{rate}, {kind}") for rate in RATES for kind in ("blocks", "if independent")]
    yield (
        f"In blocks the FPR ceiling is exceeded in {seen[0]} of divisions, against {seen[1]} if points were"
        f" independent, and the FNR ceiling in {seen[2]} against {seen[3]}. This is about divisions of one"
        " series and one network; blocks still share what the detector remembers, so it may be worse"
        " elsewhere."
    )


def _holds(rate: Cell, exact: Cell) -> bool:
    return isinstance(rate, Rate) and isinstance(exact, float) and exact >= rate.low


def between(checks: list[Row], head: str) -> str:
    """Return the lowest and the highest value of a column."""
    values = [cell.value if isinstance(cell, Rate) else cell for cell in (row[head] for row in checks)]
    numbers = [value for value in values if isinstance(value, float)]
    return " to ".join(dict.fromkeys(f"{one:.2f}" for one in (min(numbers), max(numbers))))
