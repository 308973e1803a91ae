"""How two classes share a confidence: by their counts alone, valid exactly, and as good as can be."""

from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    Certificate,
    DependenceWarning,
    Guarantee,
    Hold,
    LabelUntil,
    PACWrap,
    calibrate,
    calibrate_chunks,
    plan,
)
from pac_wrap.report.numbers import sure
from pac_wrap.series import calibrate_points, window_points
from pac_wrap.tables.calibrate import calibrate as calibrate_file
from pac_wrap.tails.bounds import Sharing, split_confidence
from support.slow import slow_but

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
RNG = np.random.default_rng(4)


def tails(n: int, rate: float) -> list[Fraction]:
    """Return F(0; n, rate), F(1; n, rate), ..., exactly."""
    p = Fraction(rate)
    found, total = [], Fraction(0)
    for k in range(n):
        total += comb(n, k) * p**k * (1 - p) ** (n - k)
        found.append(total)
    return found


def budget(exact: list[Fraction], delta: float) -> int | None:
    return max((k for k, tail in enumerate(exact) if tail <= Fraction(delta)), default=None)


CASES = [
    (int(a), int(b), float(e0), float(e1), float(c))
    for a, b, e0, e1, c in zip(
        10 ** RNG.uniform(0.5, 2.2, 60),
        10 ** RNG.uniform(0.5, 2.2, 60),
        RNG.uniform(0.02, 0.4, 60),
        RNG.uniform(0.02, 0.4, 60),
        RNG.uniform(0.5, 0.99, 60),
        strict=True,
    )
]


def test_the_deltas_keep_the_confidence_exactly_and_leave_a_budget_wherever_any_do() -> None:
    """Against all pairs of budgets there are: none that keeps the confidence has a much larger product."""
    best_found = lacking = 0
    for n0, n1, e0, e1, c in CASES[:30]:
        exact = tails(n0, e0), tails(n1, e1)
        deltas = split_confidence(c, Sharing((n0,), (e0,)), Sharing((n1,), (e1,)))
        budgets = [budget(side, delta) for side, delta in zip(exact, deltas, strict=True)]
        kept = Fraction(1)
        for side, k in zip(exact, budgets, strict=True):
            kept *= 1 if k is None else 1 - side[k]
        assert kept >= Fraction(c) - Fraction(1, 10**12), (n0, n1, e0, e1, c)
        sure = [1 - np.array(side, dtype=float) for side in exact]
        products = np.outer(np.arange(1, n0 + 1), np.arange(1, n1 + 1))
        possible = products[np.outer(*sure) >= c + 1e-9]
        if not possible.size:
            lacking += 1
            assert None in budgets
            # one class that has labels enough for itself is not given up as well
            alone = any(1 - side[0] >= Fraction(c) for side in exact)
            assert (budgets != [None, None]) == alone
            continue
        i, j = budgets
        assert i is not None
        assert j is not None
        assert (i + 1) * (j + 1) >= 0.8 * possible.max()
        best_found += (i + 1) * (j + 1) == possible.max()
    assert lacking >= 3
    assert best_found >= 0.8 * (30 - lacking)


@pytest.mark.parametrize(
    ("normal", "anomalous", "budgets"),
    [
        (126, 59, (0, 0)),
        (59, 126, (0, 0)),
        (125, 59, (2, None)),
        (72, 72, (0, 0)),
        (71, 71, (0, None)),
        (10, 10, (None, None)),
        (3000, 200, (126, 4)),
    ],
)
def test_59_anomalies_suffice_once_there_are_126_normals(
    normal: int, anomalous: int, budgets: tuple[int | None, int | None]
) -> None:
    asked = Guarantee(confidence=0.95)
    found = calibrate(np.arange(float(normal)), np.arange(float(anomalous)) + normal, asked)
    assert found.fpr.budget is not None
    assert found.fnr.budget is not None
    assert (found.fpr.budget.errors, found.fnr.budget.errors) == budgets
    assert found.confidence >= 0.95
    if None not in budgets:
        assert f"both together with {sure(found.confidence)} confidence." in " ".join(str(found).split())


