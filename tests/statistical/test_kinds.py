"""Kinds, classes and severities: every sample of tiny populations, and simulations with stated power."""

import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import factorial, floor, inf, prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import Guarantee, UpsideDownWarning, calibrate, calibrate_classes
from pac_wrap.tails import exact_confidence
from pac_wrap.tails.bounds import error_budget
from statistical.claims import assert_power, assert_rate
from statistical.enumeration import compositions

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
SUPPORT = (-inf, 0.0, inf)
PARTS = 8
POPULATIONS = list(compositions(PARTS, len(SUPPORT)))
CEILINGS = {"a": 0.4, "b": 0.65}
DELTA = 0.3


def samples(n: int, cells: int = len(SUPPORT)) -> list[tuple[int, ...]]:
    return list(compositions(n, cells))


def chance(population: tuple[int, ...], sample: tuple[int, ...]) -> Fraction:
    """Return the probability of a sample, in any order."""
    orders = factorial(sum(sample)) // prod(map(factorial, sample))
    return Fraction(
        orders * prod(p**k for p, k in zip(population, sample, strict=True)), PARTS ** sum(sample)
    )


def scores(sample: tuple[int, ...]) -> list[float]:
    return list(np.repeat(SUPPORT, sample))


def violated(population: tuple[int, ...], region: list[bool], ceiling: float) -> bool:
    mass = sum(part for part, inside in zip(population, region, strict=True) if inside)
    return mass > floor(Fraction(ceiling) * PARTS)


@pytest.mark.parametrize(
    "overlap", ["abstain", *(pytest.param(one, marks=pytest.mark.slow) for one in ("hold_fnr", "hold_fpr"))]
)
def test_no_kind_breaks_its_ceiling_more_often_than_delta_whatever_the_others_are(overlap: str) -> None:
    """Given the samples of all other kinds, which is more than the theorem claims."""
    asked = Guarantee(0.5, CEILINGS, DELTA, DELTA)
    worst = Fraction(0)
    for normal, other in product(samples(2), samples(3)):
        for mine, theirs in (("a", "b"), ("b", "a")):
            found = []
            for sample in samples(3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UpsideDownWarning)
                    certificate = calibrate(
                        scores(normal), {mine: scores(sample), theirs: scores(other)}, asked, overlap=overlap
                    )
                part = certificate.clause("anomalous", mine)
                region = (certificate.verdicts(SUPPORT) == 0).tolist()
                found.append((sample, region, 1.0 if part.ceiling is None else part.ceiling))
            for population in POPULATIONS:
                total = sum(
                    (chance(population, sample) for sample, *rest in found if violated(population, *rest)),
                    Fraction(0),
                )
                worst = max(worst, total)
    assert worst <= Fraction(DELTA)
    assert worst >= Fraction(1, 20)  # it is no empty promise


def test_no_kind_of_normal_points_breaks_its_ceiling_more_often_than_delta() -> None:
    asked = Guarantee(CEILINGS, None, DELTA)
    for other in samples(3):
        found = []
        for sample in samples(3):
            certificate = calibrate({"a": scores(sample), "b": scores(other)}, [], asked)
            found.append((sample, (certificate.verdicts(SUPPORT) == 1).tolist()))
        for population in POPULATIONS:
            broken = (chance(population, one) for one, region in found if violated(population, region, 0.4))
            assert sum(broken, Fraction(0)) <= Fraction(DELTA)


