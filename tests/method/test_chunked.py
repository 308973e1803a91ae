import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method import source as module
from pac_wrap.method.calibrate import Request, calibrate_chunks, calibrate_labelled
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.interface import Hold
from pac_wrap.method.strategies.raising import Algorithm1, Raise
from pac_wrap.ranks import passes
from pac_wrap.ranks.passes import ChunkReader, Passes, PassTask
from support.examples import examples
from support.slow import slow_but
from support.strategies import LARGEST, RULES, Floats, guarantee, refusal, scores_of_any_type

pytestmark = pytest.mark.usefixtures("each_kernel")

# many levels need many ranks
MANY_LEVELS: dict[str, Any] = {"overlap": Algorithm1(step=0.005)}
every_rule = pytest.mark.parametrize(
    "options", slow_but(3, [*RULES.values(), MANY_LEVELS]), ids=[*RULES, "many levels"]
)

Chunk = tuple[Any, Any]


class CountingReader(ChunkReader):
    """Counts the passes that it makes."""

    passes = 0

    def _batches(self) -> Any:
        self.passes += 1
        return super()._batches()


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[CountingReader]:
    """Collect the readers that are made, to ask them for the number of passes."""
    made: list[CountingReader] = []

    def remember(*args: Any) -> CountingReader:
        made.append(CountingReader(*args))
        return made[-1]

    monkeypatch.setattr(module, "ChunkReader", remember)
    return made


