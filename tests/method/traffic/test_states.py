"""Traffic comes from any source, divided by the state of its reviews; promises share one threshold."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from pac_wrap import Certificate, Guarantee, InputError, LabelWarning, Reviews, calibrate_traffic
from pac_wrap.base.floats import Floats
from pac_wrap.method.calibrate import answered
from pac_wrap.method.promise import Population
from pac_wrap.method.source import PassSource, parts_of
from pac_wrap.method.traffic.calibrate import PARTS, STATES, request_of

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
N: Final = 4000
_RNG = np.random.default_rng(5)
ANOMALY: Final = _RNG.random(N) < 0.1
SCORES: Final = np.round(_RNG.normal(3.0 * ANOMALY), 1)  # many ties
SEEN: Final = (SCORES > 1.5) | (_RNG.random(N) < 0.05)
REVIEWS: Final = np.where(SEEN, ANOMALY, np.nan)


class _Pass:
    """Scores of several populations, in one piece, known only through passes."""

    score_type: Final = "float64"

    def __init__(self, parts: list[Floats]) -> None:
        self._parts = parts

    def __call__(self, task: Any) -> Any:
        return task(*self._parts)


def _by_state(order: Iterable[Population]) -> list[Floats]:
    states = np.where(np.isnan(REVIEWS), 2, 1 - ANOMALY)
    codes = {"right": 0, "wrong": 1, "unreviewed": 2}
    return [SCORES[states == codes[str(one.kind)]] for one in order]


@pytest.mark.parametrize(
    "promises",
    [
        {"max_alarms": 0.08},
        {"max_false_alarms": "5 per 1,000"},
        {"max_false_alarms": 0.02, "reviews": Reviews(rate=0.5, mistaken=0.1)},
        {"max_fpr": 0.02, "reviews": Reviews(max_anomalies=0.2)},
        {"min_precision": 0.6, "max_alarms": 0.15},
    ],
)
def test_passes_over_states_in_any_order_give_the_certificate_of_memory(promises: dict[str, Any]) -> None:
    asked = Guarantee(**promises)
    known = dict.fromkeys(STATES[:3][::-1])
    source = PassSource(_Pass(_by_state(known)), known)
    request = request_of(asked, 0, [], independent=False)
    made = source.answer(PARTS, partial(answered, request))
    assert made == calibrate_traffic(SCORES, REVIEWS, asked)
    assert made.promises


def test_a_union_holds_each_population_once_and_lacks_what_is_unknown() -> None:
    known = [Population("traffic", "a"), Population("normal"), Population("traffic", "b")]
    wanted = (known[0], known[0], Population("traffic", "other"))
    assert parts_of(known, [Population("traffic"), wanted, known[1], ()]) == [(0, 2), (0,), (1,), ()]


def test_coins_without_a_single_review_justify_no_alarm() -> None:
    made = calibrate_traffic(SCORES, None, Guarantee(max_false_alarms=0.01, reviews=Reviews(rate=0.5)))
    assert made.rule.anomaly_from == np.inf
    assert made.traffic is not None
    assert made.traffic.alarms == 0


@pytest.mark.parametrize(("max_fnr", "separated"), [(0.4, True), (0.01, False)])
def test_precision_beside_labelled_anomalies_keeps_its_tested_threshold(
    max_fnr: float, separated: bool
) -> None:
    anomalous = _RNG.normal(3.0, size=800)
    asked = Guarantee(min_precision=0.6, max_fnr=max_fnr)
    made = calibrate_traffic(SCORES, REVIEWS, asked, anomalous=anomalous)
    precise = made.clauses[0]
    assert precise.kept
    assert made.rule.anomaly_from == precise.threshold
    assert (made.fnr.threshold or 0.0) > made.rule.anomaly_from if separated else not made.rule.single
    assert Certificate.from_json(made.to_json()) == made


def test_coins_beside_labelled_anomalies_are_read_again() -> None:
    asked = Guarantee(max_false_alarms=0.3, max_fnr=0.001, reviews=Reviews(rate=0.5))
    reviews = np.where(SCORES > 3.0, ANOMALY, np.nan)
    made = calibrate_traffic(SCORES, reviews, asked, anomalous=_RNG.normal(3.0, size=9000))
    assert not made.rule.single
    assert Certificate.from_json(made.to_json()) == made


MISSING: Final = Guarantee(max_false_alarms=0.5, delta_fpr=0.5)


@pytest.mark.parametrize(
    "reviews",
    [
        [1, 0, None],
        [True, False, np.nan],
        np.array([1.0, 0.0, np.nan], dtype=np.float16),
        np.array([1, 0, None], dtype=object),
        np.ma.array([1, 0, 1], mask=[False, False, True]),
        np.ma.array([1.0, 0.0, 1.0], mask=[False, False, True]),
        pd.array([1, 0, None], dtype="Int64"),
        pd.array([True, False, None], dtype="boolean"),
        pd.Series([1, 0, pd.NA], dtype=object),
        pd.Categorical([1, 0, None]),
    ],
    ids=lambda one: f"{type(one).__name__} {getattr(one, 'dtype', '')}",
)
def test_a_missing_review_is_none_however_it_is_written(reviews: Any) -> None:
    seen = calibrate_traffic([3.0, 2.0, 1.0], reviews, MISSING).traffic
    assert seen is not None
    assert (seen.found, seen.cleared) == (1, 1)


@pytest.mark.parametrize(
    ("reviews", "said"),
    [
        (["1", None, None], "got '1' at position 0"),
        ([1, "x", None], "got 'x' at position 1"),
        ([1, 0, 2], "got 2 at position 2"),
        ([1, 0, -1], "got -1 at position 2"),
        ([1, 0, 257], "got 257 at position 2"),
        ([1.0, 0.0, np.inf], "got inf at position 2"),
        ([0.5, 0.0, 1.0], "got 0.5 at position 0"),
        (np.array([1, 0, 1], dtype="M8[ns]"), "at position 0"),
        ([[1], [0], [1]], "one-dimensional"),
        ([[1], 0, 1], "reviews must be an array"),
        (np.array([[1], np.ones(2), None], dtype=object), "at position 0"),
        ([1, 0], "scores"),
    ],
)
def test_what_is_no_review_is_refused_in_one_sentence(reviews: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        calibrate_traffic([3.0, 2.0, 1.0], reviews, MISSING)


@pytest.mark.parametrize("review", [0.0, 1.0])
def test_a_reviewed_point_needs_a_score(review: float) -> None:
    with pytest.raises(InputError, match="the reviewed point at position 1 has no score"):
        calibrate_traffic([1.0, np.nan], [np.nan, review], MISSING)


def test_traffic_that_is_all_reviewed_is_warned_about_from_two_points_on() -> None:
    with pytest.warns(LabelWarning, match="every point was reviewed"):
        calibrate_traffic([2.0, 1.0], [1, 0], MISSING)
    calibrate_traffic([1.0], [0], MISSING)  # which would be an error here
    calibrate_traffic([2.0, np.nan], [0, np.nan], MISSING)
