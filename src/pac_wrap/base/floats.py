"""Doubles by their bits: both zeros are one number, and a subnormal number is not zero.

A processor may think otherwise: `torch.set_flush_denormal(True)`, or a library built with -ffast-math, makes
it take subnormal numbers for zeros in every comparison, sum and conversion. Ranks, thresholds and digests
must not change with that, and this is the one module that sees to it. It also rounds: scores to their type,
and what is promised against the promise.
"""

import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil, copysign, frexp, inf, ldexp, nextafter
from struct import pack, unpack
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Bits = NDArray[np.uint64]
ScoreType = Literal["float64", "float32", "float16"]

_SUBNORMAL: Final = 5e-324
_LEAST_NORMAL: Final = sys.float_info.min
_LEAST_NORMAL_32: Final = np.finfo(np.float32).tiny
_MINUS_ZERO: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_SIGN: Final = np.uint64(_MINUS_ZERO)
_TO_MASK: Final = np.int64(63)
# keys are made of this many scores at a time, so that they stay in the cache
_CHUNK: Final = 1 << 17


def flushes() -> bool:
    """Return whether this processor takes subnormal numbers for zeros now."""
    return _SUBNORMAL == 0.0


def is_flushed(value: float) -> bool:
    """Return whether the processor takes this number for zero, though it is not."""
    return value == 0.0 and _bits(value) != 0


def is_delicate(value: float) -> bool:
    """Return whether comparing scores with this number depends on whether the processor flushes."""
    # it does next to zero, as far as float32 has subnormal numbers
    return abs(value) < 2.0**-126


def unsigned_zero(value: float) -> float:
    """Return the value, 0.0 for -0.0."""
    return value if _bits(value) else 0.0


def away_from_zero(value: float) -> float:
    """Return the value; for a subnormal number the least normal one of its sign."""
    return copysign(_LEAST_NORMAL, value) if abs(value) < _LEAST_NORMAL and _bits(value) else value


def widened(scores: NDArray[Any], out: Doubles | None = None) -> Doubles:
    """Return scores as doubles, in `out` if it is given, else sharing memory where possible."""
    # a subnormal float32, a normal number as a double, keeps its value where the processor would flush it
    if out is None:
        wide = scores.astype(np.float64, copy=False)
    else:
        np.copyto(wide := out, scores)
    if (scores.dtype.kind, scores.dtype.itemsize) == ("f", 4) and flushes():
        bits = scores.astype(np.float32, copy=False).view(np.int32)
        digits = bits & 0x7FFFFF
        lost = np.flatnonzero((bits & 0x7F800000 == 0) & (digits != 0))
        wide[lost] = np.where(bits[lost] < 0, -(2.0**-149), 2.0**-149) * digits[lost]
    return wide


def bits_of(scores: NDArray[Any], out: Doubles) -> Bits:
    """Return the bits of scores as doubles, those of 0.0 for -0.0; they are written into `out`."""
    bits = widened(scores, out).view(np.uint64)
    bits[bits == _SIGN] = 0
    return bits


def order_keys(scores: Floats) -> Bits:
    """Return whole numbers that compare as the scores do; both zeros have one, NaN must not occur."""
    keys = bits_of(scores, np.empty(scores.shape))
    # negative numbers turn all their bits around, the others only the sign
    flips = (keys.view(np.int64) >> _TO_MASK).view(np.uint64)
    flips |= _SIGN
    keys ^= flips
    return keys


def order_key(value: float) -> int:
    """Return the key that `order_keys` gives a single number."""
    bits = _bits(value)
    return bits ^ (_ALL if bits & _MINUS_ZERO else _MINUS_ZERO)


def from_order_key(key: int) -> float:
    """Return the number that has this key."""
    return float(unpack("<d", pack("<Q", key ^ (_MINUS_ZERO if key & _MINUS_ZERO else _ALL)))[0])


def from_order_keys(keys: Bits) -> Doubles:
    """Return the numbers that have these keys."""
    # a key with the sign bit belongs to a number without it
    flips = ~(keys.view(np.int64) >> _TO_MASK).view(np.uint64)
    flips |= _SIGN
    return (keys ^ flips).view(np.float64)


def in_order(scores: Floats) -> Doubles:
    """Return scores as doubles in rising order; the two zeros stand in any order."""
    return from_order_keys(np.sort(order_keys(scores))) if flushes() else np.sort(widened(scores))


