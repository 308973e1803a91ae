"""Sources of labelled scores: the interface that every engine implements, and sources without an engine."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_anomaly_mask, as_array
from pac_wrap.base.floats import Floats, ScoreType
from pac_wrap.method.promise import Population
from pac_wrap.method.robust.weights import Draws, as_weights
from pac_wrap.ranks import passes
from pac_wrap.ranks.counted import Bracketed, Counter, Spread, least_auc
from pac_wrap.ranks.memory import Pair, auc
from pac_wrap.ranks.passes import ChunkReader, Chunks, Passes

T = TypeVar("T")
CLASSES: Final = (Population("normal"), Population("anomalous"))
# populations, and how many points each has if that is known
Known = Mapping[Population, int | None]
# several populations can be requested as one
Populations = Population | tuple[Population, ...]


# a function of the scores of some populations, `ask(ranked, score_type=...)`; workers may run it
Ask = Callable[..., T]


class Auc(NamedTuple):
    """An AUC, and the numbers of normal and of anomalous points behind it."""

    area: float
    normal: int
    anomalous: int


class Source(Protocol):
    """Labelled scores, wherever they are stored."""

    # the draw by weights that these points survived, if there was one
    draws: Draws | None = None

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores, known after the first answer."""

    def populations(self) -> Known:
        """Return the classes, or their kinds, and how many points each has if that is known."""

    def answer(self, of: Sequence[Populations], ask: Ask[T]) -> T:
        """Return the result of `ask` on the scores of some populations, perhaps after calls with guesses."""

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return an AUC that shows whether scores are upside down; None if they surely are not."""

    def held(self) -> tuple[Floats, Floats] | None:
        """Return all normal and all anomalous scores, if they are in memory after an answer."""
        return None

    def origin(self) -> dict[str, Any]:
        """Return the facts for a provenance; nothing if the reader adds them itself."""
        return {}


def parts_of(known: Iterable[Population], of: Sequence[Populations]) -> list[tuple[int, ...]]:
    """Return for each wanted union the places of the known populations that it consists of."""
    listed, unions = list(known), [one if isinstance(one, tuple) else (one,) for one in of]
    return [
        tuple(
            place
            for place, one in enumerate(listed)
            if any(one.label == wanted.label and wanted.kind in (None, one.kind) for wanted in union)
        )
        for union in unions
    ]


class PassSource(Source):
    """Scores that are read in passes; each population is one part of a pass."""

    _known: Passes | None = None

    def __init__(self, run: passes.RunPass, populations: Known | None = None) -> None:
        self._run, self._populations = run, populations or dict.fromkeys(CLASSES)

    @property
    def score_type(self) -> ScoreType:
        return self._run.score_type or "float64"

    def populations(self) -> Known:
        return self._populations

    def answer(self, of: Sequence[Populations], ask: Ask[T]) -> T:
        parts = parts_of(self._populations, of)
        if self._known is None:
            self._known = self._begun(parts, ask)
        return ask(self._known.ranked(parts), score_type=self.score_type)

    def _begun(self, of: list[tuple[int, ...]], ask: Ask[T]) -> Passes:
        return Passes(self._run)

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return the largest AUC that the counts of the first pass allow."""
        assert self._known is not None
        parts = parts_of(self._populations, (normal, anomalous))
        low, high = (sum(self._known.sizes[one] for one in some) for some in parts)
        return Auc(self._known.survey.largest_auc(*parts), low, high) if low and high else None


class PartitionSource(PassSource):
    """Scores in partitions of an engine: `run(task)` returns the sum of the task's results for them."""

    def __init__(
        self,
        run: passes.RunPartitions,
        anomaly_label: object,
        sample: tuple[passes.RunPartitions, int] | None = None,
        populations: Known | None = None,
    ) -> None:
        super().__init__(passes.Partitions(run, anomaly_label), populations)
        self._anomaly_label, self._sample = anomaly_label, sample

    def _begun(self, of: list[tuple[int, ...]], ask: Ask[T]) -> Passes:
        """Return passes that begin with the sample's guesses of the needed ranks."""
        if self._sample is None:
            return Passes(self._run)
        run, shares = self._sample
        asked = partial(passes.guess, partial(ask, score_type="float64"), of, shares)
        answer = run(passes.PartitionTask(asked, self._anomaly_label))
        # errors are reported when all partitions are read
        bounds = answer.value[0] if answer.value is not None and not answer.missing else ()
        return Passes(self._run, bounds)


class ChunkSource(PassSource):
    """Chunks of scores and labels, or of survivors of a draw by their weights."""

    _run: ChunkReader

    def __init__(self, chunks: Chunks, anomaly_label: object, draws: Draws | None = None) -> None:
        reader = ChunkReader(chunks, anomaly_label)
        super().__init__(reader if draws is None else _WeightedChunks(chunks, anomaly_label, draws))
        self.draws = draws

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return the AUC of scores taken at even spacing in the given order."""
        assert self._known is not None
        low, high = self._known.sizes
        return Auc(auc(*self._run.sample()), low, high) if low and high else None


class _WeightedChunks(ChunkReader):
    """Passes over chunks of scores, labels and weights that see the survivors of the draw."""

    chunk = (3, "triple", "of scores, labels and weights")

    def __init__(self, chunks: Chunks, anomaly_label: object, draws: Draws) -> None:
        super().__init__(chunks, anomaly_label)
        self._draws = draws

    def _pairs(self) -> Iterator[Pair]:
        self._draws.restart()
        yield from super()._pairs()

    def _split(self, number: int, scores: ArrayLike, labels: ArrayLike, *rest: ArrayLike) -> Pair:
        normal, anomalous = super()._split(number, scores, labels)
        name, size = f"weights of chunk {number}", normal.size + anomalous.size
        weights, _ = as_weights(as_array(rest[0], name), name, size, self._draws.bound)
        for side, points in enumerate((normal, anomalous)):
            self._draws.see(side, points)
        mask = as_anomaly_mask(labels, self._anomaly_label)
        kept = self._draws.kept(mask, weights)
        return normal[kept[~mask]], anomalous[kept[mask]]


class CountedSource(Source):
    """Scores that an engine counts and checks where they are stored."""

    def __init__(self, counter: Counter, populations: Known | None = None) -> None:
        self._counter, self._populations = counter, populations or dict.fromkeys(CLASSES)
        self._bracketed: Bracketed[Any] | None = None

    @property
    def score_type(self) -> ScoreType:
        return self._counter.score_type

    def populations(self) -> Known:
        return self._populations

    def answer(self, of: Sequence[Populations], ask: Ask[T]) -> T:
        known = partial(ask, score_type=self.score_type)
        found = Bracketed(self._counter, parts_of(self._populations, of), known)
        self._bracketed = found
        return found.answer

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return the AUC of a random sample; None if the counts show that the AUC is at least one half."""
        assert self._bracketed is not None
        found, parts = self._bracketed, parts_of(self._populations, (normal, anomalous))
        spreads = [Spread.together([found.spreads[one] for one in some]) for some in parts]
        if not all(one.size for one in spreads) or least_auc(*spreads) >= 0.5:
            return None
        low, high = (np.concatenate([found.sample.classes[one] for one in some]) for some in parts)
        return Auc(auc(low, high), low.size, high.size) if low.size and high.size else None
