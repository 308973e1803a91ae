"""Certificates of data that does not fit in memory: the same as in memory, from a few passes over it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from numpy.typing import ArrayLike

from pac_wrap.base.floats import ScoreType
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import Request, warned
from pac_wrap.method.weighted import WeightedChunks, WeightedRequest, weighted_by
from pac_wrap.ranks.auc import auc, warn_if_upside_down
from pac_wrap.ranks.counted import Bracketed, Counter, least_auc
from pac_wrap.ranks.memory import Rank, Ranked
from pac_wrap.ranks.passes import (
    Bounds,
    ChunkReader,
    Guess,
    GuessedPasses,
    Partitions,
    PartitionTask,
    Passes,
    RunPartitions,
    RunPass,
)


class _Counted(Protocol):
    @property
    def n(self) -> int: ...


class Certified(Protocol):
    """What is certified from labelled scores: it knows how many there were of each class, and whence."""

    @property
    def normal(self) -> _Counted:
        """What the normal scores contributed."""

    @property
    def anomalous(self) -> _Counted:
        """What the anomalous scores contributed."""

    def with_provenance(self, **facts: Any) -> Self:
        """Return the same with more known of where it comes from."""


T_co = TypeVar("T_co", bound=Certified, covariant=True)
T = TypeVar("T", bound=Certified)


class Asked(Protocol[T_co]):
    """What can be asked of labelled scores, wherever they live: `Request` and `CurveRequest`."""

    @property
    def anomaly_label(self) -> object:
        """The label that marks an anomaly."""

    @property
    def label_text(self) -> str | None:
        """The same as a file has it; None stands for 0 and 1, or false and true."""

    def ranks(self, sizes: tuple[int, int]) -> Iterable[Rank]:
        """Return the ranks that may be asked for."""

    def with_usual_labels(self) -> "Asked[T_co]":
        """Return the same for labels 0 and 1."""

    def certify(self, normal: Ranked, anomalous: Ranked, score_type: ScoreType) -> T_co:
        """Return what two classes get."""


class Sample(NamedTuple):
    """One partition of several of much the same size: `run` gives a task to it alone."""

    run: RunPartitions
    parts: int


def calibrate_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ...]]],
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for all chunks put together, byte for byte.

    Two to five passes are made, up to two more if one side is held, and seven if ceilings are raised. Memory
    is a few MB and the largest chunk.

    Parameters
    ----------
    chunks : callable
        Starts a fresh iteration over pairs of scores and labels, the same pairs each time; with a
        `weight_bound` over triples of scores, labels and weights, in the same order each time.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05.
    overlap : str or Strategy, optional
        What is done where the classes overlap; see `calibrate`.
    anomaly_label : object
        The label that marks an anomaly.
    weight_bound : float, optional
        What no weight exceeds, not only in the chunks; see `calibrate_labelled`.
    seed : int, optional
        The seed of the draw by weights; by default the system draws one.

    Returns
    -------
    Certificate
        That of all scores together.

    Raises
    ------
    InputError
        If a chunk is no pair of scores and labels, or the chunks change between two passes.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> calibrate_chunks(lambda: parts).regime.value
    'vacuous'
    """
    request = weighted_by(Request.of(guarantee, overlap, anomaly_label), weight_bound, seed)
    if isinstance(request, WeightedRequest):
        return certify_chunks(WeightedChunks(chunks, request.anomaly_label, request.draws), request)
    return certify_chunks(ChunkReader(chunks, request.anomaly_label), request)


def certify_chunks(reader: ChunkReader, request: Asked[T]) -> T:
    """Return what is asked for of all chunks put together."""
    passes = Passes(reader)
    certificate = certify_passes(request, passes)
    if all(passes.survey.sizes):
        warn_if_upside_down(auc(*reader.sample()), *passes.survey.sizes)
    return warned(certificate)


def calibrate_parts(run: RunPartitions, request: Asked[T], sample: Sample | None = None) -> T:
    """Return the certificate of data that some engine holds in partitions: `run(task)` is one pass over it.

    It calls the task on every partition, wherever that lives, and returns the sum of what comes back, in
    any order. The certificate is that of `calibrate_labelled`, byte for byte; only the upside-down warning
    rests on another AUC, `Survey.largest_auc`. With a sample, one pass usually suffices.

    >>> parts = [[([0.1, 0.9], [0, 1])], [], [([0.2], [0]), ([0.3], [0])]]
    >>> def run(task):
    ...     return task(1, parts[1]) + task(2, parts[2]) + task(0, parts[0])
    >>> calibrate_parts(run, Request()).normal.n
    3
    """
    return warned(certify_parts(run, request, sample))


def certify_parts(run: RunPartitions, request: Asked[T], sample: Sample | None = None) -> T:
    """Return the same without a warning of too few labels."""
    passes = Partitions(run, request.anomaly_label)
    return _certify_run(passes, request, () if sample is None else _guessed(request, sample))


def _guessed(request: Asked[T], sample: Sample) -> Bounds:
    """Return between which scores the sample puts the ranks that will be asked for."""
    guess = Guess(partial(request.certify, score_type="float64"), sample.parts)
    answer = sample.run(PartitionTask(guess, request.anomaly_label))
    # what is wrong with it is said when all partitions are read
    return answer.value[0] if answer.value is not None and answer.missing is None else ()


def calibrate_passes(run: RunPass, request: Asked[T]) -> T:
    """Return the certificate of data whose classes and NaN somebody else has seen to.

    `run(task)` calls `task(normal, anomalous)` with the float64 scores of every part and adds up what comes
    back. A task with `bounds` needs no scores beyond them.
    """
    return warned(_certify_run(run, request))


def _certify_run(run: RunPass, request: Asked[T], guessed: Bounds = ()) -> T:
    """Return the same without that warning; what lies between guessed bounds is found at once."""
    passes = GuessedPasses(run, guessed) if guessed else Passes(run)
    certificate = certify_passes(request, passes)
    if all(passes.survey.sizes):
        warn_if_upside_down(passes.survey.largest_auc, *passes.survey.sizes)
    return certificate


def calibrate_counted(counter: Counter, request: Asked[T]) -> T:
    """Return the certificate of data that an engine counts where it is; what is wrong there is refused.

    The certificate is that of `calibrate_labelled`, byte for byte; only the upside-down warning rests on
    another AUC. Unless the counts show that it is at least one half, it is that of a random sample, and the
    warning is as sure as so many points allow.
    """
    return warned(certify_counted(counter, request))


def certify_counted(counter: Counter, request: Asked[T]) -> T:
    """Return the same without a warning of too few labels."""
    found = Bracketed(counter, lambda low, high: request.certify(low, high, counter.score_type))
    if all(found.sizes) and least_auc(found.pair) < 0.5:
        drawn = found.sample.classes
        if all(scores.size for scores in drawn):
            warn_if_upside_down(auc(*drawn), *(scores.size for scores in drawn))
    return found.answer


def certify_passes(request: Asked[T], passes: Passes) -> T:
    """Return what is asked for of data that is read in passes, without a warning."""
    passes.find(request.ranks(passes.survey.sizes))
    return request.certify(*passes.classes, passes.score_type)