def test_no_class_is_ruled_out_more_often_than_its_ceiling_but_for_delta() -> None:
    """Class 0 of three, whose score has three values; the other classes are one row each."""
    worst = Fraction(0)
    for population in POPULATIONS:
        total = Fraction(0)
        for sample in samples(4):
            rows = [[one, 0.0, 0.0] for one in scores(sample)]
            rows += [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
            certificate = calibrate_classes(rows, [0] * 4 + [1, 2], 0.4, delta=DELTA)
            sets = certificate.label_sets([[one, 0.0, 0.0] for one in SUPPORT])
            if violated(population, (~sets[:, 0]).tolist(), 0.4):
                total += chance(population, sample)
        worst = max(worst, total)
    assert Fraction(1, 20) <= worst <= Fraction(DELTA)


def outcomes(n: int, asked: Guarantee, overlap: str = "abstain") -> dict[tuple[int, int], Any]:
    """Return the certificates of every pair of samples of two anomalous kinds; the normals are fixed."""
    drawn = samples(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        return {
            (i, j): calibrate([-1.0, 1.0], {"a": scores(a), "b": scores(b)}, asked, overlap=overlap)
            for (i, a), (j, b) in product(enumerate(drawn), enumerate(drawn))
        }


def chances(n: int) -> NDArray[np.float64]:
    """Return the probability of every sample (columns) in every population (rows)."""
    return np.array([[float(chance(one, sample)) for sample in samples(n)] for one in POPULATIONS])


@pytest.mark.parametrize(
    ("n", "ceilings", "delta", "worst_found"),
    [
        (2, {"a": 0.499, "b": 0.499}, 0.3, 0.25),
        (3, {"a": 0.374, "b": 0.624}, 0.3, 0.24),
        (4, {"a": 0.249, "b": 0.499}, 0.32, 0.31),
    ],
)
def test_all_kinds_fail_together_no_more_often_than_the_worst_of_them(
    n: int, ceilings: dict[str, float], delta: float, worst_found: float
) -> None:
    """Whatever both kinds are: their failures do not add up, and the bound is nearly attained."""
    found = outcomes(n, Guarantee(None, ceilings, delta_fnr=delta))
    p = chances(n)
    broken = np.zeros((len(POPULATIONS), len(POPULATIONS)))
    masses = np.array(POPULATIONS)
    for (i, j), certificate in found.items():
        region = certificate.verdicts(SUPPORT) == 0
        over = [masses @ region > floor(Fraction(one) * PARTS) for one in ceilings.values()]
        fails = over[0][:, None] | over[1][None, :]
        broken += np.outer(p[:, i], p[:, j]) * fails
    (stated,) = {certificate.confidence for certificate in found.values()}
    tails = [1 - exact_confidence(n, one, error_budget(n, one, delta)) for one in ceilings.values()]
    assert stated == pytest.approx(1 - max(tails), abs=1e-12)
    assert worst_found <= broken.max() <= 1 - stated + 1e-12
    # (62) would state less
    assert 1 - stated < sum(tails)


def test_counted_kinds_hold_together_with_the_product_of_their_confidences() -> None:
    """The normal points are held at a threshold; each kind of anomalies has the bound of its own count."""
    asked = Guarantee(0.6, {"a": 0.5, "b": 0.5}, DELTA, DELTA)
    n, p, masses = 4, chances(4), np.array(POPULATIONS)
    found = outcomes(n, asked, "hold_fpr")
    broken = np.zeros((len(POPULATIONS), len(POPULATIONS)))
    for (i, j), certificate in found.items():
        region = certificate.verdicts(SUPPORT) == 0
        over = [
            masses @ region > (PARTS if part.ceiling is None else floor(Fraction(part.ceiling) * PARTS))
            for part in certificate.of("anomalous")
        ]
        broken += np.outer(p[:, i], p[:, j]) * (over[0][:, None] | over[1][None, :])
    tail = 1 - exact_confidence(2, 0.6, error_budget(2, 0.6, DELTA))
    stated = min(certificate.confidence for certificate in found.values())
    assert stated == pytest.approx((1 - tail) * (1 - DELTA) ** 2, abs=1e-12)
    # given the normals, as here
    assert DELTA < broken.max() <= 1 - (1 - DELTA) ** 2


def test_a_ceiling_on_all_kinds_together_costs_nothing_more() -> None:
    """Points of both kinds as they come: which kinds they are is drawn too, and so are the stated tails."""
    ceilings = {"a": 0.65, "b": 0.65, None: 0.499}
    asked = Guarantee(None, ceilings, delta_fnr=0.36)
    cells = [(kind, score) for kind in "ab" for score in SUPPORT]
    populations = np.array(list(compositions(PARTS, len(cells))))
    drawn = samples(4, len(cells))
    slack = np.zeros(len(populations))
    broken = np.zeros(len(populations))
    for sample in drawn:
        orders = factorial(4) // prod(map(factorial, sample))
        p = orders * np.prod(populations ** np.array(sample), axis=1) / PARTS**4
        points = [cell for cell, count in zip(cells, sample, strict=True) for _ in range(count)]
        kinds = {name: [score for kind, score in points if kind == name] for name in "ab"}
        certificate = calibrate([-1.0, 1.0], kinds, asked)
        region = np.array([verdict == 0 for verdict in certificate.verdicts([one for _, one in cells])])
        fails = populations @ region > floor(Fraction(0.499) * PARTS)
        for name in "ab":
            own = np.array([kind == name for kind, _ in cells])
            fails |= populations @ (region & own) > Fraction(0.65) * (populations @ own)
        broken += p * fails
        slack += p * (1 - certificate.confidence)
    assert (broken <= slack + 1e-12).all()
    assert broken.max() >= 0.19


CELLS = list(product((0.0, 1.0), (0.0, 1.0)))


def second_class(sample: tuple[int, ...]) -> Iterator[list[float]]:
    for (first, second), count in zip(CELLS, sample, strict=True):
        yield from [[first, second, 0.0]] * count


def test_no_severity_is_taken_for_a_milder_one_more_often_than_its_ceiling_but_for_delta() -> None:
    """The second of three classes, with two scores of two values each; given the sample of the first."""
    populations = list(compositions(PARTS, len(CELLS)))
    worst = Fraction(0)
    for severe in samples(4, 2):
        first = [[one, 0.0, 0.0] for one in np.repeat([0.0, 1.0], severe)]
        found = []
        for sample in samples(4, len(CELLS)):
            rows = [*first, *second_class(sample), [0.0, 0.0, 1.0]]
            labels = [0] * 4 + [1] * 4 + [2]
            certificate = calibrate_classes(rows, labels, 0.4, delta=DELTA, severities=[0, 1, 2])
            milder = certificate.verdicts([[*cell, 0.0] for cell in CELLS]) == 2
            found.append((sample, milder.tolist()))
        for population in populations:
            broken = (chance(population, one) for one, region in found if violated(population, region, 0.4))
            worst = max(worst, sum(broken, Fraction(0)))
    assert Fraction(1, 20) <= worst <= Fraction(DELTA)


TRIALS = 3600
N = 60
CEILING = 0.1


@pytest.mark.slow
@pytest.mark.parametrize("severities", [None, [0, 1, 2]])
def test_continuous_scores_break_a_ceiling_exactly_as_often_as_the_binomial_says(
    severities: list[int] | None,
) -> None:
    """The middle class: s_1 is uniform on it, and half of it is taken for the more severe class before."""
    random = np.random.default_rng(1)
    allowed = 1.0 - exact_confidence(N, CEILING, error_budget(N, CEILING, 0.1))
    labels = np.repeat([0, 1, 2], N)
    broken = 0
    for _ in range(TRIALS):
        drawn = random.random((3 * N, 3))
        drawn[:N, 0] += 0.5  # the severe class, whose threshold lies above a half
        certificate = calibrate_classes(drawn, labels, CEILING, delta=0.1, severities=severities)
        first, second = certificate.clauses[0].threshold, certificate.clauses[1].threshold
        assert first is not None
        assert second is not None
        below = min(second, 1.0)
        rate = below if severities is None else min(first, 1.0) * below
        broken += rate > CEILING
    assert_rate(broken, TRIALS, allowed)
    assert_power(TRIALS, allowed, 2 * allowed)
    assert_power(TRIALS, allowed, allowed / 2)