def result(calibration: Callable[[], Any]) -> tuple[str, list[str]]:
    """Return the certificate as JSON, and what was warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = calibration().to_json()
    return text, [str(one.message) for one in caught]


def cut(scores: NDArray[Any], labels: NDArray[Any], cuts: list[int]) -> list[Chunk]:
    return list(zip(np.split(scores, cuts), np.split(labels, cuts), strict=True))


@every_rule
@settings(max_examples=examples(25))
@given(values=scores_of_any_type(1, 40), wanted=guarantee, data=st.data())
def test_every_chunking_gives_the_certificate_of_the_whole(
    options: dict[str, Any], values: NDArray[Any], wanted: Guarantee, data: st.DataObject
) -> None:
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=values.size, max_size=values.size)))
    cuts = sorted(data.draw(st.lists(st.integers(0, values.size), max_size=6)))
    options = {"guarantee": wanted} | options
    whole = result(lambda: calibrate_labelled(values, labels, **options))
    parts = cut(values, labels, cuts)
    with patch.object(passes, "_FEW", data.draw(st.sampled_from([0, 5, passes._FEW]))):
        assert result(lambda: calibrate_chunks(lambda: iter(parts), **options)) == whole


@every_rule
@pytest.mark.parametrize(("shift", "kind"), [(0.5, np.float64), (2.0, np.float32), (6.0, np.float64)])
def test_many_scores_in_uneven_chunks(
    options: dict[str, Any], shift: float, kind: Any, readers: list[CountingReader]
) -> None:
    rng = np.random.default_rng(4)
    labels = rng.random(25_000) < 0.3
    values = (rng.normal(size=25_000) + shift * labels).astype(kind)
    parts = cut(values, labels.astype(int), [0, 1, 1, 7_000, 7_010, 24_999])
    whole = calibrate_labelled(values, labels, **options).to_json()
    # a tenth of what are few, of a tenth of the scores
    with patch.object(passes, "_FEW", passes._FEW // 10):
        assert calibrate_chunks(lambda: parts, **options).to_json() == whole
    overlap = Request.of(overlap=options.get("overlap")).overlap
    assert readers[0].passes <= (6 if isinstance(overlap, Hold) else 12 if isinstance(overlap, Raise) else 5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        *(
            pytest.param({"overlap": one}, marks=pytest.mark.slow)
            for one in ("hold_fnr", "raise", "algorithm1")
        ),
    ],
)
def test_upside_down_scores_get_the_same_warning(options: dict[str, Any]) -> None:
    # sorted, so that only evenly spaced scores tell the truth, and more than the AUC is taken on
    values = np.sort(np.random.default_rng(4).normal(size=60_000))
    labels = np.arange(60_000) % 3 == 0
    values[labels] -= 0.1
    whole = result(lambda: calibrate_labelled(values, labels, **options))
    # besides, that nothing is promised, exactly then
    assert len(whole[1]) == 1 + Certificate.from_json(whole[0]).empty
    parts = cut(values, labels, [11, 20_000, 20_001, 45_000])
    assert result(lambda: calibrate_chunks(lambda: parts, **options)) == whole
    with pytest.warns(UpsideDownWarning) as caught:
        calibrate_chunks(lambda: parts, **options)
    assert caught[0].filename == __file__


def test_labels_alone_may_leave_nothing_to_search_for(readers: list[CountingReader]) -> None:
    parts = [([2.0, 1.0] * 7, [0, 1] * 7), ([], [])]
    whole = result(lambda: calibrate_labelled([2.0, 1.0] * 7, [0, 1] * 7))
    assert result(lambda: calibrate_chunks(lambda: parts)) == whole
    assert len(whole[1]) == 2  # upside down, and too few
    # the second one picks the scores for the AUC
    assert readers[0].passes == 2


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [([0.0, LARGEST, inf], [inf, inf]), ([inf, inf, inf], [-inf, 0.0])],
    ids=["high", "low"],
)
@pytest.mark.parametrize("overlap", ["hold_fnr", "hold_fpr"])
def test_thresholds_at_the_ends_are_counted_by_one_more_pass(
    overlap: str, normal: list[float], anomalous: list[float]
) -> None:
    together, labels = np.repeat(normal + anomalous, 50), np.repeat([0, 1], [150, 100])
    whole = result(lambda: calibrate_labelled(together, labels, overlap=overlap))
    assert result(lambda: calibrate_chunks(lambda: [(together, labels)], overlap=overlap)) == whole


def test_mixed_types_across_chunks() -> None:
    rng = np.random.default_rng(1)
    parts: list[Chunk] = [
        (rng.integers(0, 9, 100), rng.integers(0, 2, 100)),
        (rng.normal(4, 3, 100).astype(np.float32), rng.integers(0, 2, 100).astype(bool)),
        ([1.5, 2], (0.0, 1.0)),
        (np.array([], dtype=object), []),
        (rng.normal(4, 3, 100)[::-1], rng.integers(0, 2, 100).astype(np.uint8)),
    ]
    values = np.concatenate([np.asarray(part[0], dtype=np.float64) for part in parts])
    labels = np.concatenate([np.asarray(part[1], dtype=np.int64) for part in parts])
    assert result(lambda: calibrate_chunks(lambda: parts)) == result(
        lambda: calibrate_labelled(values, labels)
    )


@pytest.mark.parametrize("names", [(0, 1), (1, -1), ("ok", "attack"), (2, 3)])
def test_labels_may_have_names(names: Any) -> None:
    labels = np.repeat(names, 100)
    values = np.arange(200.0)
    parts = cut(values, labels, [30, 120])
    whole = calibrate_labelled(values, labels, anomaly_label=names[1])
    assert calibrate_chunks(lambda: parts, anomaly_label=names[1]) == whole
    listed = [(part.tolist(), names.tolist()) for part, names in parts]
    assert calibrate_chunks(lambda: listed, anomaly_label=names[1]) == whole


NAN = float("nan")


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (
            ([0.0, NAN, NAN], [0, 1, 1]),
            "scores of chunk 2 must not contain NaN, got 2 of 3, the first at position 1",
        ),
        (([0.0], [0, 1]), "scores and labels of chunk 2 must have the same length, got 1 and 2"),
        (([0.0], [2]), "labels of chunk 2 must be 0 (normal) or 1 (anomalous), got 2"),
        ((["a"], [0]), "scores of chunk 2 must be real numbers"),
        ((np.zeros((1, 1)), [0]), "scores of chunk 2 must be one-dimensional"),
        (7, "chunk 2 must be a pair of scores and labels, got 7"),
        (([1.0],), "chunk 2 must be a pair of scores and labels, got ([1.0],)"),
    ],
)
def test_what_is_wrong_with_a_chunk_is_said_with_its_number(chunk: Any, message: str) -> None:
    parts: list[Any] = [([1.0], [0]), ([], []), chunk]
    assert refusal(lambda: calibrate_chunks(lambda: parts)).startswith(message)


def test_two_names_for_normal_points_are_refused_though_no_chunk_has_both() -> None:
    parts = [([1.0, 2.0], ["ok", "bad"]), ([1.0], ["bad"]), ([1.0], ["fine"])]
    message = refusal(lambda: calibrate_chunks(lambda: parts, anomaly_label="bad"))
    assert message.startswith(
        "labels of chunk 2 must be 'bad' (anomalous) or one other value (normal), got 'fine'"
    )


def test_one_shot_iterators_are_refused() -> None:
    parts: list[Chunk] = [([1.0], [0])]
    message = refusal(calibrate_chunks, iter(parts))
    assert "chunks must be a function that starts a fresh iteration" in message
    assert "got list_iterator" in message
    once = iter(parts * 100)
    assert "got the same iterator again" in refusal(lambda: calibrate_chunks(lambda: once))


def test_data_that_changes_between_passes_is_refused() -> None:
    sizes = iter([300, 299])  # enough labels for thresholds, which take a second pass

    def fewer() -> Iterator[tuple[Floats, Floats]]:
        size = next(sizes)
        yield np.arange(float(size)), np.arange(float(size)) % 2

    assert "changed between two passes" in refusal(lambda: calibrate_chunks(fewer))
    left = iter([100, 99])

    class Shrinking:
        score_type: ScoreType = "float64"

        def __call__(self, task: PassTask) -> Any:
            return task(np.arange(float(next(left))), np.zeros(0))

    passes = Passes(Shrinking())
    assert "changed between two passes" in refusal(lambda: passes.count_below((0,), 7.5))


@pytest.mark.parametrize("few", [0, 1])
@pytest.mark.parametrize("overlap", ["abstain", "raise", "algorithm1", "hold_fnr"])
def test_one_point_of_a_class_gives_the_certificate_of_the_whole(overlap: str, few: int) -> None:
    together, labels = np.arange(200.0), np.full(200, 1 - few)
    labels[150] = few
    whole = result(lambda: calibrate_labelled(together, labels, overlap=overlap))
    assert result(lambda: calibrate_chunks(lambda: [(together, labels)], overlap=overlap)) == whole


@pytest.mark.parametrize("parts", [[], [([], [])]])
def test_no_scores_at_all_are_refused(parts: list[Chunk]) -> None:
    message = refusal(calibrate_chunks, lambda: parts)
    assert message == "normal and anomalous are both empty; pass at least one labelled score"


def test_what_is_asked_is_checked_before_the_first_pass() -> None:
    def never() -> Iterator[Chunk]:
        raise AssertionError("the data was read")

    assert "growth must be" in refusal(lambda: calibrate_chunks(never, overlap=Algorithm1(growth="x")))  # type: ignore[arg-type]
    assert "guarantee must be a Guarantee" in refusal(calibrate_chunks, never, 0.05)
    assert "overlap must be one of" in refusal(lambda: calibrate_chunks(never, overlap="best"))


def test_memory_does_not_grow_with_the_scores(readers: list[CountingReader]) -> None:
    def generated(count: int) -> Callable[[], Iterator[tuple[Floats, Any]]]:
        def start() -> Iterator[tuple[Floats, Any]]:
            rng = np.random.default_rng(9)
            for _ in range(count):
                labels = rng.random(100_000) < 0.5
                yield rng.normal(size=100_000) + 3.0 * labels, labels

        return start

    peaks = []
    for count in (10, 40):
        tracemalloc.start()
        calibrate_chunks(generated(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert readers[-1].passes <= 4
    assert peaks[1] < 40_000_000
    assert peaks[1] < 1.5 * peaks[0] + 10_000_000
