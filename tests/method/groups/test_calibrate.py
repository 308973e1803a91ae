"""Certificates of groups: each is what `calibrate` gives, and together they have the deltas asked for."""

import warnings
from dataclasses import replace
from decimal import Decimal, localcontext
from math import inf, prod
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import (
    Abstain,
    GroupCertificate,
    Guarantee,
    Hold,
    InputError,
    MissingScoreWarning,
    UpsideDownWarning,
    calibrate,
    calibrate_labelled,
    certify_curve,
    certify_curve_labelled,
)
from pac_wrap.base.floats import rounded_up, shared_together
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.calibrate import whole_groups
from pac_wrap.method.groups.columns import Counts, shares_of
from pac_wrap.method.promise import OF_POOL
from pac_wrap.tails import error_budget, min_samples
from pac_wrap.tails.bounds import cdf, common_share, tails_at
from support.examples import examples

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


STRATEGIES = [
    "abstain",
    "abstain_always",
    "raise",
    "hold_fnr",
    "hold_fpr",
    "algorithm1",
    Abstain(position=0.0),
]
SCORES = st.one_of(
    st.sampled_from([-inf, -1.0, -0.0, 0.0, 5e-324, -5e-324, 1.0, 1.7e308, inf]), st.floats(-2, 2)
)
MIXED = st.lists(st.tuples(SCORES, st.booleans(), st.sampled_from("abc")), min_size=1, max_size=60)


def _apart(label: bool) -> st.SearchStrategy[tuple[float, bool, str]]:
    """Return rows of a class that lie on its side, with ties and a little overlap at the border."""
    side = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, inf] if label else [-inf, -2.0, -1.0, -0.0, 0.0, 0.5])
    return st.tuples(side, st.just(label), st.sampled_from("ab"))


# random labels hardly ever separate: half of all tables are drawn so that groups do
APART = st.tuples(
    st.lists(_apart(False), min_size=12, max_size=40), st.lists(_apart(True), min_size=12, max_size=40)
).map(lambda both: both[0] + both[1])
ROWS = st.one_of(MIXED, APART)
EASY = Guarantee(0.4, 0.3, 0.3, 0.4)


@pytest.fixture(autouse=True)
def _not_upside_down() -> None:
    warnings.simplefilter("ignore", UpsideDownWarning)


@settings(max_examples=examples(150), deadline=None)
@given(ROWS, st.sampled_from(STRATEGIES), st.sampled_from([np.float64, np.float32]))
def test_each_group_gets_what_calibrate_gives(
    rows: list[tuple[float, bool, str]], overlap: Any, kind: Any
) -> None:
    with np.errstate(over="ignore", under="ignore"):
        scores = np.array([row[0] for row in rows]).astype(kind)
    labels, groups = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    found = calibrate_labelled(scores, labels, EASY, overlap=overlap, by=groups)
    for group in sorted(set(groups.tolist())):
        own = groups == group
        alone = calibrate(scores[own & ~labels], scores[own & labels], EASY, overlap=overlap)
        assert found.certificates[group].to_json() == alone.to_json()
        assert (found.verdicts(scores[own], groups[own]) == alone.verdicts(scores[own])).all()
        place = found.lookup.place(group)
        verdicts = alone.verdicts(scores[own])
        wrong = [int(((verdicts == 1 - one) & (labels[own] == one)).sum()) for one in (0, 1)]
        assert found.columns.errors[:, place].tolist() == wrong


def test_half_of_the_drawn_tables_have_a_group_that_separates() -> None:
    regimes: list[set[str]] = []

    @settings(max_examples=examples(100), deadline=None, database=None, derandomize=True)
    @given(ROWS)
    def drawn(rows: list[tuple[float, bool, str]]) -> None:
        scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
        found = calibrate_labelled(scores, labels, EASY, by=groups)
        regimes.append({one.regime.value for one in found.certificates.values()})

    drawn()
    for regime in ("separated", "overlapping", "vacuous"):
        assert sum(regime in one for one in regimes) >= examples(100) // 5


@pytest.mark.parametrize("asked", [Guarantee(0.4, None, 0.3), Guarantee(None, 0.4, delta_fnr=0.3)])
@settings(max_examples=examples(60), deadline=None)
@given(rows=ROWS)
def test_one_ceiling_decides_alone(asked: Guarantee, rows: list[tuple[float, bool, str]]) -> None:
    scores: np.ndarray = np.array([row[0] for row in rows])
    labels, groups = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    found = calibrate_labelled(scores, labels, asked, by=groups)
    for group in set(groups.tolist()):
        own = groups == group
        alone = calibrate(scores[own & ~labels], scores[own & labels], asked)
        assert found.certificates[group].to_json() == alone.to_json()


