"""Assertions about rates that are only observed: how often each may fail by luck, and what it must catch.

An assertion on seeded trials is worth what it can catch. So each comes in two halves: `assert_rate` or
`assert_at_most` looks at the trials and would raise a false alarm with probability `false_alarm` at most;
`assert_power` looks at no data and proves that there are enough trials to catch a given wrong rate.
"""

from scipy.stats import binom

FALSE_ALARM = 1e-6
POWER = 0.999


def accepted(
    trials: int, expected: float, *, at_most: bool = False, false_alarm: float = FALSE_ALARM
) -> tuple[int, int]:
    """Return the fewest and the most hits that still agree with the expected rate."""
    if expected in (0.0, 1.0):
        certain = int(expected) * trials
        return (0 if at_most else certain), certain
    if at_most:
        return 0, int(binom.isf(false_alarm, trials, expected))
    return int(binom.ppf(false_alarm / 2, trials, expected)), int(
        binom.isf(false_alarm / 2, trials, expected)
    )


def assert_rate(hits: int, trials: int, expected: float, false_alarm: float = FALSE_ALARM) -> None:
    """Fail if the hits contradict the expected rate, from either side."""
    _assert_accepted(hits, trials, accepted(trials, expected, false_alarm=false_alarm), f"= {expected:.6g}")


def assert_at_most(hits: int, trials: int, bound: float, false_alarm: float = FALSE_ALARM) -> None:
    """Fail if there are more hits than any rate up to the bound explains."""
    region = accepted(trials, bound, at_most=True, false_alarm=false_alarm)
    _assert_accepted(hits, trials, region, f"<= {bound:.6g}")


def assert_power(
    trials: int,
    expected: float,
    alternative: float,
    *,
    at_most: bool = False,
    power: float = POWER,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Fail unless a true rate of `alternative` would be caught with probability `power`."""
    low, high = accepted(trials, expected, at_most=at_most, false_alarm=false_alarm)
    caught = float(binom.cdf(low - 1, trials, alternative) + binom.sf(high, trials, alternative))
    assert caught >= power, (
        f"{trials:,} trials catch a rate of {alternative:.6g} instead of {expected:.6g}"
        f" with probability {caught:.6g} only, not {power}"
    )


def _assert_accepted(hits: int, trials: int, region: tuple[int, int], claim: str) -> None:
    low, high = region
    assert low <= hits <= high, (
        f"{hits:,} hits in {trials:,} trials ({hits / trials:.6g}) contradict a rate {claim}:"
        f" {low:,} to {high:,} would agree"
    )
