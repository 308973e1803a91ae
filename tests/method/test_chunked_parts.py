import pickle
import warnings
from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.calibrate import Request, calibrate_labelled, certify
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.source import PartitionSource
from pac_wrap.ranks import passes
from pac_wrap.ranks.memory import Rank
from pac_wrap.ranks.passes import PartitionAnswer, PartitionTask
from support.examples import examples
from support.slow import slow_but
from support.strategies import RULES, refusal, scores_of_any_type

Part = tuple[Any, Any]
Sample = tuple[Any, int]
BAD = Request(anomaly_label="bad")


def calibrate_parts(run: Any, request: Request, sample: Sample | None = None) -> Certificate:
    return certify(PartitionSource(run, request.anomaly_label, sample), request)


def added(parts: list[PartitionAnswer], merges: Sequence[int]) -> PartitionAnswer:
    """Add up by a tree: each merge takes the part at that place and the one after it."""
    for place in merges:
        if len(parts) > 1:
            place %= len(parts) - 1
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return reduce(add, parts)


@pytest.mark.parametrize("options", slow_but(3, RULES.values()), ids=[*RULES])
@settings(max_examples=examples(25))
@given(values=scores_of_any_type(1, 40), data=st.data())
def test_every_order_and_merge_tree_gives_the_certificate_of_the_whole(
    options: dict[str, Any], values: Any, data: st.DataObject
) -> None:
    size = values.size
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=6)))
    parts = list(zip(np.split(values, cuts), np.split(labels, cuts), strict=True))
    order = data.draw(st.permutations(range(len(parts))))
    merges = data.draw(st.lists(st.integers(0, 100), max_size=8))

    def run(task: PartitionTask, some: Sequence[int] = order) -> PartitionAnswer:
        sent = pickle.dumps(task)
        # a pickle comes and goes as it would between machines; this one was made a line above
        answers = [pickle.dumps(pickle.loads(sent)(i, *parts[i])) for i in some]
        return added([pickle.loads(answer) for answer in answers], merges)

    # the sample may be any part, and say anything of how many there are
    sample = partial(run, some=order[:1]), data.draw(st.integers(1, 9))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        whole = calibrate_labelled(values, labels, **options).to_json()
        request = Request.of(options.get("guarantee"), options.get("overlap"))
        assert calibrate_parts(run, request).to_json() == whole
        assert calibrate_parts(run, request, sample).to_json() == whole