def test_prediction_sets_check_what_verdicts_check() -> None:
    scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    found = calibrate_labelled(scores, labels, by=["a"] * 200 + ["b"] * 200)
    for judge in (found.verdicts, found.prediction_sets):
        with pytest.raises(InputError, match="same length"):
            judge([5.0], ["a", "b", "a", "b"])
        with pytest.raises(InputError, match="column of numbers"):
            judge(["5", "250"], ["a", "b"])
        with pytest.raises(InputError, match="column of numbers"):
            judge([[5.0, 250.0]], ["a"])
        with pytest.raises(InputError, match="index"):
            judge(pd.Series([5.0, 250.0], index=[0, 1]), pd.Series(["a", "b"], index=[1, 0]))
        with pytest.raises(InputError, match="on_missing"):
            judge([5.0], ["a"], on_missing="skip")  # type: ignore[arg-type]  # refused
        with pytest.raises(InputError, match="got 1 of 2"):
            judge([5.0, np.nan], ["a", "b"], on_missing="stop")
        with pytest.warns(MissingScoreWarning):
            judge([5.0, np.nan], ["a", "b"])
    with pytest.warns(MissingScoreWarning):
        sets = found.prediction_sets([5.0, 250.0, np.nan, 5.0], ["a", "b", "a", "never seen"])
    assert sets.tolist() == [[True, False], [False, True], [True, True], [True, True]]


def kept_by_all(asked: Guarantee, n: Counts, shares: tuple[float, float], pool: bool) -> list[float]:
    """Return how surely all groups keep each ceiling, by multiplying what each of them keeps: eq. (111)."""
    rates = asked.max_fpr, asked.max_fnr
    budgets = [
        [None if rate is None else error_budget(size, rate, share) for size in sizes]
        for sizes, rate, share in zip(n.tolist(), rates, shares, strict=True)
    ]
    lacking = [
        any(rate is not None and one[place] is None for one, rate in zip(budgets, rates, strict=True))
        for place in range(n.shape[1])
    ]
    mixed = [sum(size for size, few in zip(row, lacking, strict=True) if few) for row in n.tolist()]
    of_pool = [
        None if rate is None else error_budget(size, rate, share)
        for size, rate, share in zip(mixed, rates, shares, strict=True)
    ]
    followed = pool and all(one is not None or rate is None for one, rate in zip(of_pool, rates, strict=True))
    chances = []
    for label, rate in enumerate(rates):
        pairs = list(zip(n[label].tolist(), budgets[label], strict=True))
        if followed and any(lacking):
            pairs = [pair for pair, few in zip(pairs, lacking, strict=True) if not few]
            pairs.append((mixed[label], of_pool[label]))
        chances.append(prod(1 - cdf(k, size, rate or 1.0) for size, k in pairs if k is not None))
    return chances


SIZES = st.lists(st.tuples(st.integers(0, 150), st.integers(0, 150)), min_size=1, max_size=12).filter(
    lambda pairs: max(map(sum, pairs)) > 0
)
CEILINGS = st.sampled_from([0.02, 0.1, 0.3, 0.5])
DELTAS = st.sampled_from([0.01, 0.05, 0.25])


@settings(max_examples=examples(150), deadline=None)
@given(SIZES, st.tuples(CEILINGS, CEILINGS), st.tuples(DELTAS, DELTAS), st.booleans(), st.randoms())
def test_all_groups_together_keep_what_is_asked_for_and_hardly_more(
    sizes: list[tuple[int, int]],
    ceilings: tuple[float, float],
    deltas: tuple[float, float],
    pool: bool,
    random: Any,
) -> None:
    asked, n = Guarantee(*ceilings, *deltas), np.array(sizes).T
    shares = shares_of(asked, Abstain(), n, pool)
    kept = kept_by_all(asked, n, shares, pool)
    for label, delta in enumerate(deltas):
        assert kept[label] >= 1 - delta - 1e-12
        assert shared_together(delta, len(sizes)) <= shares[label] <= delta
    # whatever the order of the groups
    mixed = random.sample(sizes, len(sizes))
    assert shares_of(asked, Abstain(), np.array(mixed).T, pool) == shares
    if pool:
        return
    for label, delta in enumerate(deltas):
        if shares[label] < delta:  # the next number of four digits is too much
            more = shares[label] * 1.0011
            pair = (more, shares[1]) if label == 0 else (shares[0], more)
            assert kept_by_all(asked, n, pair, pool)[label] < 1 - delta + 1e-8


