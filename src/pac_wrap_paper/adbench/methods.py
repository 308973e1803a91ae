"""Usual thresholds and ours on many divisions of a scored table, and the outcome of each."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from math import inf, nan
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import TunedThresholdClassifierCV

from pac_wrap import (
    Certificate,
    Curve,
    InputError,
    UpsideDownWarning,
    VacuousWarning,
    calibrate,
    certify_curve,
)
from pac_wrap_paper.adbench.chance import ASKED, LEVEL
from pac_wrap_paper.adbench.scoring import DETECTORS, Scored, Scoring
from pac_wrap_paper.baselines import Controller, Crepes, both_classes, f1_max, percentile
from pac_wrap_paper.data.registry import TABLES
from pac_wrap_paper.data.store import keep, result_file
from pac_wrap_paper.studies.study import Floats

DEFAULT: Final = 0.1  # PyOD's contamination


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The held-out rows of a table, divided: sorted scores of both classes, and facts from the training.

    `train` are the scores of the training rows, `share` the share of anomalies in the table, and
    `probability` turns scores into numbers between 0 and 1, fixed by the training rows.
    """

    normal: Floats
    anomalous: Floats
    other_normal: Floats
    other_anomalous: Floats
    train: Floats
    share: float
    probability: Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Setting:
    """Two thresholds and what they were set up for: ceilings of rates and of the share of alarms, or NaN.

    A score below `normal_below` cannot be an anomaly, a score from `anomaly_from` on cannot be normal. A
    single threshold is both numbers; a score for which both or neither hold is left undecided.
    """

    normal_below: float
    anomaly_from: float
    max_fpr: float = nan
    max_fnr: float = nan
    max_alarms: float = nan


NOTHING: Final = Setting(-inf, inf)
"""No threshold was found: every point is left undecided."""

Method = Callable[[Division], Setting]


def _single(threshold: float, **set_up: float) -> Setting:
    return Setting(threshold, threshold, **set_up)


def contamination(division: Division, share: float | None = None) -> Setting:
    """Return PyOD's threshold for a share of anomalies: that percentile of the training scores.

    It alarms above the threshold, not at it, and is set up for that share of alarms, by default the true one.
    """
    wanted = division.share if share is None else share
    threshold = float(np.percentile(division.train, 100.0 * (1.0 - wanted)))
    return _single(float(np.nextafter(threshold, inf)), max_alarms=wanted)


def normal_percentile(division: Division) -> Setting:
    """Return the 95th percentile of the normal calibration scores, set up for an FPR of 5 %."""
    return _single(percentile(division.normal, LEVEL).anomaly_from, max_fpr=LEVEL)


def _f1(division: Division) -> float:
    return f1_max(division.normal, division.anomalous).anomaly_from


def tuned(division: Division) -> Setting:
    """Return the threshold of `TunedThresholdClassifierCV`, set up for the rates that it shows."""
    scores = np.concatenate([division.normal, division.anomalous])[:, np.newaxis]
    labels = np.repeat([0, 1], [division.normal.size, division.anomalous.size])
    search = TunedThresholdClassifierCV(_Scores(), response_method="decision_function")
    try:
        return _as_shown(division, float(search.fit(scores, labels).best_threshold_))
    except ValueError:  # it refuses scores that are nearly constant
        return NOTHING


def _as_shown(division: Division, threshold: float) -> Setting:
    flagged = division.normal.size - np.searchsorted(division.normal, threshold)
    missed = np.searchsorted(division.anomalous, threshold)
    return _single(
        threshold,
        max_fpr=float(flagged / division.normal.size),
        max_fnr=float(missed / division.anomalous.size),
    )


class _Scores(ClassifierMixin, BaseEstimator):
    """A classifier that is trained already: its decision is the only column."""

    def fit(self, X: Floats, y: NDArray[np.int64]) -> "_Scores":
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0]


def conformal(division: Division) -> Setting:
    """Return the two thresholds of crepes, one category per class, set up for 5 % each.

    It rules out a range of scores at either end, which is found at the scores of the other points.
    """
    crepes = Crepes().calibrate(division.normal, division.anomalous)
    probes = np.union1d(division.other_normal, division.other_anomalous)
    alarms, clear = (probes[~crepes.possible(probes, label, LEVEL)] for label in (0, 1))
    anomaly_from = float(alarms[0]) if alarms.size else inf
    normal_below = float(np.nextafter(clear[-1], inf)) if clear.size else -inf
    return Setting(normal_below, anomaly_from, max_fpr=LEVEL, max_fnr=LEVEL)


