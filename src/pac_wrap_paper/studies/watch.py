"""The monitor on real data: series in their order of time, and changes of a known size."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest

from pac_wrap import (
    Certificate,
    Curve,
    Guarantee,
    Monitor,
    anomaly_scores,
    calibrate,
    certify_curve,
    evaluate,
)
from pac_wrap.method.monitoring.alarm import Alarm
from pac_wrap.tails import Rate
from pac_wrap_paper.data import load
from pac_wrap_paper.data.series import smd_machines
from pac_wrap_paper.studies.charts import Bar, IntervalChart
from pac_wrap_paper.studies.printed import NASA
from pac_wrap_paper.studies.study import Floats, Indices, Labels, Progress, Row, Study, StudyTable, silent

ASKED: Final = {"thyroid": Guarantee(0.01, 0.1), "celeba": Guarantee(0.05, 0.1)}
ALPHA: Final = 0.01
MOST_ROWS: Final = 20_000


class Monitored(NamedTuple):
    """A classifier with its certificate and curve, and rows that neither trained nor calibrated it."""

    name: str
    model: Any
    certificate: Certificate
    curve: Curve
    rows: Floats
    labels: Labels
    scores: Floats
    spread: Floats


@lru_cache(maxsize=4)
def monitored_rows(name: str, seed: int) -> Monitored:
    """Return a data set of which a quarter trains, a quarter calibrates and the rest is monitored."""
    data = load(name)
    rows, labels = np.asarray(data.X, dtype=float), data.y
    order = np.random.default_rng([seed, 13]).permutation(labels.size)
    trained, calibrated, rest = np.split(order, [labels.size // 4, labels.size // 2])
    model = HistGradientBoostingClassifier(random_state=seed).fit(rows[trained], labels[trained])
    scores = model.decision_function(rows)
    normal, anomalous = (scores[calibrated][labels[calibrated] == label] for label in (0, 1))
    certificate, curve = calibrate(normal, anomalous, ASKED[name]), certify_curve(normal, anomalous)
    spread = rows[trained].std(axis=0)
    return Monitored(name, model, certificate, curve, rows[rest], labels[rest], scores[rest], spread)


# rows by their places in, scores and labels out
Rows = tuple[Floats, Labels]
Change = Callable[[Monitored, Indices, float, Generator], Rows]


def noise(data: Monitored, places: Indices, size: float, random: Generator) -> Rows:
    """Add noise to every measurement; `size` is its standard deviation, in those of the measurement."""
    rows = data.rows[places]
    moved = rows + random.normal(size=rows.shape) * size * data.spread
    return np.asarray(data.model.decision_function(moved)), data.labels[places]


def flips(data: Monitored, places: Indices, size: float, random: Generator) -> Rows:
    """Flip every label with this chance."""
    labels = data.labels[places]
    return data.scores[places], np.where(random.random(labels.size) < size, 1 - labels, labels)


def contamination(data: Monitored, places: Indices, size: float, random: Generator) -> Rows:
    """Put anomalies, labelled normal, in the place of this share of the normal rows."""
    labels, places = data.labels[places], places.copy()
    swapped = np.flatnonzero((labels == 0) & (random.random(labels.size) < size))
    places[swapped] = random.choice(np.flatnonzero(data.labels == 1), swapped.size)
    return data.scores[places], labels


def nothing(data: Monitored, places: Indices, size: float, random: Generator) -> Rows:
    """Return the rows and labels unchanged."""
    return data.scores[places], data.labels[places]


CHANGES: Final[tuple[tuple[str, Change, tuple[float, ...]], ...]] = (
    ("nothing", nothing, (0.0,)),
    ("noise in the measurements (standard deviations)", noise, (0.2, 0.5, 1.0)),
    ("flipped labels (share)", flips, (0.01, 0.02, 0.05)),
    ("anomalies labelled normal (share)", contamination, (0.02, 0.05, 0.1)),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """Several orders of the same rows with one change halfway: the rates after it, and all first alarms."""

    data: str
    change: str
    size: float
    half: int
    fpr: float
    fnr: float
    alarms: tuple[Alarm | None, ...]

    @property
    def before(self) -> int:
        """How many orders raised an alarm before the change."""
        return sum(one is not None and one.row <= self.half for one in self.alarms)

    @property
    def after(self) -> tuple[Alarm, ...]:
        """The alarms that came after the change."""
        return tuple(one for one in self.alarms if one is not None and one.row > self.half)

    @property
    def broken(self) -> tuple[str, ...]:
        """The promises whose ceiling the rate after the change is above."""
        asked = ASKED[self.data]
        ceilings = (("FPR", self.fpr, asked.max_fpr), ("FNR", self.fnr, asked.max_fnr))
        return tuple(name for name, rate, ceiling in ceilings if ceiling is not None and rate > ceiling)

    def row(self) -> Row:
        """Return the row of the table."""
        after = self.after
        delays = [one.row - self.half for one in after]
        names = Counter(one.watch for one in after).most_common(1)
        return {
            "data": self.data,
            "from the middle on": self.change,
            "size": f"{self.size:g}",
            "FPR after": self.fpr,
            "FNR after": self.fnr,
            "broken": " and ".join(self.broken) or "none",
            "orders": len(self.alarms),
            "alarms before": self.before,
            "alarms after": len(after),
            "median rows until the alarm": int(np.median(delays)) if delays else None,
            "most alarms from": names[0][0] if names else None,
        }


def changed(data: Monitored, name: str, change: Change, size: float, orders: int, seed: int) -> Changed:
    """Return the first alarms after a change halfway, in several random orders of the rows."""
    alarms, errors = [], np.zeros((2, 2))
    half = min(MOST_ROWS, data.labels.size) // 2
    for number in range(orders):
        random = np.random.default_rng([seed, 14, number, int(1000 * size), *name.encode()])
        order = random.permutation(data.labels.size)[: 2 * half]
        parts = nothing(data, order[:half], 0.0, random), change(data, order[half:], size, random)
        monitor = Monitor(data.certificate, data.curve, ALPHA)
        for scores, labels in parts:
            verdicts = data.certificate.verdicts(scores)
            alarm = monitor.update(verdicts, labels, scores=scores)
        rates = evaluate(verdicts, labels)
        errors += [[one.count, one.n] for one in (rates.fpr, rates.fnr)]
        alarms.append(alarm)
    (fpr, fnr) = (errors[:, 0] / errors[:, 1]).tolist()
    return Changed(data.name, name, size, half, fpr, fnr, tuple(alarms))


def all_changes(seed: int, quick: bool, orders: int, progress: Progress) -> Iterator[Changed]:
    """Yield the alarms and rates of every change of both data sets."""
    names = ("thyroid",) if quick else tuple(ASKED)
    for place, name in enumerate(names):
        progress(place / len(names), f"changing {name}")
        data = monitored_rows(name, seed)
        for title, change, sizes in CHANGES:
            for size in sizes:
                yield changed(data, title, change, size, orders, seed)


LEVEL: Final = 0.1
SPACINGS: Final = (1, 60)
PARTS: Final = 5
SHUFFLES: Final = 10
ORDERS: Final = 20
Outcome = Literal["right", "a burst", "missed", "quiet"]
OUTCOMES: Final[dict[Outcome, str]] = {
    "right": "alarm, and above the ceiling",
    "a burst": "alarm, though below the ceiling: a burst",
    "missed": "no alarm, though above the ceiling",
    "quiet": "no alarm, and below the ceiling",
}


@dataclass(frozen=True, slots=True)
class Series:
    """A series, calibrated on its first half and monitored on the second."""

    data: str
    name: str
    every: int
    calibrated: int
    rate: Rate
    parts: tuple[float, ...]
    alarm: Alarm | None
    shuffled: int

    @property
    def outcome(self) -> Outcome:
        """Whether there was an alarm, and whether the rate of the monitored part is above its ceiling."""
        if self.rate.value > LEVEL:
            return "missed" if self.alarm is None else "right"
        return "quiet" if self.alarm is None else "a burst"

    def row(self) -> Row:
        """Return the row of the table of all series."""
        alarm = self.alarm
        return {
            "data": self.data,
            "series": self.name,
            "every": self.every,
            "calibration points": self.calibrated,
            "FPR of the monitored part": self.rate,
            "lowest fifth": min(self.parts),
            "highest fifth": max(self.parts),
            "alarm at point": None if alarm is None else alarm.row,
            "since point": None if alarm is None else alarm.since,
            "FPR since then": None if alarm is None else alarm.count / alarm.n,
            "outcome": self.outcome,
            "alarms in random orders": self.shuffled,
        }


def run(seed: int = 0, trials: int | None = None, quick: bool = False, progress: Progress = silent) -> Study:
    """Return when the monitor alarms and whether it is right; `trials` are orders of changed rows, 20."""
    names = [("nasa", name) for name in NASA] + [("smd", name) for name in smd_machines()]
    names = names[5:8] if quick else names
    series: list[Series] = []
    for place, (data, name) in enumerate(names):
        progress(0.5 * place / len(names), f"monitoring {name}")
        series += monitored_series(data, name, seed)
    orders = (5 if quick else ORDERS) if trials is None else trials
    changes = list(all_changes(seed, quick, orders, lambda share, text: progress(0.5 + share / 2, text)))
    return Study(
        question="watch",
        title="Monitoring",
        setting=_setting(orders, quick),
        tables=(
            StudyTable("outcomes", "Series in their order of time", tuple(_outcomes(series))),
            StudyTable("series", "Every series", tuple(one.row() for one in series), detail=True),
            StudyTable("changes", "Changes of a known size", tuple(one.row() for one in changes)),
        ),
        findings=(*_series_findings(series), *_change_findings(changes)),
        charts=tuple(_chart(series, every) for every in SPACINGS),
    )


def monitored_series(data: str, name: str, seed: int) -> Iterator[Series]:
    """Yield the outcome of one series for every spacing of its points."""
    loaded = load(data, name)
    forest = IsolationForest(random_state=seed).fit(loaded.X[: loaded.n_train])
    scores, labels = anomaly_scores(forest, loaded.X[loaded.n_train :]), loaded.y[loaded.n_train :]
    for every in SPACINGS:
        yield monitor_second_half(data, name, every, scores[::every], labels[::every], seed)


def monitor_second_half(
    data: str, name: str, every: int, scores: Floats, labels: Labels, seed: int
) -> Series:
    """Return the alarms on the normal points of the second half, in their order of time and shuffled."""
    half = labels.size // 2
    calibration, future = scores[:half][labels[:half] == 0], scores[half:][labels[half:] == 0]
    certificate = calibrate(calibration, [], Guarantee(LEVEL, None))
    verdicts = certificate.verdicts(future)
    random, normal = np.random.default_rng([seed, 15]), np.zeros(future.size)

    def alarm(order: np.ndarray[tuple[int], np.dtype[np.int8]]) -> Alarm | None:
        return Monitor(certificate, alpha=ALPHA).update(order, normal)

    fpr = evaluate(np.r_[verdicts, np.int8(1)], np.r_[normal, 1.0]).fpr
    parts = tuple(float(np.mean(part == 1)) for part in np.array_split(verdicts, PARTS))
    shuffled = sum(alarm(random.permutation(verdicts)) is not None for _ in range(SHUFFLES))
    return Series(data, name, every, calibration.size, fpr, parts, alarm(verdicts), shuffled)


def _setting(orders: int, quick: bool) -> tuple[str, ...]:
    thyroid, celeba = (f"{ASKED[name].max_fpr:g} and {ASKED[name].max_fnr:g}" for name in ASKED)
    return (
        "*Series*: an isolation forest with its usual settings is trained on the training part of each NASA"
        " channel of the paper and of each server machine. The normal points of the first half of the test"
        f" part calibrate an FPR of at most {LEVEL} with a delta of 0.05; those of the second half are"
        f" monitored in their order, with an alpha of {ALPHA}: every step, and every {SPACINGS[1]}th step."
        " (Anomalies come in one to three stretches, too few to calibrate an FNR in the order of time.)"
        " *Right*: an alarm, and the rate of the whole monitored part is above the ceiling. *A burst*: an"
        " alarm, though this rate is not above it. *Missed*: no alarm, though the rate is above the ceiling."
        f" *Quiet*: no alarm, and the rate is not above it. The same points are then monitored in {SHUFFLES}"
        " random orders.",
        "*Changes*: a quarter of thyroid and of celeba trains gradient boosting and a quarter calibrates"
        f" ceilings of the FPR and FNR of {thyroid} on thyroid and {celeba} on celeba. The rest comes in"
        f" {orders} random orders, at most 20,000 rows each, all labelled; from the middle on one thing is"
        f" changed. Promises, undecided points and scores are monitored, under one alpha of {ALPHA}."
        + (" Quick run: few series, and thyroid alone." if quick else ""),
    )


def _outcomes(series: Sequence[Series]) -> Iterator[Row]:
    for data in dict.fromkeys(one.data for one in series):
        for every in SPACINGS:
            group = [one for one in series if (one.data, one.every) == (data, every)]
            yield {
                "data": data,
                "points": _apart(every),
                "series": len(group),
                "alarms": sum(one.alarm is not None for one in group),
                **{name: sum(one.outcome == name for one in group) for name in OUTCOMES},
                "alarms in random orders": _shuffled(group),
                "of series that keep the ceiling": _shuffled(
                    [one for one in group if one.rate.value <= LEVEL]
                ),
            }


def _apart(every: int) -> str:
    return "every step" if every == 1 else f"every {every}th step"


def _shuffled(group: Sequence[Series]) -> str:
    return f"{sum(one.shuffled for one in group)} of {SHUFFLES * len(group)}"


def _series_findings(series: Sequence[Series]) -> Iterator[str]:
    steps, apart = ([one for one in series if one.every == every] for every in SPACINGS)
    for told, group in (("every step", steps), (f"every {SPACINGS[1]}th step", apart)):
        alarms = [one for one in group if one.alarm is not None]
        bursts = [one for one in alarms if one.outcome == "a burst"]
        kept = [one for one in group if one.rate.value <= LEVEL]
        yield (
            f"With {told}, {len(alarms)} of {len(group)} series raise an alarm, and {len(bursts)} of these"
            f" alarms are bursts: of {len(kept)} series that keep their ceiling over the whole monitored"
            f" part, {len(bursts)} raise one. In a random order the same points raise an alarm in"
            f" {_shuffled(kept)} cases."
        )
    missed = [one for one in apart if one.outcome == "missed"]
    yield (
        "In a burst, errors of a series follow each other, and meanwhile the next point is an error more"
        " often than promised. The monitor assumes that this never happens, whatever came before"
        " (docs/theory.md, eq. (80)), so alpha does not bound false alarms on neighbouring steps of a series."
        " The test is not wrong there: the promise of the certificate itself is about independent points."
    )
    yield (
        f"Points that are further apart depend less on each other, but there are fewer of them: {len(missed)}"
        f" of {sum(one.rate.value > LEVEL for one in apart)} series above their ceiling raise no alarm then,"
        f" with rates of up to {max((one.rate.value for one in missed), default=LEVEL):.3f} over at most"
        f" {max(one.rate.n for one in apart)} points."
    )


def _change_findings(changes: Sequence[Changed]) -> Iterator[str]:
    before, orders = sum(one.before for one in changes), sum(len(one.alarms) for one in changes)
    yield (
        f"Before a change {before} of {orders} orders raise an alarm; all tests together may"
        f" do so with probability {100 * ALPHA:.0f} %, plus the deltas of the certificate and of the curve."
    )
    kept = [one for one in changes if not one.broken]
    broken = [one for one in changes if one.broken]
    found = sum(len(one.after) for one in broken)
    of = sum(len(one.alarms) - one.before for one in broken)
    yield (
        f"Where the change breaks a promise, {found} of {of} orders raise an alarm after it; where the rates"
        f" stay below their ceilings, {sum(len(one.after) for one in kept)} of"
        f" {sum(len(one.alarms) - one.before for one in kept)}."
    )
    for one in broken:
        there = len(one.alarms) - one.before
        if len(one.after) < there:
            yield (
                f"{one.data}, {one.change} {one.size:g}: {there - len(one.after)} of {there} orders end"
                f" before an alarm, with an FPR of {one.fpr:.3f} and an FNR of {one.fnr:.3f} over"
                f" {one.half:,} rows."
            )


def _chart(series: Sequence[Series], every: int) -> IntervalChart:
    chosen = sorted((one for one in series if one.every == every), key=lambda one: one.rate.value)
    groups = tuple(
        (told, tuple(_bar(one) for one in chosen if one.outcome == name))
        for name, told in OUTCOMES.items()
        if any(one.outcome == name for one in chosen)
    )
    return IntervalChart(
        f"every-{every}",
        f"False alarms in the monitored half of each series, {_apart(every)} a point",
        "share of normal points above the threshold: whole half, and range over its fifths",
        LEVEL,
        f"ceiling {LEVEL}",
        groups,
        value_label="whole half, and range over its fifths",
    )


def _bar(one: Series) -> Bar:
    return Bar(one.name.removeprefix("machine-"), min(one.parts), max(one.parts), one.rate.value)
