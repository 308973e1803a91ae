"""The queue names the points whose reviews matter, and its numbers are those of every sequence of answers."""

from collections.abc import Iterator
from itertools import product
from math import inf, nan
from typing import Any, Final

import numpy as np
import pytest

from pac_wrap import Guarantee, InputError, ReviewQueue, Reviews, calibrate_traffic
from pac_wrap.method.traffic.review import edge_of
from support.slow import slow_but

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")
FALSE_ALARMS: Final = Guarantee(max_false_alarms=0.3, delta_fpr=0.5)
# with up to 8 points: budgets of 0 to 2, two that differ, one beside a ceiling of alarms, and precision
PROMISES: Final = [
    FALSE_ALARMS,
    Guarantee(max_false_alarms=0.5, delta_fpr=0.5),
    Guarantee(max_false_alarms=0.3, max_alarms=0.5, delta_fpr=0.5),
    Guarantee(max_false_alarms=0.6, max_fpr=0.3, delta_fpr=0.5, reviews=Reviews(max_anomalies=0.1)),
    Guarantee(min_precision=0.1, delta_fpr=0.7),
    Guarantee(min_precision=0.1, max_false_alarms=0.5, delta_fpr=0.7),
]


def cases(seed: int, count: int) -> Iterator[tuple[list[float], list[float]]]:
    """Yield a few scores with ties, infinities and gaps, and reviews from anywhere."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(1, 9))
        scores = rng.choice([-inf, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, 4.0, inf, nan], n)
        reviews = np.where(np.isnan(scores), nan, rng.choice([0.0, 1.0, nan, nan, nan], n))
        yield scores.tolist(), reviews.tolist()


def threshold(scores: Any, reviews: Any, asked: Guarantee) -> float:
    return edge_of(calibrate_traffic(scores, reviews, asked))


def completed(scores: list[float], reviews: list[float]) -> Iterator[list[float]]:
    """Yield every way to review all points that have no review."""
    open_places = [
        place for place, (s, r) in enumerate(zip(scores, reviews, strict=True)) if r != r and s == s
    ]
    for answers in product([0.0, 1.0], repeat=len(open_places)):
        found = list(reviews)
        for place, answer in zip(open_places, answers, strict=True):
            found[place] = answer
        yield found


def most_wrong(scores: list[float], reviews: list[float], asked: Guarantee) -> int:
    """Return the most wrong answers that any sequence has before the queue is done."""
    queue = ReviewQueue(scores, asked, reviews)
    if not queue.next().size:
        return 0
    place = int(queue.next()[0])
    return max(
        (answer == 0.0) + most_wrong(scores, [*reviews[:place], answer, *reviews[place + 1 :]], asked)
        for answer in (0.0, 1.0)
    )


@pytest.mark.parametrize("asked", PROMISES, ids=str)
@pytest.mark.parametrize(("seed", "count"), slow_but(1, [(0, 12), (1, 150)], several=True))
def test_done_means_that_no_answers_lower_the_threshold(asked: Guarantee, seed: int, count: int) -> None:
    open_ones = 0
    for scores, reviews in cases(seed, count):
        queue, now = ReviewQueue(scores, asked, reviews), threshold(scores, reviews, asked)
        lowest = min(threshold(scores, one, asked) for one in completed(scores, reviews))
        assert queue.done == (lowest == now)
        open_ones += not queue.done
        # points that are not named change nothing, whatever is found there
        named = set(queue.next(99).tolist())
        for some in list(completed(scores, reviews))[::5]:
            if not queue.done:
                kept = [some[place] if place in named else old for place, old in enumerate(reviews)]
                assert threshold(scores, kept, asked) == threshold(scores, some, asked)
        places = queue.next(99)
        order = [(-scores[place], place) for place in places.tolist()]
        assert order == sorted(order)
        assert np.isnan(np.asarray(reviews)[places]).all()
    assert count // 15 < open_ones < count


@pytest.mark.parametrize("asked", PROMISES[:4], ids=str)
def test_wrong_left_is_the_most_wrong_answers_that_any_sequence_has(asked: Guarantee) -> None:
    found = set()
    for scores, reviews in cases(2, 25):
        left = ReviewQueue(scores, asked, reviews).wrong_left
        assert left == most_wrong(scores, reviews, asked)
        found.add(left)
    assert len(found) > 1


def test_wrong_ones_further_down_and_ties_are_counted() -> None:
    asked = Guarantee(max_false_alarms=0.3, delta_fpr=0.3)  # of ten points, one false alarm
    for reviews, left in (
        ([nan] * 4, 2),
        ([nan, 0.0, 0.0, nan], 1),  # the highest wrong: two wrong ones
        ([nan, nan, 0.0, 0.0], 2),
        ([0.0, nan, 0.0, 0.0], 1),
    ):
        queue = ReviewQueue([*range(10, 0, -1)], asked, reviews + [nan] * 6)
        assert (queue.wrong_left, queue.done) == (left, False)
    # nothing below the second wrong one is named
    below = ReviewQueue([*range(10, 0, -1)], asked, [nan, nan, 0.0, 0.0] + [nan] * 6)
    assert below.next(9).tolist() == [0, 1]
    assert ReviewQueue([1.0, 2.0] * 100, asked).next(200).tolist() == [*range(1, 200, 2), *range(0, 200, 2)]
    tied = ReviewQueue([10.0, 9.0, 9.0, *range(7)], asked, [nan, 0.0, 0.0] + [nan] * 7)
    assert (tied.wrong_left, tied.done, tied.next(5).size) == (0, True, 0)


def test_answers_go_in_one_by_one_and_replace_each_other() -> None:
    rng = np.random.default_rng(4)
    truth = rng.random(3000) < 0.02
    scores = np.round(rng.normal(3.0 * truth), 1)
    queue, asked = ReviewQueue(scores, Guarantee(max_false_alarms=0.01)), 0
    while not queue.done:
        before, left = queue.certificate.rule.anomaly_from, queue.wrong_left
        place = queue.next()
        queue.add(place, truth[place])
        assert queue.certificate.rule.anomaly_from <= before
        assert queue.wrong_left is not None
        assert left is not None
        assert queue.wrong_left <= left - (not truth[place[0]])
        asked += 1
    assert np.count_nonzero(queue.reviews >= 0) == asked
    assert queue.certificate == calibrate_traffic(scores, queue.reviews, queue.guarantee)
    assert str(queue).endswith("; no further review lowers the threshold")
    everything = calibrate_traffic(scores, truth.astype(float), queue.guarantee)
    assert queue.certificate.rule == everything.rule
    assert asked < 300
    first, now = int(np.flatnonzero(queue.reviews == 0)[0]), queue.certificate.rule.anomaly_from
    queue.add(first, 1)  # somebody looked again
    assert queue.reviews[first] == 1.0
    assert queue.certificate.rule.anomaly_from <= now
    assert queue.next().size
    assert "1 more wrong alarm end" in str(queue)


def test_the_highest_points_alone_are_enough() -> None:
    for scores, reviews in cases(3, 60):
        whole = ReviewQueue(scores, FALSE_ALARMS, reviews)
        values, seen = np.asarray(scores), np.asarray(reviews)
        wrong = sorted(values[seen == 0], reverse=True)[: (whole.certificate.fpr.errors or 0) + 1]
        unseen = sorted(values[np.isnan(seen) & ~np.isnan(values)], reverse=True)[:3]
        few = ReviewQueue.of_highest(
            whole.certificate, np.array(wrong + unseen), np.repeat([0.0, nan], [len(wrong), len(unseen)])
        )
        assert (few.wrong_left, few.done) == (whole.wrong_left, whole.done)
        assert np.array(wrong + unseen)[few.next(3)].tolist() == values[whole.next(3)].tolist()
        with pytest.raises(InputError, match="calibrate again with the new reviews"):
            few.add([0], [1])


def test_what_no_review_can_gain_is_done_at_once() -> None:
    for scores, asked in (
        ([1.0] * 5, Guarantee(max_false_alarms=0.001)),  # too few points
        ([1.0] * 5, Guarantee(max_alarms=0.5, delta_fpr=0.5)),  # needs no review
        ([nan] * 90, Guarantee(max_false_alarms=0.1)),
        ([-inf] * 90, Guarantee(max_false_alarms=0.1)),
    ):
        queue = ReviewQueue(scores, asked)
        assert queue.done
        assert not queue.wrong_left
        assert queue.next(9).tolist() == []


QUEUE: Final = ReviewQueue([3.0, 2.0, nan, 1.0], FALSE_ALARMS)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ReviewQueue([[1.0]], FALSE_ALARMS), "one-dimensional"),
        (lambda: ReviewQueue([], FALSE_ALARMS), "scores are empty"),
        (lambda: ReviewQueue([1.0], FALSE_ALARMS, [2.0]), "reviews must be 1"),
        (lambda: ReviewQueue([1.0], FALSE_ALARMS, [nan, nan]), "same length|scores has"),
        (lambda: ReviewQueue([nan], FALSE_ALARMS, [1.0]), "has no score"),
        (lambda: ReviewQueue([1.0], Guarantee(0.05)), "max_fpr from traffic needs"),
        (lambda: ReviewQueue([1.0], 0.05), "traffic needs a promise"),  # type: ignore[arg-type]
        (lambda: ReviewQueue([1.0], Guarantee(max_alarms=0.1, max_fnr=0.1)), "it has no max_fnr"),
        (
            lambda: ReviewQueue([1.0], Guarantee(max_fnr=0.1, reviews=Reviews(audits=0.1))),
            "it has no max_fnr",
        ),
        (
            lambda: ReviewQueue([1.0], Guarantee(max_false_alarms=0.1, reviews=Reviews(rate=0.5))),
            "no rate of reviews below 1",
        ),
        (lambda: QUEUE.next(0), "n must be a whole number, 1 or more"),
        (lambda: QUEUE.next(1.5), "n must be a whole number"),  # type: ignore[arg-type]
        (lambda: QUEUE.add([4], [1]), "whole numbers from 0 to 3"),
        (lambda: QUEUE.add([-1], [1]), "whole numbers from 0 to 3"),
        (lambda: QUEUE.add([0.0], [1]), "whole numbers from 0 to 3"),
        (lambda: QUEUE.add([True], [1]), "whole numbers from 0 to 3"),
        (lambda: QUEUE.add([[0]], [1]), "whole numbers from 0 to 3"),
        (lambda: QUEUE.add([0, 1], [1]), "positions has 2|same length"),
        (lambda: QUEUE.add([0], [nan]), "none may be missing"),
        (lambda: QUEUE.add([0], [2]), "got 2 at position 0"),
        (lambda: QUEUE.add([2], [1]), "position 2 has no score"),
        (lambda: QUEUE.add([0, 0], [1, 0]), "there twice"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_changes_nothing(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
    assert np.isnan(QUEUE.reviews).all()
