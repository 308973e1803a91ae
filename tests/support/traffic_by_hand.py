"""Certificates of traffic counted by hand from section 18 of the theory, in exact arithmetic."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb, inf, isnan, nextafter, sqrt
from typing import Any, Final, NamedTuple

from support.by_hand import LARGEST, budget, clear_below

USUAL: Final = {"delta": 0.05, "delta_fnr": 0.05, "rate": 1.0, "mistaken": 0.0, "max_anomalies": 0.0}


class Made(NamedTuple):
    """The threshold and the number of points of each promise, the rule, its alarms, the joint confidence."""

    thresholds: dict[str, float]
    points: dict[str, int]
    rule: tuple[float, float]
    alarms: tuple[int, int, int]
    confidence: Fraction


def tail(k: int, n: int, rate: Fraction) -> Fraction:
    """Return P(Binomial(n, rate) <= k)."""
    return sum((comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k + 1)), Fraction(0))


def just_above(ordered: Sequence[float], errors: int | None) -> float:
    """Return the least threshold that this many of the scores, the highest first, may reach: eq. (138)."""
    if errors is None:
        return inf
    return nextafter(ordered[errors] if errors < len(ordered) else -inf, inf)


def ranks(points: int, rate: Fraction, delta: float) -> Iterator[int]:
    """Yield the ranks at which precision is tested: from the first that allows four errors, by sqrt(2)."""
    first, place = 5, 0
    while tail(4, first, rate) > Fraction(delta):
        first += 1
    while (rank := round((first + 1) * sqrt(2.0) ** place)) <= points:
        yield rank
        place += 1


def largest_certified(
    caught: Sequence[float], missed: Sequence[float], rho: Fraction, delta: float
) -> tuple[float, int]:
    """Return the largest threshold that audits certify, and how many anomalies count there: eq. (149)."""
    found = -inf, len(caught)
    for t in sorted({*caught, *missed}):
        x, h = sum(one < t for one in missed), sum(one >= t for one in caught)
        if tail(x, x + h, rho) <= Fraction(delta):
            found = t, x + h
    return found


def by_hand(
    scores: Sequence[float],
    reviews: Sequence[float],
    asked: dict[str, Any],
    anomalous: Sequence[float] | None = None,
    independent: bool = False,
    audits: Sequence[bool] | None = None,
) -> Made:
    """Return the result for scores with NaN for none, and reviews of 1, 0 or NaN for none."""
    said = USUAL | asked
    delta, delta_fnr, share, n = said["delta"], said["delta_fnr"], Fraction(said["rate"]), len(scores)
    truth, sure = 1 - Fraction(said["mistaken"]), 1 - Fraction(said["max_anomalies"])
    points = [(-inf if isnan(s) else s + 0.0, r) for s, r in zip(scores, reviews, strict=True)]
    every = sorted((s for s, _ in points), reverse=True)
    rest = sorted((s for s, r in points if r != 1), reverse=True)
    thresholds: dict[str, float] = {}
    sizes: dict[str, int] = {}
    tails = []
    for name, factor in (
        ("alarms", Fraction(1)),
        ("false alarms", share * truth),
        ("FPR", share * truth * sure),
    ):
        if name not in asked:
            continue
        counted = every if name == "alarms" else rest
        floor = -inf
        if name != "alarms" and share < 1:
            counted = sorted((s for s, r in points if r == 0), reverse=True)
            floor = nextafter(min((s for s, r in points if not isnan(r)), default=inf), inf)
        errors = budget(n, Fraction(said[name]) * factor, delta)
        thresholds[name], sizes[name] = max(just_above(counted, errors), floor), n
        if errors is not None:
            tails.append(tail(errors, n, Fraction(said[name]) * factor))
    side = 1 - max(tails, default=Fraction(0))
    if "precision" in asked:
        # the ceiling of wrong alarms is a double
        limit = Fraction(1.0 - said["precision"]) * truth
        least, name = max(thresholds.values(), default=-inf), "wrong alarms"
        thresholds[name], sizes[name] = inf, 0
        for rank in ranks(n, limit, delta):
            t = every[rank - 1]
            alarms, wrong = sum(s > t for s in every), sum(s > t for s in rest)
            if not alarms or tail(wrong, alarms, limit) > Fraction(delta):
                break
            if least <= nextafter(t, inf) < inf:
                thresholds[name], sizes[name] = nextafter(t, inf), alarms
        side -= Fraction(delta) if sizes[name] else 0
    edges, clear, missed = list(thresholds.values()), inf, Fraction(0)
    if "FNR" in asked:
        e = Fraction(said["FNR"])
        if audits is not None:
            e = Fraction(said["audits"]) * e / (Fraction(said["audits"]) * e + 1 - e)
            caught = [s for s, r in points if r == 1]
            unseen = [s for (s, r), drawn in zip(points, audits, strict=True) if drawn and r != 0]
            clear, sizes["FNR"] = largest_certified(caught, unseen, e, delta_fnr)
            missed = Fraction(0 if budget(sizes["FNR"], e, delta_fnr) is None else delta_fnr)
        elif anomalous is not None:
            errors = budget(len(anomalous), e, delta_fnr)
            clear, sizes["FNR"] = clear_below(list(anomalous), errors), len(anomalous)
            missed = missed if errors is None else tail(errors, len(anomalous), e)
        thresholds["FNR"] = clear
    side = (1 - missed) * max(side, Fraction(0)) if independent else max(side - missed, Fraction(0))
    alarm, low = max(edges, default=min(clear, LARGEST)), min(clear, LARGEST)
    rule = low, alarm
    if "FNR" not in asked or (alarm < inf and clear >= alarm):
        rule = (alarm if "FNR" not in asked or "precision" in asked else low,) * 2
    high = rule[1]
    raised = [r for s, r in points if s >= high and high < inf]
    return Made(thresholds, sizes, rule, (len(raised), raised.count(1), raised.count(0)), side)
