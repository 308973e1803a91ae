"""Data in partitions that live elsewhere: a task goes to each one, and what comes back adds up.

An engine pickles a `PartitionTask`, calls it once per partition with the partition's number and batches, and
adds up the answers in any order and any tree. What is wrong with a partition comes back as data, since an
error raised in a worker would be tried again and then arrive as a page of traceback.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import ScoreType, as_array, check_aligned, common_type
from pac_wrap.errors import InputError
from pac_wrap.ranks.passes import PassTask, check_normal_labels, split_classes
from pac_wrap.ranks.search import Bounds, RankSearch

Batches = Iterable[tuple[ArrayLike, ArrayLike]]


class Missing(NamedTuple):
    """How many scores are missing in all and in how many partitions; and in the first of them."""

    scores: int
    partitions: int
    first: int
    in_first: int
    rows_of_first: int

    def merge(self, other: "Missing") -> "Missing":
        """Return both together."""
        first = min(self, other, key=lambda one: one.first)
        return first._replace(
            scores=self.scores + other.scores, partitions=self.partitions + other.partitions
        )

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        all_of_them = "" if self.partitions == 1 else f", {self.scores:,} in {self.partitions:,} partitions"
        return (
            f"scores must not be empty or NaN, got {self.in_first:,} of {self.rows_of_first:,} in partition"
            f" {self.first}{all_of_them}; drop those rows or make the detector score them"
        )


def missing_labels(number: int, missing: int, rows: int) -> str:
    """Return the sentence about a partition with rows that have no label."""
    return f"labels of partition {number} must not be missing, got {missing:,} of {rows:,}; drop those rows"


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """What some partitions gave: the sum of the task's answers, and what is wrong with them, if anything.

    `normal_labels` maps what normal points are called to the first partition that calls them so; two
    entries are enough to refuse them. `score_type` is the type of the scores, None if there are none.
    """

    value: Any
    normal_labels: tuple[tuple[int, Any], ...] = ()
    missing: Missing | None = None
    problem: tuple[int, str] | None = None
    score_type: ScoreType | None = None

    def __add__(self, other: "PartitionAnswer") -> "PartitionAnswer":
        problems = [one.problem for one in (self, other) if one.problem is not None]
        gaps = [one.missing for one in (self, other) if one.missing is not None]
        sound = self.value is not None and other.value is not None
        return PartitionAnswer(
            self.value + other.value if sound else None,
            _first_two(self.normal_labels + other.normal_labels),
            gaps[0].merge(gaps[1]) if len(gaps) == 2 else gaps[0] if gaps else None,
            min(problems, default=None),
            common_type([self.score_type, other.score_type]),
        )

    def settled(self, anomaly_label: object) -> Any:
        """Return the sum of the answers, or refuse what is wrong."""
        if self.problem is not None:
            raise InputError(self.problem[1])
        if self.missing is not None:
            raise InputError(self.missing.sentence)
        if len(self.normal_labels) == 2:
            (_, first), (number, other) = self.normal_labels
            check_normal_labels(f"partition {number}", first, other, anomaly_label)
        return self.value


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A task that a partition can be given: it divides the classes and finds what is wrong.

    >>> from pac_wrap.ranks.search import survey
    >>> PartitionTask(survey, 1)(0, [([0.1, 0.9], [0, 1]), ([0.2], [0])]).value.sizes
    (2, 1)
    >>> PartitionTask(survey, 1)(7, [([0.1, float("nan")], [0, 1])]).missing.first
    7
    """

    task: PassTask
    anomaly_label: object

    @property
    def bounds(self) -> Bounds | None:
        """Pairs of scores between which all lie that this pass looks at, or None if it looks at all."""
        return self.task.bounds if isinstance(self.task, RankSearch) else None

    def __call__(self, number: int, batches: Batches) -> PartitionAnswer:
        """Return what one partition gives, from its batches of scores and labels."""
        value = None
        labels_seen: tuple[tuple[int, Any], ...] = ()
        rows = gaps = 0
        kind: ScoreType | None = None
        try:
            for scores, labels in batches:
                check_aligned("scores", scores, "labels", labels)
                values, marks = as_array(scores, "scores"), as_array(labels, "labels")
                rows += values.size
                sound = values.ndim == 1 and values.shape == marks.shape and values.dtype.kind == "f"
                if sound and (nan := np.isnan(values)).any():
                    gaps += int(np.count_nonzero(nan))
                    values, marks = values[~nan], marks[~nan]
                both = split_classes(f"partition {number}", values, marks, self.anomaly_label)
                found = self.task(both.normal, both.anomalous)
                value = found if value is None else value + found
                kind = common_type([kind, both.score_type])
                if both.normal_label is not None:
                    labels_seen = _first_two((*labels_seen, (number, both.normal_label)))
        except InputError as error:
            return PartitionAnswer(None, problem=(number, str(error)))
        if value is None:
            value = self.task(np.empty(0), np.empty(0))
        missing = Missing(gaps, 1, number, gaps, rows) if gaps else None
        return PartitionAnswer(value, labels_seen, missing, score_type=kind)


RunPartitions = Callable[[PartitionTask], PartitionAnswer]


class Partitions:
    """Runs passes over partitions, which are visited by `run`."""

    def __init__(self, run: RunPartitions, anomaly_label: object) -> None:
        self._run, self._anomaly_label = run, anomaly_label
        self._score_type: ScoreType | None = None

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores, known after the first pass."""
        return self._score_type or "float64"

    def __call__(self, task: PassTask) -> Any:
        """Return the sum of what the task returns for all partitions, or refuse what is wrong with them."""
        answer = self._run(PartitionTask(task, self._anomaly_label))
        # later passes need not see all partitions
        self._score_type = self._score_type or answer.score_type
        return answer.settled(self._anomaly_label)


def _first_two(labels: tuple[tuple[int, Any], ...]) -> tuple[tuple[int, Any], ...]:
    """Return the first partition of each label, for two different labels at most."""
    ordered = sorted(labels, key=lambda pair: pair[0])
    others = [pair for pair in ordered if pair[1] != ordered[0][1]]
    return tuple(ordered[:1] + others[:1])