@pytest.mark.parametrize(("own", "together"), [([300, *[50] * 6], [300, 300]), ([200, 300], [200, 300])])
def test_a_pool_takes_one_share(own: list[int], together: list[int]) -> None:
    pooled, alone = (
        shares_of(Guarantee(), Abstain(), np.array([n, n]), pool)
        for n, pool in ((own, True), (together, False))
    )
    assert pooled == alone


def test_a_tail_that_meets_delta_counts() -> None:
    # two points may show no error at 0.5 and 0.25, where the tail is 0.25 itself
    assert tails_at(np.array([1, 2, 3]), 0.5, 0.25).tolist() == pytest.approx([0.0, 0.25, 0.125], rel=1e-8)
    assert common_share(np.array([2, 2]), 0.5, 0.25, 0.25) < 0.25
    # beyond a million points delta itself stands for the tail
    few, many = tails_at(np.array([10**6, 10**6 + 1]), 0.01, 0.01).tolist()
    assert few < many == 0.01


def test_groups_that_are_promised_nothing_take_no_share() -> None:
    scores, labels = np.arange(400.0), np.tile([0, 1], 200)
    four = calibrate_labelled(scores, labels, together=True, by=np.repeat(["a", "b", "c", "d"], 100))
    delta = four.request.guarantee.delta_fpr
    assert four.asked.delta_fpr == 0.05
    assert delta == four.shares[0] > 1 - 0.95**0.25 if four.shares else False
    more = calibrate_labelled(
        np.append(scores, 1.0), np.append(labels, 0), together=True, by=np.append(np.repeat(["a"], 400), "z")
    )
    assert more.request.guarantee.delta_fpr == 0.05
    # strategies of which no more is proved share as before
    raised = calibrate_labelled(
        scores, labels, together=True, overlap="raise", by=np.repeat(["a", "b", "c", "d"], 100)
    )
    assert raised.request.guarantee.delta_fpr == pytest.approx(1 - 0.95**0.25, rel=1e-12)
    assert f"each group has delta = {rounded_up(delta)}" in " ".join(str(four).split())


def test_many_groups_of_many_sizes_get_more_than_equal_shares() -> None:
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.normal(4, 1.2, 1000)).astype(int)
    n = np.stack([sizes, sizes])
    share, equal = shares_of(Guarantee(), Abstain(), n, pool=False)[0], shared_together(0.05, 1000)
    certified = [int((sizes >= min_samples(0.05, one)).sum()) for one in (equal, share)]
    assert certified == [136, 183]
    chances = [1 - kept_by_all(Guarantee(), n, (one, one), pool=False)[0] for one in (equal, share)]
    assert chances[0] == pytest.approx(0.0035, abs=5e-5)
    assert 0.0499 < chances[1] <= 0.05


def test_the_counted_class_shares_among_the_groups_where_something_is_counted() -> None:
    n = np.array([[300, 300, 0, 10, 300], [300, 300, 300, 300, 5]])
    held = shares_of(Guarantee(), Hold("fnr"), n, pool=False)
    # four groups have anomalies enough, and three of these some normal points
    assert held[1] == shares_of(Guarantee(), Abstain(), n, pool=False)[1]
    assert held[0] == shared_together(0.05, 3)
    mirrored = shares_of(Guarantee(), Hold("fpr"), n[::-1], pool=False)
    assert mirrored == held[::-1]


@given(st.floats(1e-9, 0.999), st.integers(2, 10**6))
def test_a_share_is_never_more_than_it_may_be(delta: float, count: int) -> None:
    share = shared_together(delta, count)
    with localcontext(prec=60):
        assert (1 - Decimal(share)) ** count >= (1 - Decimal(repr(delta))) - Decimal("1e-40")
    # nor much less: a promise kept too cautiously is a defect too
    assert share == pytest.approx(-np.expm1(np.log1p(-delta) / count), rel=1e-9)


