"""Algorithm 1 on every sample of every small population: what survives the choice of a level, exactly."""

from fractions import Fraction
from itertools import product
from typing import Literal, get_args

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, Guarantee
from pac_wrap.tails.levels import fixed_level
from statistical import formulas
from statistical.enumeration import PARTS, SUPPORT, Answers, Flags, Whole, answers, compositions
from support.slow import slow_but

Growth = Literal["linear", "double"]
Raised = Literal["both", "fpr", "fnr"]
Correction = Literal["exact"] | None
Budgets = list[int | None]

# every level of a ceiling lies just below a multiple of 1/8, where its violation comes closest to its tail
LOW_CEILINGS = Guarantee(0.249, 0.374, 0.32, 0.32)
LOW_DELTAS = Guarantee(0.749, 0.749, 0.07, 0.07)
LOOSE = [
    LOW_CEILINGS,
    Guarantee(0.374, 0.249, 0.2, 0.4),
    Guarantee(0.124, 0.124, 0.3, 0.3),
    Guarantee(0.499, 0.499, 0.32, 0.1),
]


sizes = pytest.mark.parametrize("size", slow_but(1, [(3, 2), (4, 3)]))


def every_strategy(correction: Correction, *positions: float) -> list[Algorithm1]:
    growths: tuple[Growth, ...] = get_args(Growth)
    sides: tuple[Raised, ...] = get_args(Raised)
    return [
        Algorithm1(0.125, growth, raised, relax_delta, correction, position)
        for growth, raised, relax_delta, position in product(growths, sides, (False, True), positions)
    ]


def name(strategy: Algorithm1 | tuple[int, int]) -> str:
    if isinstance(strategy, tuple):
        return "{} and {}".format(*strategy)
    raised = "delta" if strategy.relax_delta else "ceiling"
    return f"{strategy.growth}-{strategy.raised}-{raised}-{strategy.position}-{strategy.correction}"


def start(strategy: Algorithm1) -> Guarantee:
    return LOW_DELTAS if strategy.relax_delta else LOW_CEILINGS


def answers_to(strategy: Algorithm1, size: tuple[int, int], guarantee: Guarantee | None = None) -> Answers:
    return answers(*size, guarantee or start(strategy), strategy)


def levels_of(strategy: Algorithm1, n: int, m: int) -> list[Guarantee]:
    return strategy.levels(start(strategy), (n, m))


def raised_sides(strategy: Algorithm1) -> tuple[str, ...]:
    return ("fpr", "fnr") if strategy.raised == "both" else (strategy.raised,)


def level_budgets(strategy: Algorithm1, n: int, m: int) -> tuple[Budgets, Budgets]:
    """Return the error budgets of both sides at every level, by definition."""
    levels = levels_of(strategy, n, m)

    def budgets(side: str, size: int) -> Budgets:
        ceilings = tuple(float(getattr(level, f"max_{side}")) for level in levels)
        deltas = [float(getattr(level, f"delta_{side}")) for level in levels]
        if strategy.correction and side in raised_sides(strategy):
            local = fixed_level(size, tuple(dict.fromkeys(ceilings)), deltas[0])
            deltas = [delta / len(levels) if strategy.relax_delta else local for delta in deltas]
        return [formulas.budget(size, *pair) for pair in zip(ceilings, deltas, strict=True)]

    return budgets("fpr", n), budgets("fnr", m)


def union_bounds(strategy: Algorithm1, n: int, m: int) -> tuple[Whole, Whole]:
    """Return in how many draws some level's threshold breaks its ceiling, at most, per population.

    Only thresholds that differ are added up: a side that is not raised has one, and where the deltas are
    raised the last threshold is the loosest under one and the same ceiling.
    """
    levels, (k_fpr, k_fnr) = levels_of(strategy, n, m), level_budgets(strategy, n, m)
    fpr = [formulas.fpr_broken(k, n, level.max_fpr or 0) for k, level in zip(k_fpr, levels, strict=True)]
    fnr = [formulas.fnr_broken(k, m, level.max_fnr or 0) for k, level in zip(k_fnr, levels, strict=True)]
    added = [] if strategy.relax_delta else raised_sides(strategy)
    return (
        np.sum(fpr, axis=0) if "fpr" in added else fpr[-1],
        np.sum(fnr, axis=0) if "fnr" in added else fnr[-1],
    )


