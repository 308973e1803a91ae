"""Changes of a known size, made halfway through a watch of real rows: alarms before them, and after."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from pac_wrap.base.arguments import Scores
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.curves.certify import certify_curve
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.metrics import evaluate
from pac_wrap.method.monitoring.alarm import Alarm
from pac_wrap.method.monitoring.monitor import Monitor
from pac_wrap.method.promise import Guarantee
from pac_wrap_paper.data import load
from pac_wrap_paper.studies.study import Progress, Row

Labels = NDArray[np.int64]
ASKED: Final = {"thyroid": Guarantee(0.01, 0.1), "celeba": Guarantee(0.05, 0.1)}
ALPHA: Final = 0.01
MOST_ROWS: Final = 20_000


class Watched(NamedTuple):
    """A classifier with its certificate and curve, and rows that neither trained nor calibrated it."""

    name: str
    model: Any
    certificate: Certificate
    curve: Curve
    rows: NDArray[np.float64]
    labels: Labels
    scores: Scores
    spread: NDArray[np.float64]


@lru_cache(maxsize=4)
def watched_rows(name: str, seed: int) -> Watched:
    """Return a data set of which a quarter trains, a quarter calibrates and the rest is to be watched."""
    data = load(name)
    rows, labels = np.asarray(data.X, dtype=float), np.asarray(data.y).astype(np.int64)
    order = np.random.default_rng([seed, 13]).permutation(labels.size)
    trained, calibrated, rest = np.split(order, [labels.size // 4, labels.size // 2])
    model = HistGradientBoostingClassifier(random_state=seed).fit(rows[trained], labels[trained])
    scores = model.decision_function(rows)
    normal, anomalous = (scores[calibrated][labels[calibrated] == label] for label in (0, 1))
    return Watched(
        name,
        model,
        calibrate(normal, anomalous, ASKED[name]),
        certify_curve(normal, anomalous),
        rows[rest],
        labels[rest],
        scores[rest],
        rows[trained].std(axis=0),
    )


# rows by their places, and their labels, in; scores and labels out
Change = Callable[[Watched, Labels, float, np.random.Generator], tuple[Scores, Labels]]


def noise(data: Watched, places: Labels, size: float, random: np.random.Generator) -> tuple[Scores, Labels]:
    """Add noise to every measurement, of so many of its standard deviations."""
    rows = data.rows[places]
    moved = rows + random.normal(size=rows.shape) * size * data.spread
    return np.asarray(data.model.decision_function(moved)), data.labels[places]


def flips(data: Watched, places: Labels, size: float, random: np.random.Generator) -> tuple[Scores, Labels]:
    """Flip every label with this chance."""
    labels = data.labels[places]
    return data.scores[places], np.where(random.random(labels.size) < size, 1 - labels, labels)


def contamination(
    data: Watched, places: Labels, size: float, random: np.random.Generator
) -> tuple[Scores, Labels]:
    """Put anomalies, labelled normal, in the place of this share of the normal rows."""
    labels, places = data.labels[places], places.copy()
    swapped = np.flatnonzero((labels == 0) & (random.random(labels.size) < size))
    places[swapped] = random.choice(np.flatnonzero(data.labels == 1), swapped.size)
    return data.scores[places], labels


def nothing(data: Watched, places: Labels, size: float, random: np.random.Generator) -> tuple[Scores, Labels]:
    """Leave all as it is."""
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
            "rows until then, median": int(np.median(delays)) if delays else None,
            "mostly of": names[0][0] if names else None,
        }


def changed(data: Watched, name: str, change: Change, size: float, orders: int, seed: int) -> Changed:
    """Return what a watch makes of a change halfway, in several random orders of the rows."""
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
    """Yield what a watch makes of every change of both data sets."""
    names = ("thyroid",) if quick else tuple(ASKED)
    for place, name in enumerate(names):
        progress(place / len(names), f"changing {name}")
        data = watched_rows(name, seed)
        for title, change, sizes in CHANGES:
            for size in sizes:
                yield changed(data, title, change, size, orders, seed)