@pytest.mark.parametrize(("groups", "labels"), [(1, 59), (5, 90), (20, 117), (1_000, 193), (10_000, 238)])
def test_how_many_labels_a_group_needs(groups: int, labels: int) -> None:
    for size, errors in ((labels - 1, None), (labels, 0)):
        share = shares_of(Guarantee(), Abstain(), np.full((2, groups), size), pool=False)[0]
        assert error_budget(size, 0.05, share) == errors


def test_groups_with_too_few_labels_are_pooled_under_another_name() -> None:
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 500)
    groups = np.append(np.repeat("large", 800), np.repeat(["s1", "s2", "s3", "s4"], 50))
    scores = rng.normal(6 * labels, 1)
    alone = calibrate_labelled(scores, labels, by=groups)
    assert alone.certificates["s1"].regime == "vacuous"
    assert not alone.empty
    assert (alone.verdicts([9.0, -9.0], ["s1", "s1"]) == -1).all()
    pooled = calibrate_labelled(scores, labels, pool=True, by=groups)
    small = groups != "large"
    assert pooled.pool is not None
    # but for what it assumes, it is that of any points
    mixed = calibrate(scores[small & (labels == 0)], scores[small & (labels == 1)])
    assert replace(pooled.pool, assumptions=mixed.assumptions) == mixed
    assert pooled.pool.assumptions == OF_POOL
    assert not pooled.empty
    # its own certificate stays empty: the promise of the pool is not its own
    assert pooled.certificates["s1"] == alone.certificates["s1"]
    assert pooled.certificates["large"] == alone.certificates["large"]
    assert pooled.verdicts([9.0, -9.0], ["s1", "s4"]).tolist() == [1, 0]
    assert (pooled.verdicts(scores[small], groups[small]) == pooled.pool.verdicts(scores[small])).all()
    assert "promises nothing about it alone" in " ".join(str(pooled).split())
    assert "mixture" in str(pooled)
    # a pool that is too small as well changes nothing
    few = calibrate_labelled(scores[750:860], labels[750:860], pool=True, by=groups[750:860])
    assert few.empty
    assert not few.pooled.any()
    assert "too few even together" in " ".join(str(few).split())


def test_a_group_never_seen_is_left_undecided() -> None:
    found = calibrate_labelled(np.arange(200.0), np.repeat([0, 1], 100), by=np.repeat([7], 200))
    assert found.verdicts([0.0, 199.0, 0.0, 199.0], [7, 7, 8, None]).tolist() == [0, 1, -1, -1]
    # 7 in a CSV is a text
    assert found.verdicts([0.0, 199.0], ["7", "7.0"]).tolist() == [0, -1]
    assert found.certificates["7"] == found.certificates[7]
    with pytest.raises(KeyError):
        found.certificates[8]


@pytest.mark.slow
def test_a_million_groups_of_one_row_each() -> None:
    count = 10**6
    labels = np.arange(count) % 2
    found = calibrate_labelled(np.arange(count, dtype=float), labels, together=True, by=np.arange(count))
    assert len(found.certificates) == count
    assert found.columns.vacuous.all()
    one = calibrate([4.0], [], found.request)
    assert found.certificates[4] == one
    assert (found.verdicts([0.5], [10**6 - 1]) == -1).all()
    with pytest.raises(InputError, match="more than 1,000,000 groups"):
        calibrate_labelled(np.zeros(count + 1), np.zeros(count + 1), by=np.arange(count + 1))


def test_a_group_that_is_upside_down_is_named() -> None:
    rng = np.random.default_rng(0)
    labels, groups = np.tile([0, 1], 200), np.repeat(["right", "wr\nong"], 200)
    scores = rng.normal(np.where(groups == "right", 3, -3) * labels, 1)
    with pytest.warns(UpsideDownWarning, match=r"1 of 2 groups, most clearly in 'wr\\nong' \(AUC 0\.0"):
        calibrate_labelled(scores, labels, by=groups)
    # scores of several scales, all the right way round: together they would look upside down
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrate_labelled(scores * 0 + labels + 10 * (groups == "right") * (1 - 0), labels, by=groups)


def test_areas_are_those_of_each_group() -> None:
    from pac_wrap.method.groups.calibrate import Block
    from pac_wrap.ranks.memory import auc

    rng = np.random.default_rng(1)
    scores, marks = rng.integers(0, 5, 300).astype(float), rng.random(300) < 0.4
    codes = rng.integers(0, 7, 300)
    codes[codes == 3] = 2
    areas = Block.of(scores, marks, codes, 8).areas()
    for group in range(8):
        own = codes == group
        if (own & marks).any() and (own & ~marks).any():
            assert areas[group] == pytest.approx(auc(scores[own & ~marks], scores[own & marks]))
        else:
            assert np.isnan(areas[group])