def surviving_delta(strategy: Algorithm1, side: str, n: int, m: int) -> float:
    levels = levels_of(strategy, n, m)
    last = float(getattr(levels[-1], f"delta_{side}"))
    return last / len(levels) if strategy.relax_delta and side in raised_sides(strategy) else last


# where in the allowed interval the threshold lies matters to those that raise ceilings
CORRECTED = every_strategy("exact", 0.0, 0.5, 1.0)
LARGER = [one for one in CORRECTED if one.position == 0.5 or (one.growth == "linear" and not one.relax_delta)]


# the smaller size is for those that raise both sides: with three and two points the others promise nothing
@pytest.mark.parametrize(
    ("strategy", "size"),
    [(one, (3, 2)) for one in CORRECTED[:6]]
    + [pytest.param(one, (4, 3), marks=pytest.mark.slow) for one in LARGER],
    ids=name,
)
def test_delta_survives_the_choice_of_a_level(strategy: Algorithm1, size: tuple[int, int]) -> None:
    answer = answers_to(strategy, size)
    delta_fpr = surviving_delta(strategy, "fpr", answer.n, answer.m)
    delta_fnr = surviving_delta(strategy, "fnr", answer.n, answer.m)
    assert answer.deltas("fpr") == {delta_fpr}
    assert answer.deltas("fnr") == {delta_fnr}
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    assert answer.worst(answer.count_alarms(alarms)) <= Fraction(delta_fpr)
    assert answer.worst(answer.count_misses(misses)) <= Fraction(delta_fnr)
    assert 0 < answer.worst(answer.count_either(alarms, misses)) <= Fraction(delta_fpr) + Fraction(delta_fnr)
    assert_within_union(strategy, answer, alarms, misses)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "position"), [(3, 6, 0.0), (4, 4, 0.0), (4, 4, 1.0), (6, 3, 1.0)])
@pytest.mark.parametrize("asked", LOOSE, ids=lambda asked: f"{asked.max_fpr}-{asked.max_fnr}")
def test_no_small_population_breaks_a_delta(asked: Guarantee, n: int, m: int, position: float) -> None:
    answer = answers(n, m, asked, Algorithm1(0.125, position=position))
    fpr = answer.worst(answer.count_alarms(answer.too_many_alarms))
    fnr = answer.worst(answer.count_misses(answer.too_many_misses))
    assert answer.deltas("fpr") <= {asked.delta_fpr}
    assert fpr <= Fraction(asked.delta_fpr)
    assert fnr <= Fraction(asked.delta_fnr)
    assert max(fpr, fnr) > 0


@sizes
@pytest.mark.parametrize("strategy", every_strategy(None, 0.5), ids=name)
def test_without_a_correction_the_union_of_the_levels_bounds_the_violations(
    strategy: Algorithm1, size: tuple[int, int]
) -> None:
    answer = answers_to(strategy, size)
    assert_within_union(strategy, answer, answer.too_many_alarms, answer.too_many_misses)


def assert_within_union(strategy: Algorithm1, answer: Answers, alarms: Flags, misses: Flags) -> None:
    fpr, fnr = union_bounds(strategy, answer.n, answer.m)
    assert (answer.count_alarms(alarms) <= fpr[:, None] * PARTS**answer.m).all()
    assert (answer.count_misses(misses) <= fnr[None, :] * PARTS**answer.n).all()


def test_without_a_correction_one_side_does_exceed_its_delta() -> None:
    """Why there is a correction: without it a delta of 0.32 is broken with probability 0.46."""
    guarantee = Guarantee(0.124, 0.124, 0.32, 0.32)
    uncorrected = answers_to(Algorithm1(step=0.125, correction=None, position=0.0), (4, 4), guarantee)
    assert uncorrected.deltas("fpr") == {0.32}
    alarms = uncorrected.count_alarms(uncorrected.too_many_alarms)
    assert uncorrected.worst(alarms) == Fraction(119, 256)
    corrected = answers_to(Algorithm1(step=0.125, position=0.0), (4, 4), guarantee)
    worst = corrected.worst(corrected.count_alarms(corrected.too_many_alarms))
    assert worst == Fraction(1221, 4096) <= Fraction(0.32)