def reaches(scores: Doubles, threshold: float) -> NDArray[np.bool_]:
    """Return which scores are greater than or equal to the threshold."""
    if threshold == 0.0 and flushes():
        return np.asarray(order_keys(scores) >= np.uint64(order_key(threshold)))
    return scores >= threshold


def count_below_zero(scores: Floats, zero: float) -> int:
    """Return how many scores are less than a number that is zero, or that the processor takes for zero."""
    key = np.uint64(order_key(zero))
    chunks = (scores[start : start + _CHUNK] for start in range(0, scores.size, _CHUNK))
    return sum(int(np.count_nonzero(order_keys(chunk) < key)) for chunk in chunks)


def just_below(edge: float) -> float:
    """Return the bound for which `score > bound` is `score >= edge`."""
    bound = nextafter(edge, -inf)
    # a zero must still lie above
    return -_LEAST_NORMAL if flushes() and bound == 0.0 and copysign(1.0, bound) < 0.0 else bound


def largest_up_to(bound: float, kind: np.dtype[Any]) -> np.floating:
    """Return the largest number of a type that is not above a double: its scores are `<=` both or neither."""
    if kind != np.float32:
        return np.float64(bound)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(bound)
        if narrow > np.float64(bound):
            narrow = np.nextafter(narrow, np.float32(-inf))
    return -_LEAST_NORMAL_32 if flushes() and bound < 0.0 == narrow else narrow


def least_from(bound: float, kind: np.dtype[Any]) -> np.floating:
    """Return the least number of a type that is not below a double: its scores are `>=` both or neither."""
    return -largest_up_to(-bound, kind)


def _bits(value: float) -> int:
    """Return the bits of a number, those of 0.0 for -0.0."""
    bits: int = unpack("<Q", pack("<d", value))[0]
    return 0 if bits == _MINUS_ZERO else bits


class _Format(NamedTuple):
    """A binary format of IEEE 754: how many digits, the least number 2^least, overflow from 2^top on."""

    digits: int
    least: int
    top: int

    def spacing(self, value: float) -> float:
        """Return the distance from a number to the next one away from zero."""
        return ldexp(1.0, max(frexp(value)[1] - self.digits, self.least) if value else self.least)


_FORMATS: Final[dict[ScoreType, _Format]] = {
    "float32": _Format(24, -149, 128),
    "float16": _Format(11, -24, 16),
}


def is_narrower(one: ScoreType, other: ScoreType) -> bool:
    """Return whether a type has fewer digits than another."""
    return np.dtype(one).itemsize < np.dtype(other).itemsize


