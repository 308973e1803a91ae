"""How likely the counts of uniform numbers keep to limits at given places: boundary crossing."""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, floor, lgamma, log, log2, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import check_count
from pac_wrap.errors import InputError

Counts = NDArray[np.int64]
Masses = NDArray[np.float64]

# what is cut off at each end of a window or kernel is below exp(-37) < 1e-16: eq. (33)
_NEGLIGIBLE: Final = 37.0
_EPSILON: Final = 2.0**-52
# from so many multiplications on, a transform takes less time than the sum
_MANY: Final = 250_000
# from so many on, four terms of Stirling's series give 16 digits
_FEW: Final = 20


@dataclass(frozen=True, slots=True)
class Held:
    """How likely all limits are kept, up to an error that is bounded, not estimated."""

    probability: float
    error: float

    @property
    def failure(self) -> float:
        """How likely some limit is broken; never less than it is."""
        return min(1.0, 1.0 - self.probability + self.error)


def keeping(
    n: int, places: ArrayLike, at_least: ArrayLike | None = None, at_most: ArrayLike | None = None
) -> Held:
    """Return how likely, of n uniform numbers, as many lie at or below each place as the limits ask for.

    P(at_least[j] <= N(places[j]) <= at_most[j] for all j), eq. (31), by the programme of eq. (32): a Poisson
    process of rate n takes the place of the n numbers, and the end is divided by P(Poisson(n) = n) (Moscovich
    and Nadler 2017).
    """
    n = check_count("n", n)
    times, floors, caps = _checked(n, places, at_least, at_most)
    walk = _Walk(n)
    for time, least, most in zip(times, floors, caps, strict=True):
        walk.advance(time, least, most)
    return walk.end()


def _checked(
    n: int, places: ArrayLike, at_least: ArrayLike | None, at_most: ArrayLike | None
) -> tuple[list[float], list[int], list[int]]:
    times: list[float] = np.asarray(places, dtype=np.float64).tolist()
    if not all(0.0 < time < 1.0 for time in times) or any(a >= b for a, b in pairwise(times)):
        raise InputError("places must rise strictly and lie strictly between 0 and 1; sort them, each once")
    floors = [0] * len(times) if at_least is None else np.asarray(at_least).tolist()
    caps = [n] * len(times) if at_most is None else np.asarray(at_most).tolist()
    if not len(times) == len(floors) == len(caps):
        raise InputError(
            f"places and limits must have the same length, got {len(times)}, {len(floors)} and {len(caps)}"
        )
    return times, floors, caps


class _Walk:
    """The counts of a Poisson process of rate n that have kept all limits so far, each with its chance."""

    def __init__(self, n: int) -> None:
        self._n, self._time, self._low = n, 0.0, 0
        self._mass: Masses = np.ones(1)
        # a mistake in one chance is magnified at the end by no more than this
        self._gain = 1.0 / _at_its_mean(n)
        self._error = 0.0

    def advance(self, time: float, least: int, most: int) -> None:
        """Go on to a later time, and drop the counts that break the limits there, or hardly ever occur."""
        mean = self._n * time
        reach = _reach(mean * (1.0 - time))
        low = max(least, floor(mean - reach), self._low, 0)
        high = min(most, ceil(mean + reach), self._n)
        if self._mass.size == 0 or high < low:
            self._mass = np.zeros(0)
        else:
            self._mass = self._moved(time, low, high)
        self._time, self._low = time, low

    def end(self) -> Held:
        """Return how likely all limits were kept, given that the process ends with n points."""
        rest = self._n * (1.0 - self._time)
        first, kernel = _poisson(rest)
        # counts from which so many points are left as the kernel holds
        missing = self._n - self._low - first - np.arange(self._mass.size)
        inside = (missing >= 0) & (missing < kernel.size)
        held = float(self._mass[inside] @ kernel[missing[inside]]) * self._gain
        self._error += (self._mass.size + kernel.size) * _EPSILON
        return Held(min(held, 1.0), self._error)

    def _moved(self, time: float, low: int, high: int) -> Masses:
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

    def _transformed(self, time: float, shift: int, wanted: int) -> Masses:
        """Return these chances by a transform; that of the Poisson kernel is exp(step (e^(-iw) - 1))."""
        step = self._n * (time - self._time)
        size, reach = self._mass.size, _reach(step)
        length = _smooth(ceil(reach + max(step - shift + size, shift - step + wanted)) + 2)
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
    """Return how far a binomial or Poisson count goes from its mean, but for exp(-37): eq. (33)."""
    third = _NEGLIGIBLE / 3.0
    return third + sqrt(third * third + 2.0 * _NEGLIGIBLE * variance)


def _poisson(mean: float) -> tuple[int, Masses]:
    """Return the chances of Poisson counts, from the first that is not negligible on; they add up to 1."""
    reach = _reach(mean)
    mode = floor(mean)
    first, last = max(0, floor(mean - reach)), ceil(mean + reach)
    up = np.cumprod(mean / np.arange(mode + 1, last + 1))
    down = np.cumprod(np.arange(mode, first, -1) / mean) if mean else np.zeros(0)
    chances = np.concatenate([down[::-1], [1.0], up])
    return first, chances / chances.sum()


def _at_its_mean(n: int) -> float:
    """Return P(Poisson(n) = n)."""
    if n < _FEW:
        return exp(n * log(n) - n - lgamma(n + 1)) if n else 1.0
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
    return exp(-series) / sqrt(2.0 * pi * n)


def _smooth(least: int) -> int:
    """Return a length from `least` on that transforms quickly."""
    power = 1 << max(0, least - 1).bit_length()
    return next(length for length in (power * 5 // 8, power * 3 // 4, power) if length >= least)
