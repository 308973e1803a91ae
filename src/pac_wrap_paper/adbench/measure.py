"""Every method on many divisions of a scored table: what it was set up for, and what came of it."""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit

from pac_wrap.base.files import check_folder, whole_file
from pac_wrap_paper.adbench.detectors import DETECTORS
from pac_wrap_paper.adbench.methods import FEWER, METHODS, Division, Setting
from pac_wrap_paper.adbench.scoring import Scored, Scoring
from pac_wrap_paper.data.adbench import TABLES
from pac_wrap_paper.data.store import cache_folder
from pac_wrap_paper.studies.study import Progress

Floats = NDArray[np.float64]
FIELDS: Final = (
    *("FPR", "FNR", "alarms", "decided", "all FPR", "all FNR"),
    *("max FPR", "max FNR", "max alarms"),
)
"""What is kept of a division: rates on the other rows, the same on all, and what it was set up for."""

_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the numbers changes


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the methods did on divisions of one scored table: `values[method]` has a row for each division.

    `sizes` and `others` count the points of each class that calibrate, and those that are left.
    """

    scored: Scored
    sizes: tuple[int, int]
    others: tuple[int, int]
    values: dict[str, Floats]

    def of(self, method: str, field: str) -> Floats:
        """Return one number of every division; NaN where there is none."""
        return self.values[method][:, FIELDS.index(field)]

    def above(self, method: str, rate: str, *, whole: bool = False) -> Floats:
        """Return where a rate exceeds what the method was set up for, as 0 and 1; NaN if it never was.

        A division in which nothing was promised counts as one in which nothing is broken: to leave it out
        would be to choose divisions by what came out.
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
    """Return what turns scores into numbers between 0 and 1, for a package that takes nothing else.

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
    (n0, n1), (all0, all1) = (
        (parts[0].size, parts[1].size),
        (parts[0].size + parts[2].size, parts[1].size + parts[3].size),
    )
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

    @property
    def file(self) -> Path:
        """Where the numbers are kept: a name that changes with the scores, the methods and their packages."""
        packages = [version(name) for name in ("scikit-learn", "crepes", "mapie")]
        told = repr(
            (_METHOD, self.scoring.file.name, list(METHODS), sorted(FEWER.items()), packages, self.trials)
        )
        key = hashlib.sha256(told.encode()).hexdigest()[:16]
        return cache_folder() / "outcomes" / f"adbench-{self.scoring.table}-{self.scoring.detector}-{key}.npz"

    def outcomes(self, file: Path | None = None, scores: Path | None = None) -> Outcomes:
        """Return what the methods did, from the cache or by doing it."""
        kept, scored = self.file if file is None else file, self.scoring.scored(scores)
        halves = scored.normal.size // 2, scored.anomalous.size // 2
        others = scored.normal.size - halves[0], scored.anomalous.size - halves[1]
        with suppress(OSError, EOFError, ValueError, KeyError), np.load(kept, allow_pickle=False) as found:
            return Outcomes(scored, halves, others, {name: found[name] for name in METHODS})
        values = self._values(scored)
        check_folder(kept.parent)
        with whole_file(kept) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, **values)  # type: ignore[arg-type]  # its other argument is a flag
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


def measure_all(measurings: Sequence[Measuring], progress: Progress) -> list[Outcomes]:
    """Return the outcomes of every scored table, on all cores where they are not in the cache."""
    missing = [one for one in measurings if not one.file.exists()]
    # a worker may have another environment, so it is told the files
    jobs = (delayed(_measure)(one, one.file, one.scoring.file) for one in missing)
    if missing:
        check_folder(missing[0].file.parent)
        done = Parallel(n_jobs=min(len(missing), os.cpu_count() or 1), return_as="generator")(jobs)
        for place, _ in enumerate(done):
            one = missing[place].scoring
            progress(place / len(missing), f"divided {one.table}, {one.detector}")
    return [one.outcomes() for one in measurings]


def _measure(measuring: Measuring, file: Path, scores: Path) -> None:
    measuring.outcomes(file, scores)