def rounded(scores: ArrayLike, kind: ScoreType) -> Doubles:
    """Return scores rounded to a type, ties to even and overflow to infinity, as doubles."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(scores, dtype=np.float64).astype(kind, copy=False).astype(np.float64, copy=False)


def rounding_edge(threshold: float, kind: ScoreType) -> float:
    """Return the least double that, rounded to a type, reaches the threshold: eq. (26)."""
    return threshold if kind == "float64" or threshold == -inf else _edge(order_key(threshold), kind)


@lru_cache(maxsize=64)
def _edge(key: int, kind: ScoreType) -> float:
    """Return the edge of a threshold, given by its key: as numbers, a cache may take two for the same."""
    form = _FORMATS[kind]
    # between 0 and the least normal number lies no rounded score
    threshold = away_from_zero(from_order_key(key))
    # 2^top stands for infinity: scores round to it as if it were the next number after the largest
    top = ldexp(1.0, form.top)
    largest = top - form.spacing(top / 2.0)
    threshold = min(threshold, top)
    step = form.spacing(threshold)
    reached = max(ceil(threshold / step) * step, -largest)
    # what is less lies closer together below a positive power of two
    below = form.spacing(nextafter(reached, 0.0) if reached > 0.0 else reached)
    middle = reached - below / 2.0
    even = reached / form.spacing(reached) % 2.0 == 0.0
    return middle if even else nextafter(middle, inf)


def straddled(edge: float, kind: ScoreType) -> float | None:
    """Return the number of a type that stands for doubles on both sides of an edge, None if there is none."""
    nearest = float(rounded(edge, kind))
    return nearest if edge > rounding_edge(nearest, kind) else None


def represents(kind: ScoreType, value: float) -> bool:
    """Return whether a type holds a double exactly."""
    return bool(rounded(value, kind) == value)


# what a reader takes in at a glance
_TOLD: Final = 3
# what two machines agree on
_FEW: Final = 8
# digits enough for a sum or a share of doubles as they are written
_FLOOR: Final = Context(prec=28, rounding=ROUND_FLOOR)
# digits enough for a double in what 1 and the millionth part of a logarithm leave
_EXACT: Final = Context(prec=50)
_CEILING: Final = Context(prec=12, rounding=ROUND_CEILING)


def rounded_up(rate: float, unit: int = 1, digits: int = 4) -> str:
    """Return a ceiling or a delta with `digits` digits, never below the true one; `unit` 100 is percent."""
    return _written(Context(prec=digits, rounding=ROUND_CEILING).multiply(_as_written(rate), unit))


def rounded_down(share: Decimal | float, unit: int = 1, digits: int = 6) -> str:
    """Return a confidence with `digits` digits, never above the true one; `unit` is 100 for percent."""
    return _written(Context(prec=digits, rounding=ROUND_FLOOR).multiply(_as_written(share), unit))


def told(share: float) -> int:
    """Return how many digits a measured or bounded share is told with: three, or two below 1 %."""
    return _TOLD if share >= 0.01 else _TOLD - 1


def between(low: float, high: float) -> str:
    """Return two bounds of a number, the lower rounded down and the upper one up."""
    most = f"{Decimal(rounded_up(high, digits=_TOLD)):,f}"
    if low > 0.0:
        return f"{Decimal(rounded_down(low, digits=_TOLD)):,f} to {most}"
    return f"at most {most}" if high > 0.0 else "none"


def ceiling_up(rate: float) -> float:
    """Return the least number of 12 digits, which any program can write, that is not below a ceiling."""
    return float(_CEILING.create_decimal(repr(rate)))


def ceiling_of(stated: tuple[float, ...]) -> float:
    """Return the rate of points per so many points, or of wrong alarms under a least precision."""
    exact = 1 - Fraction(str(stated[0])) if len(stated) == 1 else Fraction(stated[0]) / Fraction(stated[1])
    nearest = float(exact)
    # the double that prints as a short number counts as that number, as everywhere
    return nearest if Fraction(str(nearest)) <= exact else nextafter(nearest, 0.0)


def confidence_left(*deltas: float) -> Decimal:
    """Return 1 minus the deltas, never more than that is; 0 where they leave nothing."""
    left = reduce(_FLOOR.subtract, map(_as_written, deltas), Decimal(1))
    # rounded down, nothing left is -0, which would be written so
    return max(Decimal(0), left)


def kept_together(*shares: Decimal | float) -> Decimal:
    """Return the confidence that independent ones have together: their product, never more than that is."""
    return reduce(_FLOOR.multiply, map(_as_written, shares), Decimal(1))


def equal_share(confidence: float, count: int) -> float:
    """Return the share that each of `count` deltas may take, so that together they leave a confidence."""
    return float_below(_FLOOR.divide(confidence_left(confidence), Decimal(count)))


def of_few_digits(share: Decimal | float, *, up: bool = False) -> float:
    """Return a delta with eight digits, the same on every machine: never more than it is, or never less."""
    return float(Context(prec=_FEW, rounding=ROUND_CEILING if up else ROUND_FLOOR).plus(_as_written(share)))


def float_below(share: Decimal) -> float:
    """Return the double nearest to a share, or the one before it if that is written as more."""
    nearest = float(share)
    return nearest if Decimal(repr(nearest)) <= share else nextafter(nearest, 0.0)


def shared_together(delta: float, count: int) -> float:
    """Return 1 - (1 - delta)^(1/count), never more: the share of each of independent promises, eq. (53)."""
    if count <= 1:
        return delta
    keeping = _EXACT.subtract(1, _as_written(delta))
    share = _EXACT.subtract(1, _EXACT.exp(_EXACT.divide(_EXACT.ln(keeping), count)))
    nearest = float(share)
    return nearest if Decimal(nearest) <= share else nextafter(nearest, 0.0)


def _as_written(share: Decimal | float) -> Decimal:
    """Return the number that a user wrote, not the double nearest to it."""
    return share if isinstance(share, Decimal) else Decimal(repr(float(share)))


def _written(number: Decimal) -> str:
    short = number.normalize()
    return f"{short:f}" if short == 0 or short.adjusted() > -20 else str(short)