def test_what_a_class_lacks_is_what_it_takes() -> None:
    """The number of labels that the report asks for is the least with which both ceilings are promised."""
    normal = np.arange(100.0)
    lacking = calibrate(normal, np.arange(40.0) + 200, Guarantee(confidence=0.95))
    assert lacking.fnr.budget is not None
    needed = 40 + lacking.fnr.budget.missing
    assert needed == 61
    for n, enough in ((needed, True), (needed - 1, False)):
        found = calibrate(normal, np.arange(float(n)) + 200, Guarantee(confidence=0.95))
        assert found.empty is not enough


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")
@pytest.mark.parametrize(
    "overlap", slow_but(3, ["abstain", "hold_fnr", "hold_fpr", "abstain_always", Hold("fnr", False)])
)
def test_no_score_decides_the_deltas_and_every_way_in_gives_the_same(overlap: Any, tmp_path: Path) -> None:
    asked = Guarantee(0.05, 0.1, confidence=0.93)
    seen = set()
    for shift in (0.0, 1.0, 5.0):
        normal, anomalous = RNG.normal(0, 1, 400), RNG.normal(shift, 1, 90)
        found = calibrate(normal, anomalous, asked, overlap=overlap)
        seen.add((found.guarantee.delta_fpr, found.guarantee.delta_fnr))
        assert found.confidence >= 0.93
        assert found.verify(normal, anomalous)
        assert Certificate.from_json(found.to_json()) == found
        order = RNG.permutation(490)
        scores, labels = np.append(normal, anomalous)[order], np.repeat([0, 1], [400, 90])[order]
        pieces = list(zip(np.array_split(scores, 5), np.array_split(labels, 5), strict=True))
        assert calibrate_chunks(partial(list, pieces), asked, overlap=overlap) == found
        file = tmp_path / "scores.csv"
        rows = (f"{score!r},{label}" for score, label in zip(scores.tolist(), labels.tolist(), strict=True))
        file.write_text("\n".join(["score,label", *rows]), encoding="utf-8")
        assert calibrate_file(file, asked, score="score", label="label", overlap=overlap) == found
    assert len(seen) == 1
    assert seen != {(0.035, 0.035)}


def test_kinds_share_by_their_counts_too() -> None:
    """One delta for all kinds of a class, since the worst of them fails together with the others."""
    kinds = {f"kind {place}": np.arange(72.0) + 200 for place in range(20)}
    normal = np.arange(72.0)
    found = calibrate(normal, kinds, Guarantee(confidence=0.95))
    assert not found.empty
    assert found.confidence >= 0.95
    assert found.verify(normal, kinds)
    few = calibrate(normal, {name: scores[:71] for name, scores in kinds.items()}, Guarantee(confidence=0.95))
    assert few.empty
    assert few.confidence >= 0.95
    # a class alone has all of it
    alone = calibrate(
        [], {name: scores[:59] for name, scores in kinds.items()}, Guarantee(None, confidence=0.95)
    )
    assert not alone.empty
    assert {promise.delta for promise in alone.promises} == {0.05}


@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr", "hold_fpr"])
def test_kinds_keep_the_confidence_that_was_asked_for(overlap: str) -> None:
    for _ in range(15):
        sizes = 10 ** RNG.uniform(1.5, 3, 4)
        normal = {"day": RNG.normal(0, 1, int(sizes[0])), "night": RNG.normal(0, 1, int(sizes[1]))}
        anomalous = {"worn": RNG.normal(4, 1, int(sizes[2])), "torn": RNG.normal(4, 1, int(sizes[3]))}
        rates: Any = {"worn": 0.1, "torn": 0.07} | ({None: 0.05} if RNG.random() < 0.5 else {})
        c = float(RNG.uniform(0.6, 0.99))
        found = calibrate(normal, anomalous, Guarantee(0.06, rates, confidence=c), overlap=overlap)
        assert found.confidence >= c


