"""Bounds of an error rate that hold at every threshold together: the band of equal local levels.

Its level follows from a boundary-crossing probability of the counts of uniform numbers.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from functools import lru_cache, partial
from math import ceil, exp, floor, isfinite, lgamma, log, log2, log10, pi, sqrt
from typing import ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_float, check_count, check_delta, rate_or_none
from pac_wrap.base.floats import order_key, unsigned_zero
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import Asked, Claim, Decision, Found, Ranks, Strategy
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget, beta_quantile

Counts = NDArray[np.int64]
Rates = NDArray[np.float64]

# steps between the ranks that a band is anchored at: a 50th of the rank, and at most a 500th of n: eq. (37)
_OF_RANK: Final = 50
_OF_ALL: Final = 500
MOST_POINTS: Final = 10**8
# a level is rounded down to this many digits, so that every machine has the same one
_DIGITS: Final = 8
# a secant's error is roughly below the product of its last two moves; and a move that counts as none
_NEAR: Final = 1e-9
_EXACT: Final = 1e-11
_UPWARDS: Final = Context(prec=12, rounding=ROUND_CEILING)
_RAISED: Final = 1.0 + 1e-12
TOGETHER: Final = (
    "A curve and another certificate of the same labels hold together only with their deltas added."
)
# where the search for a level begins: delta / level at delta = 0.05 by log10 n, and its change with ln delta
_ABOUT: Final = (
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
    (1.0, 6.3, 20.3, 38.0, 45.5, 54.1, 63.4, 74.2),
)
_WITH_DELTA: Final = (
    (-9.2, -6.9, -4.6, -3.7, -3.0, -2.3, -1.4, -0.7),
    (0.69, 0.51, 0.26, 0.13, 0.0, -0.16, -0.48, -0.9),
)
# by roughly how many percent the chance of failure grows with one percent of level
_SLOPE: Final = 0.88

# the chance cut off at each end of a window or kernel is below exp(-37) < 1e-16: eq. (33)
_NEGLIGIBLE: Final = 37.0
_EPSILON: Final = 2.0**-52
# from this many multiplications on, a transform takes less time than the sum
_MANY: Final = 250_000
# from this number on, four terms of Stirling's series give 16 digits
_FEW: Final = 20


@dataclass(frozen=True, slots=True)
class Band:
    """Upper bounds of a rate for every count of errors among n points, which all hold together: eq. (30).

    Only `ranks` have their own bound. Any other count has the bound of the next larger rank; above the last
    rank the bound is 1: eq. (36). With a top, the ranks end before their bounds exceed it: eq. (120).
    """

    n: int
    delta: float
    level: float
    ranks: Counts
    bounds: Rates

    def of(self, counts: ArrayLike) -> Rates:
        return np.asarray(np.append(self.bounds, 1.0)[np.searchsorted(self.ranks, np.asarray(counts))])


def anchor_ranks(n: int) -> Counts:
    """Return the counts that anchor a band of n points, all counts if n < 1,000: eq. (37)."""
    ranks, rank = [], 0
    while rank < n:
        ranks.append(rank)
        rank += max(1, min(rank // _OF_RANK, n // _OF_ALL))
    return np.array(ranks, dtype=np.int64)


@lru_cache(maxsize=256)
def band_of(n: int, delta: float, top: float | None = None) -> Band:
    """Return the band of n points, proved to fail with at most delta: eq. (36), and eq. (120) with a top."""
    n, delta, top = check_count("n", n), check_delta("delta", delta), rate_or_none("top", top)
    if n > MOST_POINTS:
        raise InputError(f"a curve takes at most {MOST_POINTS:,} scores of a class, got {n:,}")
    ranks = anchor_ranks(n)
    whole = _anchored(n, delta, ranks.size)
    if top is None:
        return whole

    def within(bounds: Rates) -> int:
        return int(np.searchsorted(bounds, top, side="right"))

    # more ranks have a lower level, and so higher bounds: that of all ranks is the lowest
    low = within(whole.bounds)
    high = within(_bounds(n, ranks, _anchored(n, delta, low).level)[0])
    more = range(low + 1, high + 1)
    low += bisect_left(more, True, key=lambda count: within(_anchored(n, delta, count).bounds) < count)
    return _anchored(n, delta, low)


@lru_cache(maxsize=256)
def _anchored(n: int, delta: float, count: int) -> Band:
    """Return the band of n points that is anchored at the first `count` ranks."""
    ranks = anchor_ranks(n)[:count]
    if not ranks.size:
        return Band(n, delta, delta, ranks, np.zeros(0))

    def excess(level: float) -> float:
        bounds, below = _bounds(n, ranks, level)
        return log(keeping(n, bounds, at_least=below + 1).failure / delta)  # eq. (35)

    about = float(np.interp(log10(n), *_ABOUT)) * exp(float(np.interp(log(delta), *_WITH_DELTA)))
    level = _floored(_solved(excess, delta / max(1.0, about)))
    while excess(level) > 0.0:
        level = _floored(level, 1)
    bounds, ranks = _bounds(n, ranks, level)
    # raised a little, which is safe, so that every machine has the same bounds
    rates = [float(_UPWARDS.create_decimal_from_float(rate * _RAISED)) for rate in bounds.tolist()]
    below = int(np.searchsorted(rates, 1.0))
    found = Band(n, delta, level, ranks[:below], np.array(rates[:below]))
    found.ranks.flags.writeable = found.bounds.flags.writeable = False
    return found


def _bounds(n: int, ranks: Counts, level: float) -> tuple[Rates, Counts]:
    """Return upper(rank, n, level) of eq. (5), and the ranks for which it is below 1."""
    rates = beta_quantile(ranks + 1.0, n - ranks, level, above=True)
    below = (rates > 0.0) & (rates < 1.0)
    return rates[below], ranks[below]


def _solved(excess: Callable[[float], float], guess: float) -> float:
    """Return by secants the level at which the excess, nearly linear in ln(level), is 0."""
    last, value = log(guess), excess(guess)
    move, slope = -value / _SLOPE, _SLOPE
    while abs(move) > _EXACT:
        here = last + move
        new = excess(exp(here))
        slope = (new - value) / move or slope
        near = abs(new / slope * move) < _NEAR
        last, value, move = here, new, -new / slope
        if near:
            break
    return exp(last + move)


def _floored(level: float, units: int = 0) -> float:
    """Return a level rounded down to its first digits, minus some units of the last one."""
    exponent = floor(log10(level)) - _DIGITS + 1
    mantissa = level / 10.0**exponent
    # a level that was rounded before is unchanged
    whole = round(mantissa) if abs(mantissa - round(mantissa)) < 1e-6 else floor(mantissa)
    return float(f"{whole - units}e{exponent}")


@dataclass(frozen=True, slots=True)
class Held:
    """The chance that all limits are kept, up to an error that is bounded, not estimated."""

    probability: float
    error: float

    @property
    def failure(self) -> float:
        """The chance that any limit is broken, rounded up."""
        return min(1.0, 1.0 - self.probability + self.error)


def keeping(
    n: int, places: ArrayLike, at_least: ArrayLike | None = None, at_most: ArrayLike | None = None
) -> Held:
    """Return the chance that the counts of n uniform numbers up to each place keep their limits: eq. (31)."""
    # as those of a Poisson process, divided by P(Poisson(n) = n): eq. (32) (Moscovich and Nadler 2017)
    times: list[float] = np.asarray(places, dtype=np.float64).tolist()
    floors = [0] * len(times) if at_least is None else np.asarray(at_least).tolist()
    caps = [n] * len(times) if at_most is None else np.asarray(at_most).tolist()
    walk = _Walk(n)
    for time, least, most in zip(times, floors, caps, strict=True):
        walk.advance(time, least, most)
    return walk.end()


class _Walk:
    """The counts of a Poisson process of rate n that are within all limits so far, each with its chance."""

    def __init__(self, n: int) -> None:
        self._n, self._time, self._low = n, 0.0, 0
        self._mass: Rates = np.ones(1)
        # P(Poisson(n) = n)
        if n < _FEW:
            mean = exp(n * log(n) - n - lgamma(n + 1)) if n else 1.0
        else:
            series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
            mean = exp(-series) / sqrt(2.0 * pi * n)
        # an error in one chance is magnified by at most this factor in the end
        self._gain = 1.0 / mean
        self._error = 0.0

    def advance(self, time: float, least: int, most: int) -> None:
        """Advance to a later time, and drop the counts that break its limits, or hardly ever occur."""
        mean = self._n * time
        reach = _reach(mean * (1.0 - time))
        low = max(least, floor(mean - reach), self._low, 0)
        high = min(most, ceil(mean + reach), self._n)
        none = self._mass.size == 0 or high < low
        self._mass = np.zeros(0) if none else self._moved(time, low, high)
        self._time, self._low = time, low

    def end(self) -> Held:
        """Return the chance that all limits were kept, given that the process ends with n points."""
        rest = self._n * (1.0 - self._time)
        first, kernel = _poisson(rest)
        # counts from which the points that are left are within the kernel
        missing = self._n - self._low - first - np.arange(self._mass.size)
        inside = (missing >= 0) & (missing < kernel.size)
        held = float(self._mass[inside] @ kernel[missing[inside]]) * self._gain
        self._error += (self._mass.size + kernel.size) * _EPSILON
        return Held(min(held, 1.0), self._error)

    def _moved(self, time: float, low: int, high: int) -> Rates:
        """Return the chances of the counts from low to high at a later time."""
        step = self._n * (time - self._time)
        size, wanted = self._mass.size, high - low + 1
        width = 2.0 * _reach(step)
        if min(size, width) * min(wanted, size + width) > _MANY:
            return self._transformed(time, low - self._low, wanted)
        first, kernel = _poisson(step)
        self._error += (min(size, kernel.size) + 2 * kernel.size) * _EPSILON
        start = low - self._low - first
        whole = np.convolve(self._mass, kernel)
        moved = np.zeros(wanted)
        begin, end = max(start, 0), min(start + wanted, whole.size)
        moved[begin - start : end - start] = whole[begin:end]
        return moved

    def _transformed(self, time: float, shift: int, wanted: int) -> Rates:
        """Return these chances by a transform; that of the Poisson kernel is exp(step (e^(-iw) - 1))."""
        step = self._n * (time - self._time)
        size, reach = self._mass.size, _reach(step)
        least = ceil(reach + max(step - shift + size, shift - step + wanted)) + 2
        power = 1 << max(0, least - 1).bit_length()
        # one that transforms quickly
        length = next(one for one in (power * 5 // 8, power * 3 // 4, power) if one >= least)
        # the kernel leaves only low frequencies, |w| <= sqrt(2 * 37 / step) * pi / 2
        most = length // 2 + 1
        kept = min(most, ceil(length * sqrt(2.0 * _NEGLIGIBLE / step) / 4.0) + 1)
        angle = np.arange(kept) * (2.0 * pi / length)
        turn = shift * angle - step * np.sin(angle)
        kernel = np.exp(-2.0 * step * np.sin(angle / 2.0) ** 2 + 1j * turn)
        spectrum = np.zeros(most, dtype=np.complex128)
        spectrum[:kept] = np.fft.rfft(self._mass, length)[:kept] * kernel
        moved = np.fft.irfft(spectrum, length)[:wanted]
        rounding = _EPSILON * (8.0 * log2(length) + 3.0 * (step + abs(shift)) / sqrt(step))
        # chances add up to 1 at most, so the largest bounds the sum of their squares: eq. (34)
        left = floor(self._n * (1.0 - time))
        later = 1.0 / sqrt(2.0 * pi * left) if left else 1.0
        self._error += self._gain * rounding * sqrt(float(self._mass.max()) * later)
        return np.maximum(moved, 0.0, out=moved)


def _reach(variance: float) -> float:
    """Return the distance from the mean that a binomial or Poisson count exceeds with exp(-37): eq. (33)."""
    third = _NEGLIGIBLE / 3.0
    return third + sqrt(third * third + 2.0 * _NEGLIGIBLE * variance)


def _poisson(mean: float) -> tuple[int, Rates]:
    """Return the chances of Poisson counts, from the first that is not negligible on; they add up to 1."""
    reach = _reach(mean)
    mode = floor(mean)
    first, last = max(0, floor(mean - reach)), ceil(mean + reach)
    up = np.cumprod(mean / np.arange(mode + 1, last + 1))
    down = np.cumprod(np.arange(mode, first, -1) / mean) if mean else np.zeros(0)
    chances = np.concatenate([down[::-1], [1.0], up])
    return first, chances / chances.sum()


@dataclass(frozen=True, slots=True)
class Given(Strategy):
    """Use a threshold that was chosen freely, even after looking; its ceilings are read off a curve.

    It is made by `Curve.at` and the choices of a curve. The ceilings are the bounds of eq. (36), which hold
    at every threshold together, so it does not matter how this one was chosen.

    Parameters
    ----------
    threshold : float
        Scores from this one on are declared anomalies.
    top_fpr, top_fnr : float, optional
        The largest bounds of the curve, if it has any: eq. (120).

    Examples
    --------
    >>> from pac_wrap import certify_curve
    >>> certify_curve(range(500), range(400, 900)).at(450).overlap
    Given(threshold=450.0, top_fpr=None, top_fnr=None)
    """

    tag: ClassVar[str] = "curve"
    given: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True
    # a level has eight digits, of which the last may differ between machines
    digits: ClassVar[float] = 1e-6
    threshold: float
    top_fpr: float | None = field(default=None, metadata={"optional": True})
    top_fnr: float | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        number = as_float(self.threshold)
        if not isfinite(number):
            raise InputError(
                f"threshold must be a finite number, got {quoted(self.threshold)}; to raise an"
                " alarm at inf alone, take the largest double"
            )
        object.__setattr__(self, "threshold", unsigned_zero(number))
        for name in ("top_fpr", "top_fnr"):
            object.__setattr__(self, name, rate_or_none(name, getattr(self, name)))

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield nothing, since the needed ranks depend on counts."""
        yield from ()

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the decision: the bounds that the two bands give for the errors at the threshold."""
        tau, certified, found = order_key(self.threshold), False, []
        for p, one in enumerate(asked):
            n, below = ranks.n[p], ranks.below(p, tau)
            bound = partial(_bound, one.delta, self.top_fpr if one.normal else self.top_fnr)
            rate, level, errors = interface.each(bound, n - below if one.normal else below, n)
            found.append(Found(rate, level, errors, interface.key_of(one, ranks, p, errors), rate, one.delta))
            certified = certified | (rate == rate)
        # points beyond the other threshold are not counted, since a curve does not know them
        return Decision(tuple(found), *interface.one_threshold(tau, certified), None, None, certified)

    def summary(self, claim: Claim) -> str:
        return "curve: one threshold, chosen freely; its ceilings are bounds that hold at every threshold"

    def explanation(self, claim: Claim) -> Iterator[str]:
        yield (
            "Strategy curve: one threshold, read off a certified curve. Its bounds hold at every threshold"
            " together, so this one may have been chosen after looking, in any way."
        )
        yield TOGETHER

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        deltas, tops = (asked.delta_fpr, asked.delta_fnr), (self.top_fpr, self.top_fnr)
        return sum(band.ranks.size for band in map(band_of, sizes, deltas, tops))


def _bound(delta: float, top: float | None, errors: int, n: int) -> tuple[float, float, int]:
    """Return the rate, level and errors of the budget of counted errors among n in a band: eq. (36)."""
    band = band_of(n, delta, top)
    place = int(np.searchsorted(band.ranks, errors))
    # above the last rank no bound is below 1
    found = None if place == band.ranks.size else Budget.of(n, float(band.bounds[place]), band.level)
    return interface.numbers_of(found)
