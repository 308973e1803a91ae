"""A part by itself: what contradicts itself in it, what it says, and what was measured."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from pac_wrap.method.kinds.part import Measured, Part

from pac_wrap import calibrate

PART = calibrate(range(100), {"a": range(200, 300)}).fnr[0]


def test_a_sound_part_has_no_problem() -> None:
    assert list(PART.problems(-inf)) == []
    assert PART.words == "100 scores, error budget 1, exact confidence 0.962918, threshold 201.0"


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        (
            {"n": 10**13},
            ["there cannot be 10,000,000,000,000 scores of 'a'; there are at most 1,000,000,000,000"],
        ),
        ({"errors": 2}, ["the budget of 'a' is not 2"]),
        ({"n": 10}, ["the budget of 'a' is not 1"]),
        ({"n": 10, "errors": None}, ["the threshold of 'a' must be -inf: it has too few labels"]),
        ({"asked": 0.1}, ["the ceiling of 'a' is not the one that was asked for"]),
        ({"threshold": None}, ["the threshold of 'a' and its ceiling must both be there, or neither"]),
    ],
)
def test_every_problem_is_named(changes: dict[str, Any], problems: list[str]) -> None:
    assert list(replace(PART, **changes).problems(-inf)) == problems


def test_a_part_of_which_nothing_is_promised_says_so() -> None:
    assert Part(None, None, None, 0.05, 7, "0" * 16, None, None).words == "7 scores, nothing asked for"


@pytest.mark.parametrize(
    ("ceiling", "counts", "finding"),
    [
        (None, (1, 0, 2), "nothing promised"),
        (0.1, (0, 0, 0), "no points"),
        (0.1, (1, 0, 100), "within"),
        (0.1, (11, 0, 100), "above, not significantly"),
        (0.1, (30, 0, 100), "exceeded"),
    ],
)
def test_a_finding_is_a_word_or_two(
    ceiling: float | None, counts: tuple[int, int, int], finding: str
) -> None:
    (measured,) = Measured.together([("a", ceiling, counts)])
    assert measured.finding == finding
    assert str(measured).endswith(finding)
