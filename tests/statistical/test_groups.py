"""The promises of groups, exactly: every sample of tiny populations, each weighed with its probability."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from math import comb, factorial, inf, prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from pac_wrap import Abstain, GroupCertificate, Guarantee, Hold, InputError, calibrate_labelled
from pac_wrap.base.floats import shared_together
from pac_wrap.method.groups.columns import shares_of
from pac_wrap.method.groups.measure import bounds, counted_bounds
from pac_wrap.method.promise import Assumption
from pac_wrap.tails import error_budget
from pac_wrap.tails.bounds import cdf, lower_bound
from statistical.claims import assert_at_most, assert_power
from statistical.enumeration import compositions

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


SUPPORT = np.array([0.0, 1.0, inf])
PARTS = 6
POPULATIONS = np.array(list(compositions(PARTS, SUPPORT.size))) / PARTS


def rates(population: NDArray[np.float64], threshold: float) -> float:
    """Return the mass that a rule with this threshold declares anomalous."""
    return 0.0 if threshold == inf else float(population[threshold <= SUPPORT].sum())


@cache
def samples(n: int) -> list[tuple[int, ...]]:
    return list(compositions(n, SUPPORT.size))


def weight(sample: tuple[int, ...], population: NDArray[np.float64]) -> float:
    orders = factorial(sum(sample)) // prod(map(factorial, sample))
    return float(orders * np.prod(population ** np.array(sample)))


def test_all_groups_together_fail_as_the_product_says() -> None:
    sizes, ceiling = (6, 8), 0.33  # just below two of six parts
    asked = Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=0.2)
    each = shares_of(asked, Abstain(), np.array([sizes, (0, 0)]), pool=False)[0]
    assert each > shared_together(0.2, 2)
    shape = len(samples(sizes[0])), len(samples(sizes[1]))
    ends = []
    for pair in product(samples(sizes[0]), samples(sizes[1])):
        scores = np.concatenate([np.repeat(SUPPORT, sample) for sample in pair])
        found = calibrate_labelled(
            scores, np.zeros(14), asked, together=True, by=np.repeat(["a", "b"], sizes)
        )
        ends.append(found.columns.rule[1])
    thresholds = np.array(ends).reshape(*shape, 2)
    weights = [[np.array([weight(one, pop) for one in samples(n)]) for pop in POPULATIONS] for n in sizes]
    false = [
        np.array([[rates(pop, end) > ceiling for end in row] for row in thresholds[:, :, place]])
        for place in (0, 1)
        for pop in POPULATIONS
    ]
    worst, count = 0.0, len(POPULATIONS)
    for one, two in product(range(count), repeat=2):
        chance = np.outer(weights[0][one], weights[1][two])
        # each group alone, and both: eqs. (52) and (53)
        assert (chance * false[one]).sum() <= each + 1e-12
        broken = float((chance * (false[one] | false[count + two])).sum())
        assert broken <= 0.2 + 1e-12
        worst = max(worst, broken)
    # the value of eq. (54), which continuous scores attain, is not far above the worst
    exact = 1 - prod(
        1 - cdf(k, n, ceiling) for n in sizes if (k := error_budget(n, ceiling, each)) is not None
    )
    assert 0.9 * exact < worst <= exact + 1e-12


@pytest.mark.slow
def test_continuous_scores_attain_the_product() -> None:
    groups, n, trials = 6, 80, 1500
    asked = Guarantee(max_fpr=0.1, max_fnr=None, delta_fpr=0.1)
    each = shares_of(asked, Abstain(), np.array([[n] * groups, [0] * groups]), pool=False)[0]
    budget = error_budget(n, 0.1, each)
    assert budget is not None
    exact = 1 - (1 - cdf(budget, n, 0.1)) ** groups
    rng = np.random.default_rng(17)
    names = np.repeat(np.arange(groups), n)
    hits = 0
    for _ in range(trials):
        found = calibrate_labelled(
            rng.random(groups * n), np.zeros(groups * n), asked, together=True, by=names
        )
        hits += bool((1 - found.columns.thresholds[0] > 0.1).any())
    assert exact <= 0.1
    assert_at_most(hits, trials, 0.1)
    assert abs(hits / trials - exact) < 5 * (exact / trials) ** 0.5
    # sharing nothing would be found
    assert_power(trials, 0.1, 1 - (1 - cdf(error_budget(n, 0.1, 0.1) or 0, n, 0.1)) ** groups)


def test_groups_and_their_pool_fail_together_as_the_product_says() -> None:
    sizes, ceiling, delta = (9, 2, 3), 0.33, 0.24
    asked = Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=delta)
    shares = shares_of(asked, Abstain(), np.array([sizes, (0, 0, 0)]), pool=True)
    own, pooled = error_budget(9, ceiling, shares[0]), error_budget(5, ceiling, shares[0])
    assert own is not None
    assert pooled is not None
    assert error_budget(3, ceiling, shares[0]) is None

    def thresholds(*drawn: tuple[int, ...]) -> tuple[float, float]:
        scores = np.concatenate([np.repeat(SUPPORT, sample) for sample in drawn])
        found = calibrate_labelled(
            scores, np.zeros(14), asked, together=True, pool=True, by=np.repeat([1, 2, 3], sizes)
        )
        assert found.shares == shares
        assert found.pool is not None
        assert found.pooled.tolist() == [False, True, True]
        return float(found.columns.rule[1, 0]), found.pool.rule.anomaly_from

    weights = [np.array([[weight(one, pop) for one in samples(n)] for pop in POPULATIONS]) for n in sizes]
    # the first group depends on its own points alone, the pool on those of the others
    one, two, three = map(samples, sizes)
    first = [thresholds(drawn, two[0], three[0])[0] for drawn in one]
    mixed = np.array([[thresholds(one[0], second, third)[1] for third in three] for second in two])
    broken = np.array([[rates(pop, end) > ceiling for end in first] for pop in POPULATIONS])
    worst_first = float((weights[0] * broken).sum(axis=1).max())
    worst_pool = 0.0
    for left, right in product(range(len(POPULATIONS)), repeat=2):
        mixture = (2 * POPULATIONS[left] + 3 * POPULATIONS[right]) / 5
        false = np.vectorize(lambda end, own=mixture: rates(own, end) > ceiling + 1e-12)(mixed)
        worst_pool = max(worst_pool, float(weights[1][left] @ false @ weights[2][right]))
    failing = 1 - (1 - worst_first) * (1 - worst_pool)
    exact = 1 - (1 - cdf(own, 9, ceiling)) * (1 - cdf(pooled, 5, ceiling))
    assert failing <= exact + 1e-12 <= delta + 1e-12
    assert failing > 0.9 * exact
    # with equal shares the pool would be too small
    assert error_budget(5, ceiling, shared_together(delta, 3)) is None


def test_held_and_counted_classes_of_groups_keep_what_is_asked_together() -> None:
    # groups are independent, so each is enumerated by itself with its share
    asked = Guarantee(max_fpr=0.5, max_fnr=0.4, delta_fpr=0.3, delta_fnr=0.3)
    n = np.array([[3, 2, 4], [5, 3, 1]])
    shares = shares_of(asked, Hold("fnr"), n, pool=False)
    kept_held, kept_counted = 1.0, 1.0
    for low, high in n.T.tolist():
        labels = np.repeat([0, 1], [low, high])
        request = replace(asked, delta_fpr=shares[0], delta_fnr=shares[1])
        pairs = list(product(samples(low), samples(high)))
        found = []
        for normal, anomalous in pairs:
            scores = np.concatenate([np.repeat(SUPPORT, normal), np.repeat(SUPPORT, anomalous)])
            columns = calibrate_labelled(
                scores, labels, request, overlap="hold_fnr", by=np.zeros(low + high)
            ).columns
            found.append((columns.rule[1, 0], columns.ceilings[0, 0]))
        ends, ceilings = np.array(found).T.reshape(2, len(samples(low)), len(samples(high)))
        chances = [
            np.array([[weight(one, pop) for one in samples(m)] for pop in POPULATIONS]) for m in (low, high)
        ]
        worst = [0.0, 0.0]
        for place, population in enumerate(POPULATIONS):
            rate = np.vectorize(lambda end, own=population: rates(own, end))(ends)
            broken = rate > np.nan_to_num(ceilings, nan=1.0) + 1e-12
            worst[0] = max(worst[0], float((chances[0][place] @ broken @ chances[1].T).max()))
            missed = (1 - rate > 0.4 + 1e-12).astype(float)
            worst[1] = max(worst[1], float((chances[0] @ missed @ chances[1][place]).max()))
        kept_counted *= 1 - worst[0]
        kept_held *= 1 - worst[1]
    assert kept_held >= 1 - 0.3 - 1e-12
    assert kept_counted >= 1 - 0.3 - 1e-12
    assert kept_held < 0.9  # some of delta is used


def poisson_binomial(chances: list[float], k: int) -> float:
    counts = np.ones(1)
    for chance in chances:
        counts = np.convolve(counts, [1 - chance, chance])
    return float(counts[: k + 1].sum())


@given(
    st.integers(1, 400), st.floats(0.001, 0.5), st.floats(1e-6, 0.25), st.integers(1, 399), st.floats(0, 1)
)
def test_points_of_several_groups_are_no_worse_than_draws(
    n: int, ceiling: float, delta: float, first: int, share: float
) -> None:
    budget = error_budget(n, ceiling, delta)
    assume(budget is not None and first < n)
    assert budget is not None
    assert budget <= n * ceiling - 1 + 1e-9
    # two groups whose mean rate is the ceiling
    one = min(1.0, share * ceiling * n / first)
    two = (ceiling * n - one * first) / (n - first)
    assume(0.0 <= two <= 1.0)
    failing = poisson_binomial([one] * first + [two] * (n - first), budget)
    assert failing <= cdf(budget, n, ceiling) * (1 + 1e-9) + 1e-15
    assert failing <= delta * (1 + 1e-9)


def test_the_pool_keeps_its_promise_about_the_mixture_and_not_about_a_group() -> None:
    asked = Guarantee(max_fpr=0.5, max_fnr=None, delta_fpr=0.25)
    thresholds = {}
    for drawn in product(range(SUPPORT.size), repeat=4):
        found = calibrate_labelled(SUPPORT[list(drawn)], np.zeros(4), asked, pool=True, by=[1, 1, 2, 3])
        assert found.pool is not None
        assert found.columns.vacuous.sum() == 2  # two points suffice at 0.5 and 0.25, one does not
        assert found.pool.fpr.n == 2
        thresholds[drawn] = found.pool.rule.anomaly_from
    broken_group = 0.0
    for second, third in product(POPULATIONS, POPULATIONS):
        broken = single = 0.0
        for drawn, threshold in thresholds.items():
            if drawn[:2] != (0, 0):
                continue
            chance = second[drawn[2]] * third[drawn[3]]
            broken += chance * (rates((second + third) / 2, threshold) > 0.5 + 1e-12)
            single += chance * (rates(second, threshold) > 0.5 + 1e-12)
        assert broken <= 0.25 + 1e-12
        broken_group = max(broken_group, single)
    assert broken_group > 0.25


def test_what_is_counted_in_a_pool_is_not_binomial_and_is_not_bounded() -> None:
    # one of 40 groups catches its anomaly with a chance below the bound of one caught: eq. (116)
    n, delta = 40, 0.25
    chances = [0.999 * n * lower_bound(1, n, delta)] + [0.0] * (n - 1)
    assert 1 - poisson_binomial(chances, 0) > 0.28 > delta
    # from two on the binomial bound holds, and Markov's at one
    for count in range(2, n):
        spread = [min(1.0, n * lower_bound(count, n, delta) / share) for share in range(1, n + 1)]
        for share, chance in enumerate(spread, 1):
            if chance < 1.0:
                mixed = [chance] * share + [0.0] * (n - share)
                assert 1 - poisson_binomial(mixed, count - 1) <= delta + 1e-9
    rng = np.random.default_rng(3)
    labels = np.tile(np.repeat([0, 1], 20), 20)
    found = calibrate_labelled(rng.normal(labels, 1), labels, pool=True, by=np.repeat(np.arange(20), 40))
    assert found.pool is not None
    assert not found.pool.empty
    assert Assumption.POOLED in found.pool.assumptions
    for told in (found.pool.precision, found.pool.workload):
        with pytest.raises(InputError, match="not binomial"):
            told(0.1)
    # what needs no count among them is told: one threshold, or new points without labels
    assert found.pool.precision_from_unlabelled(rng.normal(3, 1, 100)).high == 1.0
    apart = calibrate_labelled(rng.normal(9 * labels, 1), labels, pool=True, by=np.repeat(np.arange(20), 40))
    assert apart.pool is not None
    assert apart.pool.precision(0.1).low > 0.6
    assert GroupCertificate.from_json(found.to_json()) == found


@pytest.mark.parametrize(("n", "ceiling", "delta"), [(9, 0.4, 0.3), (12, 0.5, 0.2)])
def test_bounds_of_a_group_hold_at_its_own_threshold(n: int, ceiling: float, delta: float) -> None:
    asked = Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=delta)
    budget = error_budget(n, ceiling, delta)
    assert budget is not None
    assert budget > 0
    found = []
    for sample in samples(n):
        columns = calibrate_labelled(
            np.repeat(SUPPORT, sample), np.zeros(n), asked, by=np.zeros(n, int)
        ).columns
        low, high = bounds(columns.n[0], columns.errors[0], columns.budget[0], 0.1)
        plain_low, plain_high = counted_bounds(columns.n[0], columns.errors[0], 0.1 / (2 * n))
        found.append((sample, columns.rule[1, 0], (low[0], high[0]), (plain_low[0], plain_high[0])))
    for population in POPULATIONS:
        missed = [0.0, 0.0]
        for sample, threshold, *intervals in found:
            rate = rates(population, threshold)
            for place, (low, high) in enumerate(intervals):
                missed[place] += weight(sample, population) * (not low <= rate <= high)
        # eqs. (57) and (59)
        assert missed[0] <= 0.1 + 1e-12
        assert missed[1] <= 0.1 + 1e-12


def test_the_plain_lower_bound_would_be_false_at_an_atom() -> None:
    n, asked = 30, Guarantee(max_fpr=0.3, max_fnr=None, delta_fpr=0.2)
    found = calibrate_labelled(np.zeros(n), np.zeros(n), asked, by=np.zeros(n, int))
    # the rate is 0 for certain, and the budget says otherwise
    assert found.columns.errors[0, 0] == 0 < found.columns.budget[0, 0]
    low, _ = bounds(found.columns.n[0], found.columns.errors[0], found.columns.budget[0], 0.1)
    false, _ = bounds(found.columns.n[0], found.columns.budget[0], found.columns.budget[0], 0.1)
    assert low[0] == 0.0 < false[0]


def test_gaps_hold_for_all_pairs_at_once() -> None:
    groups, n, trials, delta = 5, 60, 400, 0.2
    rng = np.random.default_rng(3)
    asked = Guarantee(max_fpr=0.2, max_fnr=None, delta_fpr=0.2)
    names = np.repeat(np.arange(groups), n)
    broken = 0
    bound = 0.0
    for _ in range(trials):
        found = calibrate_labelled(rng.random(groups * n), np.zeros(groups * n), asked, by=names)
        gap = found.gaps(delta).fpr
        assert gap is not None
        assert gap.bound is not None
        true = 1 - found.columns.rule[1]
        broken += bool(true.max() - true.min() > gap.bound)
        bound = max(bound, gap.bound)
    assert_at_most(broken, trials, delta)
    assert_power(trials, delta, 0.4, at_most=True)
    assert bound < 0.35


def test_counted_errors_bound_a_rate_at_half_of_delta_each_given_the_held_class() -> None:
    # given the anomalies, the threshold of hold_fnr is a fixed number: eq. (114)
    n, held, delta = 7, 6, 0.2
    asked = Guarantee(max_fpr=0.5, max_fnr=0.4, delta_fpr=0.3, delta_fnr=0.3)
    labels = np.repeat([0, 1], [n, held])
    answers = []
    for normal, anomalous in product(samples(n), samples(held)):
        scores = np.concatenate([np.repeat(SUPPORT, normal), np.repeat(SUPPORT, anomalous)])
        columns = calibrate_labelled(scores, labels, asked, overlap="hold_fnr", by=np.zeros(n + held)).columns
        low, high = counted_bounds(columns.n[0], columns.errors[0], delta / 2)
        answers.append((columns.rule[1, 0], low[0], high[0]))
    thresholds, lows, highs = np.array(answers).T.reshape(3, len(samples(n)), len(samples(held)))
    weights = [
        np.array([[weight(one, pop) for one in samples(size)] for pop in POPULATIONS]) for size in (n, held)
    ]
    worst = 0.0
    for place, normal_population in enumerate(POPULATIONS):
        rate = np.vectorize(lambda end, own=normal_population: rates(own, end))(thresholds)
        outside = (rate < lows) | (rate > highs)
        missed = weights[0][place] @ outside @ weights[1].T
        worst = max(worst, float(missed.max()))
    assert 0.4 * delta < worst <= delta + 1e-12


def test_held_groups_are_compared_at_about_half_the_width() -> None:
    share = shared_together(0.05, 2)
    n, errors = np.array([1000]), np.array([70])
    narrow, wide = (
        np.subtract(*counted_bounds(n, errors, level)[::-1])[0] for level in (share / 2, share / 2000)
    )
    assert wide == pytest.approx(0.0691, abs=5e-5)
    assert narrow == pytest.approx(0.0371, abs=5e-5)
    rng = np.random.default_rng(0)
    labels, groups = np.tile(np.repeat([0, 1], 1000), 2), np.repeat(["a", "b"], 2000)
    found = calibrate_labelled(rng.normal(3 * labels, 1), labels, overlap="hold_fnr", by=groups)
    gap = found.gaps().fpr
    assert gap is not None
    place = found.groups.index(gap.groups[0])
    low, high = counted_bounds(n, found.columns.errors[0, [place]], share / 2)
    assert (gap.low[0], gap.high[0]) == (low[0], high[0])
    # where the classes decide whether a side is held, the threshold is not given by one of them
    needed = calibrate_labelled(rng.normal(3 * labels, 1), labels, overlap="hold_fnr_if_needed", by=groups)
    wider = needed.gaps().fpr
    assert wider is not None
    place = needed.groups.index(wider.groups[0])
    low, high = counted_bounds(n, needed.columns.errors[0, [place]], share / 2000)
    assert (wider.low[0], wider.high[0]) == (low[0], high[0])
    held = found.gaps().fnr
    assert held is not None
    place = found.groups.index(held.groups[0])
    fixed = bounds(n, found.columns.errors[1, [place]], found.columns.budget[1, [place]], share)
    assert (held.low[0], held.high[0]) == (fixed[0][0], fixed[1][0])


def test_gaps_with_a_pool_leave_out_whoever_follows_it() -> None:
    # ten groups lack anomalies and follow one rule, under which their rates lie far apart
    rng = np.random.default_rng(5)
    shift = np.linspace(0.0, 2.0, 10)
    blocks = [
        (rng.normal(place, 1, 1000), rng.normal(4 + place, 1, 20), name)
        for name, place in enumerate(shift.tolist())
    ]
    blocks += [(rng.normal(0, 1, 1000), rng.normal(5, 1, 200), name) for name in (10, 11)]
    scores = np.concatenate([one for low, high, _ in blocks for one in (low, high)])
    labels = np.concatenate([np.repeat([0, 1], [low.size, high.size]) for low, high, _ in blocks])
    groups = np.concatenate([np.repeat(name, low.size + high.size) for low, high, name in blocks])
    found = calibrate_labelled(scores, labels, pool=True, by=groups)
    assert found.pooled.sum() == 10
    deployed = dict(zip(range(10), norm.sf(found.rules[1, :10] - shift), strict=True))
    gap = found.gaps().fpr
    assert gap is not None
    assert gap.bound is not None
    assert gap.groups in ((10, 11), (11, 10))
    assert gap.left_out == 10
    assert max(deployed.values()) - min(deployed.values()) > 0.14 > gap.bound
    assert "of their own: 10" in str(gap)
    # without the pool each has a rule of its own, and is compared
    alone = calibrate_labelled(scores, labels, by=groups).gaps().fpr
    assert alone is not None
    assert len(alone.groups) == 12


@pytest.mark.parametrize(
    "overlap", ["abstain", "raise", "hold_fnr", "hold_fpr", "hold_fnr_if_needed", "algorithm1"]
)
def test_which_groups_are_compared_is_decided_by_counts_alone(overlap: str) -> None:
    rng = np.random.default_rng(1)
    sizes = np.array([[1, 1], [30, 200], [200, 30], [200, 200], [150, 90], [0, 5]])
    groups = np.repeat(np.arange(6), sizes.sum(axis=1))
    labels = np.concatenate([np.repeat([0, 1], pair) for pair in sizes])
    compared = set()
    for lift in (-9.0, 0.0, 1.0, 9.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = calibrate_labelled(
                rng.normal(lift * labels, 1), labels, overlap=overlap, by=groups
            ).gaps()
        assert found.fpr is not None
        assert found.fnr is not None
        compared.add((frozenset(found.fpr.groups), frozenset(found.fnr.groups)))
    enough = {3, 4}
    two = ({2, *enough}, {1, *enough}) if overlap == "abstain" else (enough, enough)
    assert compared == {(frozenset(two[0]), frozenset(two[1]))}


def test_many_small_groups_are_not_chosen_by_their_errors() -> None:
    # 3,000 groups whose one normal point is nearly always an alarm, and a few that never raise one
    rng = np.random.default_rng(2)
    asked = Guarantee(0.9, 0.9, 0.5, 0.5)
    labels = np.tile([0, 1], 3010)
    alarms = np.append(rng.random(3000) < 0.999, np.zeros(10, dtype=bool))
    assert (~alarms[:3000]).any()
    scores = np.ravel(np.stack([np.where(alarms, 2.0, 0.0), np.ones(3010)], axis=1))
    gap = (
        calibrate_labelled(scores, labels, asked, overlap="hold_fnr", by=np.repeat(np.arange(3010), 2))
        .gaps()
        .fpr
    )
    assert gap is not None
    assert gap.bound is not None
    # rates of 0.999 and 0 are farther apart than a bound from few chosen groups would say
    assert gap.bound > 0.999
    assert gap.left_out == 0


def test_a_gap_is_between_two_groups_and_says_so() -> None:
    one = calibrate_labelled(np.arange(200.0), np.repeat([0, 1], 100), by=["a"] * 200)
    gaps = one.gaps()
    assert gaps.fpr is not None
    assert gaps.fpr.bound is None
    assert "no two groups" in str(gaps)
    labels = np.tile(np.repeat([0, 1], 100), 3)
    two = calibrate_labelled(
        np.tile(np.arange(200.0), 3)[:410], labels[:410], by=np.repeat(["a", "b", "c"], 200)[:410]
    )
    said = str(two.gaps())
    assert "differ by more than" in said
    assert "Not compared, for lack of labels of their own: 1." in said
    assert two.gaps().fnr is not None
    alone = calibrate_labelled(np.arange(200.0), np.zeros(200), Guarantee(0.1, None), by=["a", "b"] * 100)
    assert alone.gaps().fnr is None
    held = calibrate_labelled(
        np.tile(np.arange(200.0), 3), labels, overlap="hold_fnr", by=np.repeat(["a", "b", "c"], 200)
    )
    wide, narrow = held.gaps().fnr, two.gaps().fnr
    assert wide is not None
    assert wide.bound is not None
    assert narrow is not None
    assert 0.0 < wide.bound < 1.0


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    low, high = bounds(np.array([100]), np.array([3]), np.array([3]), 0.05)
    assert low[0] == pytest.approx(_lower(3, 100, 0.05 / 6), rel=1e-8)
    assert high[0] == pytest.approx(_upper(3, 100, 0.025), rel=1e-8)


def _upper(k: int, n: int, delta: float) -> float:
    return _root(lambda p: sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)) - delta)


def _lower(k: int, n: int, delta: float) -> float:
    return _root(lambda p: delta - 1 + sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k)))


def _root(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low
