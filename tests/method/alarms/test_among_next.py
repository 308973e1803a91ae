"""How many of the next points are errors: exact against every order of all points, ties, and refusals."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    Abstain,
    Certificate,
    Guarantee,
    Hold,
    InputError,
    LabelNoise,
    Reviews,
    TotalVariation,
    calibrate,
    certify_curve,
)
from pac_wrap.method.alarms.precision import AmongNext
from pac_wrap.method.promise import OF_POOL, OF_SERIES
from pac_wrap.method.traffic.calibrate import calibrate_traffic
from pac_wrap.tails import batch_envelope, batch_tail

DELTA = 0.3


def orders(values: Any, n: int) -> Iterator[tuple[Any, Any]]:
    """Yield each way in which n of the values calibrate and the others come next; all are equally likely."""
    values = np.asarray(values, dtype=float)
    for chosen in combinations(range(values.size), n):
        mask = np.zeros(values.size, dtype=bool)
        mask[list(chosen)] = True
        yield values[mask], values[~mask]


def chances(errors: list[int], m: int) -> list[Fraction]:
    """Return the exact chance of at least v errors among the next m, for each v."""
    return [Fraction(sum(one >= v for one in errors), len(errors)) for v in range(m + 2)]


def smallest(exact: list[Fraction], delta: float) -> int:
    """Return the smallest number that is exceeded with chance delta at most."""
    return next(v for v in range(len(exact)) if exact[v + 1] <= delta)


def test_the_figure_of_the_theory() -> None:
    one = calibrate(range(1000), [], Guarantee(max_fpr=0.05, max_fnr=None)).among_next(500)[0]
    assert (one.most, round(1 - one.confidence, 4)) == (29, 0.0379)
    assert (
        str(one) == "at most 29 of the next 500 normal points raise a false alarm, with confidence 0.962084"
    )
    assert batch_tail(29, 1000, 38, 500) > 0.05


# ceilings that allow 0, 1 and 3 errors among six points
BUDGETS = pytest.mark.parametrize(("ceiling", "budget"), [(0.2, 0), (0.4, 1), (0.7, 3)])


@BUDGETS
@pytest.mark.parametrize("label", ["normal", "anomalous"])
@pytest.mark.parametrize("word", ["abstain", "hold"])
def test_every_order_keeps_the_number_beside_another_class(
    ceiling: float, budget: int, label: str, word: str
) -> None:
    """Where one threshold serves both classes, it may lie further away than that of the class alone."""
    n, m, errors, told = 6, 4, list[int](), set()
    side, other = label == "anomalous", np.arange(2.5, 8.5)
    overlap: Any = Abstain() if word == "abstain" else Hold("fnr" if side else "fpr")
    for known, coming in orders(range(n + m), n):
        normal, anomalous = (other, known) if side else (known, other)
        one = calibrate(normal, anomalous, Guarantee(ceiling, ceiling, DELTA, DELTA), overlap=overlap)
        errors.append(int((one.verdicts(coming) == (0 if side else 1)).sum()))
        told.add(next(one for one in one.among_next(m, delta=DELTA) if one.of.label == label))
    exact, tails = chances(errors, m), [batch_tail(v, n, budget, m) for v in range(m + 2)]
    assert all(float(exact[v]) <= tails[v] + 1e-12 for v in range(1, m + 1))
    assert [one.most for one in told] == [next(v for v in range(m + 1) if tails[v + 1] <= DELTA)]


@BUDGETS
@pytest.mark.parametrize("m", [1, 4])
def test_without_ties_the_chance_is_exact(ceiling: float, budget: int, m: int) -> None:
    errors, told = [], set()
    for known, coming in orders(range(6 + m), 6):
        one = calibrate(known, [], Guarantee(ceiling, None, DELTA))
        assert one.fpr.errors == budget
        errors.append(int((one.verdicts(coming) == 1).sum()))
        told.add(one.among_next(m, delta=DELTA)[0])
    exact = chances(errors, m)
    assert [batch_tail(v, 6, budget, m) for v in range(1, m + 1)] == [
        float(exact[v]) for v in range(1, m + 1)
    ]
    (found,) = told
    assert found.most == smallest(exact, DELTA)
    assert found.confidence == pytest.approx(float(1 - exact[found.most + 1]), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_with_ties_the_chance_is_a_bound(seed: int) -> None:
    """Also with infinities among the scores."""
    values = np.random.default_rng(seed).choice([-np.inf, 0.0, 1.0, 1.0, 2.0, np.inf], size=10)
    errors = [
        int((calibrate(known, [], Guarantee(0.4, None, DELTA)).verdicts(coming) == 1).sum())
        for known, coming in orders(values, 6)
    ]
    exact = chances(errors, 4)
    assert all(float(exact[v]) <= batch_tail(v, 6, 1, 4) for v in range(1, 5))


@pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")  # all are reviewed
@pytest.mark.parametrize("reviewed", [0, 2, 8])
@pytest.mark.parametrize("error", ["alarm", "false alarm"])
def test_of_traffic_the_number_holds_however_reviews_stopped(reviewed: int, error: str) -> None:
    """Exact once all points are reviewed, and a bound for reviews that stop at the first wrong alarm."""
    n, m = 7, 3
    anomalous = {9, 8, 6, 3}
    ceiling: dict[str, Any] = {"max_alarms": 0.4} if error == "alarm" else {"max_false_alarms": 0.4}
    errors, told = [], set()
    for known, coming in orders(range(n + m), n):
        truth = np.array([score in anomalous for score in known])
        reviews = np.where(np.argsort(np.argsort(-known)) < reviewed, truth, nan)
        if reviewed == 2:  # whoever finds a normal point stops
            wrong = np.flatnonzero((reviews == 0) & (known == known[reviews == 0].max(initial=-1)))
            reviews[known < (known[wrong].max() if wrong.size else -1)] = nan
        one = calibrate_traffic(known, reviews, Guarantee(**ceiling, delta_fpr=DELTA))
        assert one.fpr.errors == 1
        alarms = coming[one.verdicts(coming) == 1]
        errors.append(sum(error == "alarm" or score not in anomalous for score in alarms))
        told.add(one.among_next(m, delta=DELTA)[0])
    exact = chances(errors, m)
    tails = [batch_tail(v, n, 1, m) for v in range(m + 2)]
    assert all(float(exact[v]) <= tails[v] + 1e-12 for v in range(1, m + 1))
    if error == "alarm":
        assert [float(exact[v]) for v in range(1, m + 1)] == tails[1 : m + 1]
    (found,) = told
    assert (found.of.label, found.of.error) == ("traffic", error)
    assert found.most == next(v for v in range(m + 1) if tails[v + 1] <= DELTA)


def traffic(guarantee: Guarantee) -> Certificate:
    rng = np.random.default_rng(0)
    anomaly = rng.random(5000) < 0.02
    scores = rng.normal(4.0 * anomaly)
    return calibrate_traffic(scores, np.where(scores > 2.0, anomaly, nan), guarantee)


def test_the_fpr_of_traffic_is_counted_among_all_points() -> None:
    """Which of the next points are normal is not known, and their number need not be."""
    asked = Guarantee(max_fpr=0.01, max_fnr=None, reviews=Reviews(max_anomalies=0.05))
    (one,) = traffic(asked).among_next(1000)
    assert (one.of.label, one.most) == ("traffic", 13)
    assert str(one).startswith("at most 13 of the next 1,000 points of traffic raise a false alarm")


def test_each_group_and_each_kind_has_its_own_number() -> None:
    rng = np.random.default_rng(1)
    scores, reviews, by = rng.normal(size=4000), np.full(4000, nan), ["a", "b", "b", "b"] * 1000
    table = calibrate_traffic(scores, reviews, Guarantee(max_false_alarms=0.01), by=by)
    kinds = calibrate(
        range(1000), {"x": range(1000, 1600), "y": range(970, 1170)}, Guarantee(0.05, {"x": 0.05, "y": 0.1})
    )
    assert [one.of.kind for one in kinds.among_next(50)] == [None, "x", "y"]
    for certificate, sizes in ((table.certificates["a"], [1000]), (kinds, [1000, 600, 200])):
        told = zip(certificate.among_next(50), certificate.clauses, sizes, strict=False)
        for one, clause, n in told:
            assert clause.n == n
            assert clause.errors
            tails = [batch_tail(one.most + more, n, clause.errors, 50) for more in (0, 1)]  # type: ignore[operator]
            assert tails[1] <= 0.05 < tails[0]


PAIR = range(1000), range(900, 1900)
REFUSED = {
    "looks at scores": lambda: calibrate(*PAIR, overlap="raise"),
    "algorithm1 looks at": lambda: calibrate(*PAIR, overlap="algorithm1"),
    "curve looks at": lambda: certify_curve(*PAIR).at(950),
    "tolerates total variation up to 0.01": lambda: calibrate(*PAIR, Guarantee(shift=TotalVariation(0.01))),
    "contaminated labels": lambda: calibrate(*PAIR, Guarantee(label_noise=LabelNoise(0.01))),
    "depend on each other": lambda: replace(calibrate(*PAIR), assumptions=OF_SERIES),
    "or come from several": lambda: replace(calibrate(*PAIR), assumptions=OF_POOL),
    "too little is known": lambda: traffic(Guarantee(max_alarms=1e-6)),
    "coins": lambda: traffic(Guarantee(max_false_alarms=0.01, reviews=Reviews(rate=0.5))),
    "mistaken": lambda: traffic(Guarantee(max_false_alarms=0.01, reviews=Reviews(mistaken=0.1))),
    "how many points raise an alarm": lambda: traffic(Guarantee(min_precision=0.5)),
}


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_proof_is_refused_with_the_reason(reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        REFUSED[reason]().among_next(500)


def test_weights_are_refused() -> None:
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.5, 1.0, size=1000)
    one = calibrate(*PAIR, normal_weights=weights, anomalous_weights=weights, weight_bound=1.0)
    with pytest.raises(InputError, match="weights chose the calibration points"):
        one.among_next(10)


def test_a_side_without_a_number_says_why_beside_the_other() -> None:
    held = calibrate(*PAIR, overlap="hold_fnr").among_next(500)
    assert [one.most for one in held] == [None, 29]
    assert isinstance(held[0], AmongNext)
    assert str(held[0]) == (
        "no number of errors among the next 500 normal points is promised: hold_fnr looks at scores to find"
        " how many errors to allow"
    )


@pytest.mark.parametrize("points", [0, -1, 1.5, "many"])
def test_points_are_a_whole_number(points: Any) -> None:
    with pytest.raises(InputError, match="points must be a whole number"):
        calibrate(*PAIR).among_next(points)


def test_at_every_threshold_of_a_batch_the_envelope_holds_in_all_orders() -> None:
    """Equality in the number of paths; the bound is reached by the largest level allowed."""
    n, m, delta = 6, 4, 0.2
    limits = batch_envelope(n, m, delta)
    broken = total = 0
    for known, coming in orders(range(n + m), n):
        over = [(coming >= t).sum() > limits[(known >= t).sum()] for t in range(n + m)]
        broken, total = broken + any(over), total + 1
    assert 0 < broken / total <= delta