@pytest.mark.slow
def test_without_a_correction_the_joint_promise_breaks_too() -> None:
    guarantee = Guarantee(0.124, 0.124, 0.32, 0.1)
    answer = answers_to(Algorithm1(step=0.125, correction=None, position=0.0), (4, 4), guarantee)
    either = answer.count_either(answer.too_many_alarms, answer.too_many_misses)
    assert answer.worst(either) == Fraction(227, 512) > Fraction(sum(one.delta for one in guarantee.promises))


@pytest.mark.slow
def test_the_confidence_of_the_reached_level_alone_does_not_survive() -> None:
    """Why a relaxed certificate promises delta, although the budget of its level has a higher confidence."""
    guarantee = Guarantee(0.499, 0.499, 0.32, 0.32)
    answer = answers_to(Algorithm1(step=0.125, position=0.0), (4, 4), guarantee)
    budgets = [certificate.fpr.budget for row in answer.grid for certificate in row]
    doubt = 1 - min(budget.confidence for budget in budgets if budget is not None)
    violated = answer.worst(answer.count_alarms(answer.too_many_alarms))
    assert doubt < 0.2635
    assert violated == Fraction(1221, 4096)
    assert violated <= Fraction(0.32)


@sizes
@pytest.mark.parametrize("correction", ["exact", None])
@pytest.mark.parametrize("growth", ["linear", "double"])
@pytest.mark.parametrize("raised", ["both", "fpr", "fnr"])
def test_raised_deltas_hold_up_to_every_level(
    correction: Correction, growth: Growth, raised: Raised, size: tuple[int, int]
) -> None:
    """P(violated, and level j or less was needed) is at most the tail of level j: the events are nested."""
    strategy = Algorithm1(0.125, growth, raised, True, correction)
    answer = answers_to(strategy, size)
    n, m = answer.n, answer.m
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    needed = reached(answer)
    for level, (k_fpr, k_fnr) in enumerate(zip(*level_budgets(strategy, n, m), strict=True)):
        fpr = formulas.fpr_broken(k_fpr, n, 0.749)[:, None] * PARTS**m
        fnr = formulas.fnr_broken(k_fnr, m, 0.749)[None, :] * PARTS**n
        assert (answer.count_alarms(alarms & (needed <= level)) <= fpr).all()
        assert (answer.count_misses(misses & (needed <= level)) <= fnr).all()


@sizes
@pytest.mark.parametrize("strategy", every_strategy("exact", 0.5) + every_strategy(None, 0.5), ids=name)
def test_no_level_is_raised_in_vain(strategy: Algorithm1, size: tuple[int, int]) -> None:
    """The level reached is the first at which some cut between two scores is within both budgets."""
    answer = answers_to(strategy, size)
    n, m = answer.n, answer.m
    cuts = range(1, len(SUPPORT))
    high = np.array([[sum(sample[cut:]) for cut in cuts] for sample in compositions(n, len(SUPPORT))])
    low = np.array([[sum(sample[:cut]) for cut in cuts] for sample in compositions(m, len(SUPPORT))])
    expected = np.full((len(high), len(low)), len(levels_of(strategy, n, m)))
    budgets = list(zip(*level_budgets(strategy, n, m), strict=True))
    for level, (k_fpr, k_fnr) in reversed(list(enumerate(budgets))):
        if k_fpr is not None and k_fnr is not None:
            expected[((high <= k_fpr)[:, None, :] & (low <= k_fnr)[None, :, :]).any(axis=2)] = level
    assert (reached(answer) == expected).all()


def reached(answer: Answers) -> Whole:
    """Return the level of each certificate; where none was reached, the number of levels."""
    return answer.read(level_of)


def level_of(certificate: Certificate) -> int:
    assert isinstance(certificate.overlap, Algorithm1)
    level, count = certificate.overlap._reached(certificate.claim)
    return count if level is None else level