def test_a_curve_for_each_group() -> None:
    rng = np.random.default_rng(0)
    labels, groups = np.tile([0, 1], 300), np.repeat(["a", None], 300)
    scores = rng.normal(3 * labels, 1).astype(np.float32)
    found = certify_curve_labelled(scores, labels, together=True, by=groups)
    assert set(found) == {"a", None}
    delta = shared_together(0.05, 2)
    first = scores[:300]
    assert found["a"] == certify_curve(first[labels[:300] == 0], first[labels[:300] == 1], delta, delta)
    assert certify_curve_labelled(scores, labels, by=groups)["a"].normal.delta == 0.05
    topped = certify_curve_labelled(scores, labels, top_fpr=0.3, top_fnr=0.4, by=groups)["a"]
    low, high = first[labels[:300] == 0], first[labels[:300] == 1]
    assert topped == certify_curve(low, high, top_fpr=0.3, top_fnr=0.4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pool": True, "overlap": "raise"}, 'pool needs overlap="abstain"'),
        ({"pool": True, "guarantee": Guarantee(0.6)}, "ceilings up to 0.5"),
        ({"pool": True, "guarantee": Guarantee(0.1, 0.1, 0.3)}, "deltas up to 0.25"),
        ({"together": "yes"}, "together must be one of"),
        ({"pool": 1}, "pool must be one of"),
        ({"by": ["a"]}, "scores and groups must have the same length"),
        ({"labels": [0]}, "scores and labels must have the same length"),
        ({"by": pd.Series(["a", "b"], index=[5, 6]), "scores": pd.Series([0.1, 0.2])}, "same index"),
        ({"scores": [np.nan, 0.2]}, "NaN"),
        ({"scores": [], "labels": [], "by": []}, "scores are empty"),
        ({"guarantee": Guarantee(0.1, {"a": 0.1})}, "kind"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"scores": [0.1, 0.2], "labels": [0, 1], "by": ["a", "b"]}
    with pytest.raises(InputError, match=words):
        calibrate_labelled(**(usual | arguments))


def test_a_request_says_all_that_is_asked_for() -> None:
    request = Request.of(EASY, "hold_fnr", anomaly_label=-1)
    found = calibrate_labelled([0.1, 0.9, 0.2], [1, -1, 1], request, by=[1, 1, 2])
    assert found.certificates[1] == calibrate([0.1], [0.9], Request.of(EASY, "hold_fnr"))


@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr", "raise"])
@pytest.mark.parametrize("together", [False, True])
def test_a_confidence_gives_every_group_the_same_deltas(overlap: str, together: bool) -> None:
    """Counts differ from group to group, and one pair of deltas serves all: half of what is left each."""
    rng = np.random.default_rng(5)
    labels = rng.random(4000) < 0.4
    scores, groups = rng.normal(3 * labels), rng.choice(["a", "b", "c"], 4000, p=[0.2, 0.5, 0.3])
    found, by_deltas = (
        calibrate_labelled(scores, labels, asked, overlap=overlap, together=together, by=groups)
        for asked in (Guarantee(confidence=0.9), Guarantee())
    )
    assert found == by_deltas
    assert GroupCertificate.from_json(found.to_json()) == found


@pytest.mark.parametrize("size", [1, 4, 100])
def test_rows_in_the_order_of_groups_come_as_whole_groups(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pac_wrap.method.groups.calibrate.BLOCK", size)
    places = np.array([2, 2, 3, 5, 5, 5, 8])
    scores, marks = np.arange(7.0), places == 5
    cuts = [slice(0, 2), slice(2, 2), slice(2, 5), slice(5, 7)]
    batches = [(places[cut], scores[cut], marks[cut]) for cut in cuts]
    found = [(one, block.n.tolist()) for one, block in whole_groups(batches)]
    assert [place for one, _ in found for place in one] == [2, 3, 5, 8]
    assert np.concatenate([n for _, n in found], axis=1).tolist() == [[2, 1, 0, 1], [0, 0, 3, 0]]
    assert len(found) == (1 if size == 100 else 3)