def controlled(division: Division, rate: Literal["fpr", "recall"]) -> Setting:
    """Return MAPIE's controller of one rate, set up for 5 % with a confidence of 95 %.

    It takes probabilities and tries 100 thresholds between 0 and 1.
    """
    chance = division.probability(np.concatenate([division.normal, division.anomalous]))
    labels = np.repeat([0, 1], [division.normal.size, division.anomalous.size])
    found = Controller(rate, LEVEL, LEVEL).calibrate(both_classes(chance), labels)
    if found is None:
        return NOTHING
    scores = np.concatenate([division.other_normal, division.other_anomalous])
    # the least score that it would alarm at, among those that it is measured on
    alarms = scores[division.probability(scores) >= found]
    threshold = float(alarms.min()) if alarms.size else inf
    return _single(threshold, **{"max_fpr" if rate == "fpr" else "max_fnr": LEVEL})


def certified(division: Division, overlap: str) -> Setting:
    """Return the certificate of `calibrate` at 0.05 and 0.05 with this strategy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        warnings.simplefilter("ignore", VacuousWarning)
        return _promised(calibrate(division.normal, division.anomalous, ASKED, overlap=overlap))


def on_curve(division: Division, choose: Callable[[Curve, Division], Certificate]) -> Setting:
    """Return the promise of the certified curve at a threshold that is chosen after looking at it."""
    try:
        return _promised(choose(_curve(division), division))
    except InputError:  # no threshold there bounds a rate
        return NOTHING


@lru_cache(maxsize=1)
def _curve(division: Division) -> Curve:
    """Return the curve of a division; it is kept, because several choices use it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        return certify_curve(division.normal, division.anomalous, LEVEL, LEVEL)


def _promised(certificate: Certificate) -> Setting:
    """Return the rule and the certified ceilings; NaN where too few labels certify nothing."""
    ceilings = (
        nan if clause.ceiling is None or clause.errors is None else clause.ceiling
        for clause in (certificate.fpr, certificate.fnr)
    )
    return Setting(certificate.rule.normal_below, certificate.rule.anomaly_from, *ceilings)


THEIRS: Final[dict[str, Method]] = {
    "contamination 0.1": partial(contamination, share=DEFAULT),
    "contamination, true share": contamination,
    "95th percentile of normals": normal_percentile,
    # set up for the two rates that it shows on the same points
    "greatest F1": lambda division: _as_shown(division, _f1(division)),
    "TunedThresholdClassifierCV": tuned,
    "conformal (crepes)": conformal,
    "MAPIE, FPR": partial(controlled, rate="fpr"),
    "MAPIE, recall": partial(controlled, rate="recall"),
}
OURS: Final[dict[str, Method]] = {
    **{name: partial(certified, overlap=name) for name in ("abstain", "raise", "hold_fnr", "hold_fpr")},
    "curve": partial(on_curve, choose=lambda curve, division: curve.balanced()),
    "curve at F1": partial(on_curve, choose=lambda curve, division: curve.at(_f1(division))),
}
METHODS: Final[dict[str, Method]] = THEIRS | OURS
# the slow ones run on the first divisions only
FEWER: Final = {"conformal (crepes)": 5, "MAPIE, FPR": 5, "MAPIE, recall": 5, "TunedThresholdClassifierCV": 1}


FIELDS: Final = (
    *("FPR", "FNR", "alarms", "decided", "all FPR", "all FNR"),
    *("max FPR", "max FNR", "max alarms"),
)
"""The numbers of a division: rates on the other rows, on all rows, and the rates it was set up for."""

