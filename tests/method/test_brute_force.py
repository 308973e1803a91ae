"""Thresholds of groups, kinds and classes against those counted by hand from the theory, in exact arithmetic.

Budgets are sums of fractions and thresholds places in sorted lists; nothing is taken from the package.
"""

from itertools import chain
from math import inf
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, calibrate_classes, calibrate_labelled
from support.by_hand import LARGEST, alarm_from, budget, clear_below, drawn

pytestmark = pytest.mark.filterwarnings(
    "ignore::pac_wrap.VacuousWarning", "ignore::pac_wrap.UpsideDownWarning"
)


@pytest.mark.parametrize("seed", range(30))
def test_groups(seed: int) -> None:
    random = np.random.default_rng([seed, 1])
    count, delta = int(random.integers(1, 6)), float(random.choice([0.01, 0.05, 0.2]))
    ceilings = [float(one) for one in random.choice([0.05, 0.1, 0.5], 2)]
    together, pool = seed % 2 == 0, seed % 3 > 0
    own = {
        name: (drawn(random, int(random.integers(0, 80))), drawn(random, int(random.integers(1, 80)), 4.0))
        for name in range(count)
    }
    points = [(score, label, name) for name, both in own.items() for label in (0, 1) for score in both[label]]
    scores, labels, groups = zip(*(points[place] for place in random.permutation(len(points))), strict=True)
    found = calibrate_labelled(
        scores,
        labels,
        Guarantee(ceilings[0], ceilings[1], delta, delta),
        together=together,
        pool=pool,
        by=groups,
    )
    # what each has for its share is brute-forced in tests/method/groups
    shares = (delta, delta) if found.shares is None else found.shares
    assert (found.shares is not None) == together
    assert min(shares) >= 1.0 - (1.0 - delta) ** (1.0 / count) - 1e-15

    def expected(low: list[float], high: list[float]) -> tuple[float, float, bool]:
        most = budget(len(low), ceilings[0], shares[0]), budget(len(high), ceilings[1], shares[1])
        return alarm_from(low, most[0]), clear_below(high, most[1]), None in most

    few = {name for name, both in own.items() if expected(*both)[2]}
    for name, both in own.items():
        thresholds = found.certificates[name].thresholds
        assert (thresholds.alarm_from, thresholds.clear_below) == expected(*both)[:2]
    if pool and few:
        assert found.pool is not None
        together_low, together_high = (
            [score for name in few for score in own[name][side]] for side in (0, 1)
        )
        low, high, _ = expected(together_low, together_high)
        assert (found.pool.thresholds.alarm_from, found.pool.thresholds.clear_below) == (low, high)
    verdicts = found.verdicts(scores, groups)
    for name in set(own) - few:
        low, high, _ = expected(*own[name])
        for score, group, verdict in zip(scores, groups, verdicts.tolist(), strict=True):
            if group == name and low <= high and low < inf:  # one threshold, anywhere between the two
                assert verdict == 0 if score < low else verdict == 1 if score >= high else verdict >= 0
            elif group == name:
                assert verdict == (
                    0 if score < min(high, LARGEST) else 1 if low < inf and score >= low else -1
                )


@pytest.mark.parametrize("seed", range(30))
def test_kinds(seed: int) -> None:
    random = np.random.default_rng([seed, 2])
    delta = float(random.choice([0.05, 0.1]))
    sides: list[tuple[dict[str, list[float]], dict[str | None, float | None]]] = []
    for shift in (0.0, 3.0):
        kinds = {f"kind {number}": drawn(random, int(random.integers(1, 90)), shift) for number in range(3)}
        ceilings: dict[str | None, float | None] = {
            name: float(random.choice([0.05, 0.1, 0.3])) for name in kinds
        }
        if seed % 2:
            ceilings[None] = 0.1  # and one for their mixture
        if seed % 3 == 0:
            ceilings["kind 1"] = None
        sides.append((kinds, ceilings))
    (low, of_low), (high, of_high) = sides
    found = calibrate(low, high, Guarantee(of_low, of_high, delta, delta))

    def parts(kinds: dict[str, list[float]], ceilings: dict[str | None, float | None]) -> Any:
        for name, ceiling in ceilings.items():
            scores = [*chain(*kinds.values())] if name is None else kinds[name]
            if ceiling is not None:
                yield scores, budget(len(scores), ceiling, delta)

    assert found.thresholds.alarm_from == max(alarm_from(*part) for part in parts(low, of_low))
    assert found.thresholds.clear_below == min(clear_below(*part) for part in parts(high, of_high))
    for wrong, side in ((1, parts(low, of_low)), (0, parts(high, of_high))):
        for scores, errors in side:
            assert np.count_nonzero(found.verdicts(scores) == wrong) <= (errors or 0)


@pytest.mark.parametrize("seed", range(30))
def test_classes(seed: int) -> None:
    random = np.random.default_rng([seed, 3])
    count, rows, delta = int(random.integers(2, 5)), int(random.integers(1, 250)), 0.1
    labels = random.integers(count, size=rows)
    scores = random.normal(2.0 * np.eye(count)[labels])
    scores = [scores, np.round(scores), np.where(random.random(scores.shape) < 0.2, inf, scores)][seed % 3]
    order: list[int] = random.permutation(count).tolist()
    severe = seed % 2 == 1
    ceilings = {name: float(random.choice([0.05, 0.1, 0.3])) for name in (order[:-1] if severe else order)}
    found = calibrate_classes(scores, labels, ceilings, delta=delta, severities=order if severe else None)
    taken = np.zeros(rows, dtype=bool)
    limits: dict[int, float] = {}
    for name, ceiling in ceilings.items():
        own = labels == name
        values = np.where(taken[own] & severe, inf, scores[own, name]).tolist()
        limits[name] = clear_below(values, budget(len(values), ceiling, delta))
        taken |= scores[:, name] >= limits[name]
    assert {name: found.clauses[name].threshold for name in limits} == limits
    expected = []
    for row in scores.tolist():
        left = [name for name in limits if row[name] >= limits[name]]
        if severe:
            expected.append(left[0] if left else order[-1])
        else:
            expected.append(left[0] if len(left) == 1 else -1 if left else -2)
    assert found.verdicts(scores).tolist() == expected