class Counted:
    """Runs tasks over parts, and counts the passes."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts, self.passes = parts, 0

    def __call__(self, task: PartitionTask) -> PartitionAnswer:
        self.passes += 1
        return reduce(add, [task(i, *part) for i, part in enumerate(self.parts)])

    def sample(self, place: int) -> Sample:
        return (lambda task: task(place, *self.parts[place])), len(self.parts)


def many_parts(shift: float, ordered: bool, size: int = 200_000) -> tuple[Any, Any, Counted]:
    rng = np.random.default_rng(8)
    labels = rng.random(size) < 0.2
    values = rng.normal(size=labels.size) + shift * labels
    order = np.argsort(values) if ordered else np.arange(values.size)
    values, labels = values[order], labels[order].astype(int)
    pieces = zip(np.split(values, 10), np.split(labels, 10), strict=True)
    return values, labels, Counted([*pieces])


@pytest.mark.parametrize("overlap", ["abstain", "abstain_always", "hold_fnr", "hold_fpr"])
@pytest.mark.parametrize("shift", [1.0, 5.0])
def test_one_pass_suffices_where_one_part_is_like_the_others(shift: float, overlap: str) -> None:
    values, labels, run = many_parts(shift, ordered=False)
    request = Request.of(overlap=overlap)
    found = calibrate_parts(run, request, run.sample(4))
    assert found == calibrate_labelled(values, labels, request)
    assert run.passes == 1


@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_part_unlike_the_others_costs_passes_and_nothing_else(place: int) -> None:
    values, labels, run = many_parts(3.0, ordered=True)
    found = calibrate_parts(run, Request(), run.sample(place))
    assert found == calibrate_labelled(values, labels)
    assert 1 < run.passes <= 4


def test_what_is_too_much_to_send_is_searched_for() -> None:
    values, labels, run = many_parts(3.0, ordered=False)
    whole = calibrate_labelled(values, labels)
    with patch.object(passes, "_FEW", 50):  # already the sample says so
        assert calibrate_parts(run, Request(), run.sample(4)) == whole
    assert run.passes > 1
    bounds = ((0.0, 1.0),)
    one, other = (passes.first_pass(bounds, np.full(200_000, 0.5), np.zeros(0)) for _ in range(2))
    assert one.at([Rank(0, 7)])[Rank(0, 7)].equal == (200_000, 0)
    assert (one + other).at([Rank(0, 7)]) == {}
    assert (one + other).survey.sizes == (400_000, 0)
    assert (one + other + one).at([Rank(0, 7)]) == {}


def test_many_ranks_are_not_guessed() -> None:
    values, labels, run = many_parts(1.0, ordered=False, size=6_000)
    request = Request.of(overlap="raise")
    assert calibrate_parts(run, request, run.sample(4)) == calibrate_labelled(values, labels, request)
    assert run.passes > 1


def test_a_sample_with_something_wrong_leaves_it_to_the_pass_to_say_so() -> None:
    run = Counted([([0.1], [0]), ([np.nan], [1]), ([0.3], [2]), ([0.4], [1])])
    for place in range(4):
        message = refusal(calibrate_parts, run, Request(), run.sample(place))
        assert message.startswith("labels of partition 2 must be 0 (normal) or 1 (anomalous), got 2")


def runs(parts: list[Part]) -> Any:
    return lambda task: reduce(add, [task(i, *part) for i, part in reversed([*enumerate(parts)])])


def test_upside_down_scores_are_warned_about() -> None:
    rng = np.random.default_rng(6)
    parts = [(rng.normal(size=100), np.ones(100)), (rng.normal(3.0, 1.0, 100), np.zeros(100))]
    with pytest.warns(UpsideDownWarning, match=r"AUC 0\.0"):
        calibrate_parts(runs(parts), Request())


def test_missing_scores_are_counted_and_the_first_partition_is_named() -> None:
    nan = np.nan
    one: list[Part] = [([0.1], [0]), ([0.2, nan, nan, 0.4], [0, 1, 1, 0])]
    assert refusal(lambda: calibrate_parts(runs(one), Request())) == (
        "scores must not be empty or NaN, got 2 of 4 in partition 1;"
        " drop those rows or make the detector score them"
    )
    three = [*one, ([nan], [0]), ([], []), ([nan, nan, 1.0], [0, 0, 1])]
    assert "got 2 of 4 in partition 1, 5 in 3 partitions;" in refusal(
        lambda: calibrate_parts(runs(three), Request())
    )


def test_what_is_wrong_with_a_partition_names_it() -> None:
    good = ([0.1, 0.9], [0, 1])
    for bad, sentence in (
        ((["a"], [0]), "scores of partition 2 must be real numbers"),
        (([0.1], [2]), "labels of partition 2 must be 0 (normal) or 1 (anomalous), got 2"),
        (([0.1], [0, 1]), "scores and labels of partition 2 must have the same length, got 1 and 2"),
        (([[0.1]], [0]), "scores of partition 2 must be one-dimensional"),
        (([[np.nan], [0.1]], [0]), "scores of partition 2 must be one-dimensional"),
        (([np.nan, 0.1], [0]), "scores of partition 2 must not contain NaN"),
    ):
        parts: list[Part] = [good, good, bad, (["b"], [0])]
        assert refusal(calibrate_parts, runs(parts), Request()).startswith(sentence)


def test_two_names_for_normal_points_are_refused() -> None:
    parts: list[Part] = [([0.1], ["ok"]), ([0.9], ["bad"]), ([0.2], ["fine"])]
    message = refusal(lambda: calibrate_parts(runs(parts), BAD))
    assert message.startswith(
        "labels of partition 2 must be 'bad' (anomalous) or one other value (normal), got 'fine'"
    )
    twice: list[Part] = [([0.1], ["ok"]), ([0.9, 0.2], ["bad", "ok"])]
    assert calibrate_parts(runs(twice), BAD).fpr.n == 2


def test_partitions_without_rows_change_nothing() -> None:
    parts: list[Part] = [([], []), ([0.1, 0.9], [0, 1]), ([], [])]
    assert calibrate_parts(runs(parts), Request()) == calibrate_labelled([0.1, 0.9], [0, 1])
    assert "both empty" in refusal(lambda: calibrate_parts(runs([([], []), ([], [])]), Request()))