_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the numbers changes


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of the methods on divisions of one table: `values[method]` has a row per division.

    `sizes` and `others` count the points of each class that calibrate, and the remaining points.
    """

    scored: Scored
    sizes: tuple[int, int]
    others: tuple[int, int]
    values: dict[str, Floats]

    def of(self, method: str, field: str) -> Floats:
        """Return a field for every division; NaN where it is missing."""
        return self.values[method][:, FIELDS.index(field)]

    def above(self, method: str, rate: str, *, whole: bool = False) -> Floats:
        """Return where a rate exceeds what the method was set up for, as 0 and 1; NaN if it never was.

        A division without a promise counts as one without a break: leaving it out would choose divisions by
        their outcome.
        """
        found, ceiling = self.of(method, f"all {rate}" if whole else rate), self.of(method, f"max {rate}")
        if np.isnan(ceiling).all():
            return np.full(ceiling.size, np.nan)
        return (found > ceiling).astype(np.float64)


def divide(
    scored: Scored, random: np.random.Generator, share: float, probability: Callable[[Floats], Floats]
) -> Division:
    """Return a random half of either class to calibrate on, rounded down, and the rest."""
    parts: list[Floats] = []
    for scores in (scored.normal, scored.anomalous):
        drawn = np.zeros(scores.size, dtype=bool)
        drawn[random.permutation(scores.size)[: scores.size // 2]] = True
        parts += [scores[drawn], scores[~drawn]]  # sorted, as the scores are
    normal, other_normal, anomalous, other_anomalous = parts
    return Division(normal, anomalous, other_normal, other_anomalous, scored.train, share, probability)


def as_probability(scored: Scored) -> Callable[[Floats], Floats]:
    """Return a function from scores to numbers between 0 and 1, for a package that takes nothing else.

    A classifier's decision becomes its probability, any other score the share of training scores up to it.
    """
    if DETECTORS[scored.detector].labels == "all":
        return lambda scores: np.asarray(expit(scores))
    train = np.sort(scored.train)
    return lambda scores: np.searchsorted(train, scores, side="right") / train.size


def outcome(setting: Setting, division: Division) -> list[float]:
    """Return the fields of one method on one division."""
    low, high = setting.normal_below, setting.anomaly_from
    parts = division.other_normal, division.other_anomalous, division.normal, division.anomalous
    flagged = [0 if high == inf else one.size - int(np.searchsorted(one, high)) for one in parts]
    cleared = [int(np.searchsorted(one, low)) for one in parts]
    # a crossed pair says both of the scores between its thresholds, which leaves them open as well
    both = [
        max(0, alarm + clear - one.size) for alarm, clear, one in zip(flagged, cleared, parts, strict=True)
    ]
    n0, n1 = parts[0].size, parts[1].size
    all0, all1 = n0 + parts[2].size, n1 + parts[3].size
    return [
        flagged[0] / n0,
        cleared[1] / n1,
        (flagged[0] + flagged[1]) / (n0 + n1),
        (sum(flagged[:2]) + sum(cleared[:2]) - 2 * sum(both[:2])) / (n0 + n1),
        (flagged[0] + flagged[2]) / all0,
        (cleared[1] + cleared[3]) / all1,
        *(setting.max_fpr, setting.max_fnr, setting.max_alarms),
    ]


@dataclass(frozen=True, slots=True)
class Measuring:
    """One scored table whose held-out rows are to be divided `trials` times."""

    scoring: Scoring
    trials: int

    def __str__(self) -> str:
        return f"{self.scoring.table}, {self.scoring.detector}"

    @property
    def files(self) -> tuple[Path, Path]:
        """Where the numbers are kept, a name that changes with the scores, the methods and their packages."""
        (scores,) = self.scoring.files
        packages = [version(name) for name in ("scikit-learn", "crepes", "mapie")]
        told = (_METHOD, scores.name, list(METHODS), sorted(FEWER.items()), packages, self.trials)
        name = f"adbench-{self.scoring.table}-{self.scoring.detector}"
        return result_file("outcomes", name, told, "npz"), scores

    def result(self, *files: Path) -> Outcomes:
        """Return the outcomes of the methods, from the cache or computed."""
        file, scores = files or self.files
        scored = self.scoring.result(scores)
        halves = scored.normal.size // 2, scored.anomalous.size // 2
        others = scored.normal.size - halves[0], scored.anomalous.size - halves[1]
        with suppress(OSError, EOFError, ValueError, KeyError), np.load(file, allow_pickle=False) as found:
            return Outcomes(scored, halves, others, {name: found[name] for name in METHODS})
        values = self._values(scored)
        keep(file, values)
        return Outcomes(scored, halves, others, values)

    def _values(self, scored: Scored) -> dict[str, Floats]:
        values: dict[str, list[list[float]]] = {name: [] for name in METHODS}
        # every detector has divisions of its own: given the scores, all of them are independent
        places = list(TABLES).index(scored.table), list(DETECTORS).index(scored.detector)
        random = np.random.default_rng([self.scoring.seed, 20, *places])
        probability = as_probability(scored)
        held_out = scored.normal.size + scored.anomalous.size
        for number in range(self.trials):
            division = divide(scored, random, scored.anomalous.size / held_out, probability)
            for name, method in METHODS.items():
                trained = DETECTORS[scored.detector].labels == "none" or not name.startswith("contamination")
                if trained and number < FEWER.get(name, self.trials):
                    values[name].append(outcome(method(division), division))
        return {name: np.array(rows).reshape(-1, len(FIELDS)) for name, rows in values.items()}