@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr", "hold_fpr"])
def test_a_ceiling_on_all_kinds_together_has_a_delta_that_no_number_of_a_kind_decides(overlap: str) -> None:
    """It holds on average over how many points each kind has: their mix goes with their scores."""
    asked = Guarantee(0.05, {"worn": 0.1, "torn": 0.1, None: 0.08}, confidence=0.9)
    seen = set()
    for worn in (60, 200, 340):
        kinds = {"worn": RNG.normal(4, 1, worn), "torn": RNG.normal(5, 1, 400 - worn)}
        found = calibrate(RNG.normal(0, 1, 300), kinds, asked, overlap=overlap)
        assert found.confidence >= 0.9
        seen.add(tuple(promise.delta for promise in found.guarantee.promises))
    assert len(seen) == 1


def test_where_the_counts_may_not_decide_the_deltas_are_equal() -> None:
    asked = Guarantee(confidence=0.95)
    normal, anomalous = np.arange(3000.0), np.arange(200.0) + 2990
    # they choose a level on both classes: the deltas add up
    for overlap in ("raise", "algorithm1"):
        found = calibrate(normal, anomalous, asked, overlap=overlap)
        assert (found.guarantee.delta_fpr, found.guarantee.delta_fnr) == (0.025, 0.025)
    # how many points count depends on their scores
    weights = np.full(3000, 0.5), np.full(3000, 0.6)
    found = calibrate(normal, anomalous, asked, normal_weights=weights, weight_bound=1.0)
    assert (found.guarantee.delta_fpr, found.guarantee.delta_fnr) == (0.025, 0.025)
    assert found.confidence >= 0.95
    # windows of one series, and several rows of one unit, depend on each other
    points = window_points(np.append(normal, anomalous), np.repeat([0, 1], [3000, 200]), length=1, every=1)
    with pytest.warns(DependenceWarning):
        found = calibrate_points(points, asked)
    assert (found.guarantee.delta_fpr, found.guarantee.delta_fnr) == (0.025, 0.025)
    assert found.confidence == 0.95
    rows = np.append(normal, anomalous)[:, None]
    wrap = PACWrap(lambda X: X[:, 0], confidence=0.95)
    wrap.fit(rows, np.repeat([0, 1], [3000, 200]), units=np.arange(3200) // 2)
    assert wrap.certificate_.fnr.asked.delta == 0.025
    assert wrap.certificate_.confidence == 0.950625  # no unit has points of both classes
    # how many labels there will be is not known
    until = LabelUntil(asked)
    assert [one.delta for one in until._request.guarantee.promises] == [0.025320565] * 2


def test_a_plan_shares_a_confidence_as_calibrate_does() -> None:
    for n0, n1 in [(126, 59), (125, 59), (3000, 200), (40, 40), (59, 1000), (500, 500), (0, 300)]:
        asked = Guarantee(0.05, 0.06, confidence=0.95)
        planned = plan(asked, normal=n0, anomalous=n1)
        found = calibrate(np.arange(float(n0)), np.arange(float(n1)) + n0, asked)
        assert [one.at_hand for one in planned.needed] == [found.fpr.budget, found.fnr.budget]
    # labels that a plan says are enough are, whichever class has been counted
    for given, expected in {None: 72, 100: 61, 126: 59, 1000: 59}.items():
        low, high = (one.labels[0] for one in plan(Guarantee(confidence=0.95), normal=given).needed)
        assert high == expected
        count = low if given is None else given
        for fewer in (0, 1):
            made = calibrate(
                np.arange(float(count)), np.arange(float(high - fewer)) + 2000, Guarantee(confidence=0.95)
            )
            assert made.empty is bool(fewer)
    assert plan(Guarantee(confidence=0.95), normal=10**7).needed[1].labels[0] == 59
    mirrored = plan(Guarantee(confidence=0.95), anomalous=126)
    assert mirrored.needed[0].labels[0] == 59
