"""What the points of a class are worth: against cuts made in a plain loop, at ties, infinities and edges."""

from math import ceil, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.series import Dependence, EffectiveSize, dependence, effective_size
from support.strategies import Floats

EITHER_SIDE = 15
# few values and hence ties; infinities and both zeros among them
tied = st.lists(st.sampled_from([-inf, -1.5, -0.0, 0.0, 0.5, 2.0, inf]), min_size=1, max_size=90)
drawn = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).normal(size=40 + seed % 140).tolist()
)


def by_loop(values: list[float], errors: int) -> float | None:
    """Return the least effective size over the cuts nearest to a half, a quarter, a tenth and the errors."""
    n = len(values)
    above = {sum(value >= edge for value in values): edge for edge in values}
    usable = sorted((count for count in above if EITHER_SIDE <= count <= n - EITHER_SIDE), reverse=True)
    found = [
        dependence([value >= above[min(usable, key=lambda count: abs(count - wanted))] for value in values])
        for wanted in (0.5 * n, 0.25 * n, 0.1 * n, errors)
        if usable and wanted >= EITHER_SIDE
    ]
    return min((one.effective for one in found), default=None)


@given(tied | drawn, st.integers(0, 40))
def test_it_is_the_least_over_the_cuts_of_a_plain_loop(values: list[float], errors: int) -> None:
    found = effective_size(values, errors=errors)
    assert found.n == len(values)
    assert found.effective == by_loop(values, errors)
    mirrored = effective_size([-value for value in values], anomalous=True, errors=errors)
    assert mirrored.effective == found.effective


@given(drawn)
def test_only_the_order_of_scores_counts(values: list[float]) -> None:
    ranks = np.argsort(np.argsort(values)).astype(float)
    ends = np.where(ranks == ranks.max(), inf, np.where(ranks == 0, -inf, np.exp(ranks)))
    assert (
        effective_size(values).effective == effective_size(ranks).effective == effective_size(ends).effective
    )


def test_normal_points_are_judged_by_their_high_scores_and_anomalous_ones_by_their_low_ones() -> None:
    # of 400 independent points the 40 lowest stand in one run
    others = 40.0 + np.random.default_rng(5).permutation(360)
    scores = np.concatenate([others[:100], np.arange(40.0), others[100:]])
    normal, anomalous = effective_size(scores), effective_size(scores, anomalous=True)
    assert normal.effective is not None
    assert anomalous.effective is not None
    assert anomalous.effective == dependence(scores < 40).effective < normal.effective / 2


def test_errors_at_the_threshold_are_judged_if_there_are_15_of_them() -> None:
    # of 865 independent points the 20 highest stand in one run
    random = np.random.default_rng(7)
    scores = random.permutation(865).astype(float)
    scores[scores >= 845] = random.permutation(20) / 100
    scores[400:420] = 1000 + np.arange(20.0)
    without, with_errors = effective_size(scores), effective_size(scores, errors=20)
    assert without.effective is not None
    assert with_errors.effective == dependence(scores >= 1000).effective < without.effective / 3
    assert effective_size(scores, errors=14).effective == without.effective
    cut = dependence(scores >= 1005).effective
    assert effective_size(scores, errors=15).effective == min(cut, without.effective) == cut


@pytest.mark.parametrize(
    ("scores", "known"),
    [
        (np.arange(29.0), False),
        (np.arange(30.0), True),
        (np.zeros(500), False),
        (np.full(500, inf), False),
        (np.repeat([0.0, 1.0], [486, 14]), False),
        (np.repeat([0.0, 1.0], [485, 15]), True),
        (np.repeat([0.0, 1.0], [14, 486]), False),
        (np.repeat([-inf, inf], [15, 485]), True),
        (np.array([-0.0, 0.0] * 100), False),
        ([0.5], False),
        ([], False),
    ],
)
def test_nothing_is_said_unless_15_points_lie_on_either_side_of_a_score(scores: Any, known: bool) -> None:
    found = effective_size(scores)
    assert (found.effective is not None) == (found.dependence is not None) == known
    assert found.misleading  # none of these points is independent, or nobody can say


def made(n: int = 100, effective: float = 60.0, lag: int = 1, events: int | None = None) -> EffectiveSize:
    return EffectiveSize(n, Dependence(n, effective, lag, np.ones(1)), events)


def test_half_of_the_points_is_not_yet_misleading() -> None:
    assert not made(effective=50.0).misleading
    assert made(effective=49.9).misleading


@pytest.mark.parametrize(
    ("events", "misled", "effective"), [(1, True, 1.0), (2, True, 2.0), (3, False, 60.0)]
)
def test_one_or_two_events_are_worth_no_more_than_that(events: int, misled: bool, effective: float) -> None:
    assert (made(events=events).misleading, made(events=events).effective) == (misled, effective)
    assert EffectiveSize(20, None, events).effective == (effective if misled else None)


def test_two_windows_are_told_of_as_more_than_one() -> None:
    text = EffectiveSize(2, None, 2).warning("anomalous", 60, 1)
    assert str(text).startswith("2 anomalous windows of only 2 events can tell little")


def test_windows_are_to_be_as_far_apart_as_they_depend_and_as_few_as_they_are_worth() -> None:
    assert made(effective=20.0, lag=9).apart == 9
    # a weak dependence that lasts is not seen at the first lag
    assert made(effective=20.1, lag=1).apart == ceil(100 / 20.1) == 5
    assert made(effective=100.0).apart == EffectiveSize(5, None).apart == 1


@pytest.mark.parametrize(("needed", "short"), [(11, False), (12, True)])
def test_spacing_is_advised_only_if_enough_windows_would_remain(needed: int, short: bool) -> None:
    text = made(effective=20.0, lag=9).warning("normal", 60, needed)
    assert text is not None
    assert ("take windows about 540 steps apart" in text) != short
    assert (f"fewer than the {needed} that are needed would remain" in text) == short


def test_all_is_well_without_a_warning() -> None:
    assert made().warning("normal", 60, 22) is None
    assert made(events=3).warning("anomalous", 60, 22) is None


@pytest.mark.parametrize("scores", [[0.1, np.nan], [[0.1, 0.2]], ["a"]])
def test_what_are_no_scores_is_refused(scores: Any) -> None:
    with pytest.raises(InputError):
        effective_size(scores)


def test_an_orientation_is_true_or_false() -> None:
    with pytest.raises(InputError, match="anomalous must be one of True, False; got 'yes'"):
        effective_size([0.1], anomalous="yes")  # type: ignore[arg-type]


def test_the_scores_stay_as_they_are() -> None:
    scores: Floats = np.random.default_rng(0).normal(size=60)
    before = scores.copy()
    effective_size(scores, anomalous=True)
    np.testing.assert_array_equal(scores, before)
