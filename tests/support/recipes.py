"""Labelled scores that can be made again to the last bit anywhere, and the scores that rules are probed with.

Whole numbers, and at most one exact or correctly rounded operation on doubles: neither NumPy nor a library
of random numbers has a say. Scores for a narrower type are numbers of that type already.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from math import inf, ldexp, nextafter
from typing import Final

Scores = tuple[float, ...]
Whole = tuple[int, ...]
Sample = tuple[Scores, Scores] | tuple[Whole, Whole]

LARGEST: Final = sys.float_info.max
LEAST_NORMAL: Final = sys.float_info.min
LEAST: Final = 5e-324
_LARGEST_32: Final = ldexp(2**24 - 1, 104)


def drawn(n: int, seed: int) -> Iterator[int]:
    """Yield n whole numbers of 24 bits: the leading ones of Knuth's linear congruential generator."""
    state = seed
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 40


def flat(n: int, seed: int, low: int = 0, high: int = 1) -> Scores:
    """Return n scores spread evenly from low to high, in steps of 2^-24 of the distance."""
    return tuple(low + ldexp((high - low) * number, -24) for number in drawn(n, seed))


def bell(n: int, seed: int, centre: int = 0, eighths: int = 8, digits: int = 24) -> Scores:
    """Return n scores like normal ones: sums of twelve even ones, with so many binary digits after the point.

    `centre` is the mean and `eighths` the standard deviation, both in eighths.
    """
    numbers = list(drawn(12 * n, seed))
    found = []
    for place in range(0, 12 * n, 12):
        away = (sum(numbers[place : place + 12]) - 6 * 2**24) * eighths + centre * 2**24
        found.append(ldexp(away >> (27 - digits), -digits))
    return tuple(found)


def picked(n: int, seed: int, values: Sequence[float]) -> Scores:
    """Return n scores that are some of a few values, most of them many times."""
    return tuple(float(values[number * len(values) >> 24]) for number in drawn(n, seed))


def decimals(n: int, seed: int, low: int, high: int) -> Scores:
    """Return n scores with three decimal digits, from low to high thousandths."""
    return tuple((low + (number * (high - low + 1) >> 24)) / 1000 for number in drawn(n, seed))


def whole(n: int, seed: int, low: int, high: int) -> Whole:
    """Return n whole numbers from low to high."""
    return tuple(low + (number * (high - low + 1) >> 24) for number in drawn(n, seed))


def scaled(scores: Iterable[float], exponent: int) -> Scores:
    """Return scores times a power of two."""
    return tuple(ldexp(score, exponent) for score in scores)


def least(n: int, seed: int, low: int, high: int) -> Scores:
    """Return n multiples of the least double there is, from low to high times."""
    return tuple(ldexp(number, -1074) for number in whole(n, seed, low, high))


_MIXED: Final = (-inf, -1e300, -1.0, -0.0, 0.0, LEAST, 1.0, nextafter(1.0, 2.0), 2.5, 1e300, inf)
_NEXT_TO_1: Final = (nextafter(1.0, 0.0), 1.0, nextafter(1.0, 2.0))

_SAMPLES: Final[dict[str, Callable[[], Sample]]] = {
    # what is usual: classes far apart, near, uneven, the wrong way round
    "far": lambda: (bell(400, 1), bell(400, 2, centre=40)),
    "near": lambda: (bell(600, 3), bell(600, 4, centre=16)),
    "uneven": lambda: (bell(2000, 5), bell(300, 6, centre=20, eighths=10)),
    "touching": lambda: (bell(500, 7), bell(250, 8, centre=26)),
    "same": lambda: (bell(300, 9), bell(300, 10)),
    "upside down": lambda: (bell(300, 11), bell(200, 12, centre=-16)),
    "even": lambda: (flat(500, 13), flat(400, 14, 0, 2)),
    "decimals": lambda: (decimals(700, 15, 0, 600), decimals(300, 16, 500, 1000)),
    # few labels: 59 are the least for .05 and .05
    "30 anomalies": lambda: (bell(1000, 17), bell(30, 18, centre=24)),
    "58 and 58": lambda: (bell(58, 19), bell(58, 20, centre=32)),
    "58 and 59": lambda: (bell(58, 19), bell(59, 21, centre=32)),
    "59 and 58": lambda: (bell(59, 22), bell(58, 20, centre=32)),
    "59 and 59": lambda: (bell(59, 22), bell(59, 21, centre=32)),
    "59 and 59 overlapping": lambda: (bell(59, 22), bell(59, 23, centre=4)),
    "1 and 1": lambda: ((0.25,), (0.75,)),
    "1 and 1 upside down": lambda: ((5.0,), (1.0,)),
    "1 and 1 equal": lambda: ((0.1,), (0.1,)),
    "2 and 5": lambda: ((0.5, -1.5), (2.0, 0.25, 0.5, 8.0, 1.0)),
    "no anomalies": lambda: (bell(200, 24), ()),
    "no normal": lambda: ((), bell(200, 25)),
    "1 anomaly": lambda: (bell(200, 24), (1.5,)),
    # ties
    "constant": lambda: ((1.0,) * 70, (1.0,) * 80),
    "constants apart": lambda: ((0.0,) * 70, (1.0,) * 80),
    "constants upside down": lambda: ((1.0,) * 70, (0.0,) * 80),
    "tied": lambda: (picked(200, 26, (0, 1, 2, 3)), picked(150, 27, (2, 3, 4, 5))),
    "tied thirds": lambda: (picked(120, 28, (0.0, 1 / 3, 2 / 3)), picked(120, 29, (1 / 3, 2 / 3, 1.0))),
    "neighbours": lambda: (picked(90, 30, _NEXT_TO_1), picked(90, 31, _NEXT_TO_1[1:])),
    # numbers that are special
    "mixed": lambda: (picked(150, 32, _MIXED), picked(150, 33, _MIXED)),
    "mixed apart": lambda: (picked(150, 34, _MIXED[:6]), picked(150, 35, _MIXED[5:])),
    "infinitely apart": lambda: ((-inf,) * 60, (inf,) * 60),
    "all inf": lambda: ((inf,) * 60, (inf,) * 60),
    "all -inf": lambda: ((-inf,) * 60, (-inf,) * 60),
    "normal inf": lambda: (picked(100, 36, (0.0, inf)), bell(100, 37)),
    "anomalous -inf": lambda: (bell(100, 38), picked(100, 39, (-inf, 9.0))),
    "zeros": lambda: (picked(80, 40, (-0.0, 0.0)), picked(80, 41, (0.0, -0.0))),
    "minus zeros": lambda: ((-0.0,) * 70, (-0.0,) * 70),
    "around zero": lambda: (picked(80, 42, (-1.0, -0.0, 0.0)), picked(80, 43, (-0.0, 0.0, 1.0))),
    "subnormal": lambda: (least(100, 44, -50, 50), least(100, 45, 0, 100)),
    "subnormal apart": lambda: (least(100, 46, -40, -1), least(100, 47, 1, 40)),
    # the next double is -0.0
    "least below zero": lambda: ((-LEAST,) * 70, (LEAST,) * 70),
    "around the least normal": lambda: (
        least(80, 48, 2**52 - 3, 2**52),
        least(80, 49, 2**52 - 1, 2**52 + 2),
    ),
    "huge": lambda: (scaled(flat(100, 50, -1, 1), 1023), scaled(flat(100, 51), 1023)),
    "opposite ends": lambda: ((-LARGEST,) * 65, (LARGEST,) * 65),
    # the next double is inf, which never alarms
    "normal largest": lambda: ((LARGEST,) * 70, (inf,) * 70),
    "tiny": lambda: (scaled(bell(100, 52), -900), scaled(bell(100, 53, centre=32), -900)),
    # whole numbers; from 2^53 on not all of them are doubles
    "whole": lambda: (whole(200, 54, -5, 5), whole(200, 55, 3, 12)),
    "whole small": lambda: (whole(100, 56, 0, 120), whole(100, 57, 100, 127)),
    "whole bits": lambda: (whole(90, 58, 0, 1), whole(90, 59, 1, 1)),
    "whole beyond 2^53": lambda: (whole(90, 60, 2**53 - 2, 2**53 + 5), whole(90, 61, 2**53, 2**53 + 9)),
    # numbers of narrower types
    "coarse": lambda: (bell(300, 62, digits=7), bell(300, 63, centre=24, digits=7)),
    "coarse overlapping": lambda: (bell(150, 64, digits=7), bell(150, 65, centre=10, digits=7)),
    "coarse apart": lambda: (bell(100, 66, centre=-24, digits=7), bell(100, 67, centre=32, digits=7)),
    "coarse few": lambda: (bell(40, 86, digits=7), bell(70, 87, centre=24, digits=7)),
    "float16 top": lambda: (picked(70, 68, (65408.0, 65440.0, 65472.0)), picked(70, 69, (65472.0, 65504.0))),
    "float16 to inf": lambda: (picked(70, 70, (65472.0, 65504.0)), picked(70, 71, (65504.0, inf))),
    "float16 least": lambda: (
        scaled(whole(80, 72, -9, 2), -24),
        scaled(whole(80, 73, 0, 11), -24),
    ),
    "float32 fine": lambda: (bell(300, 74, digits=20), bell(300, 75, centre=20, digits=20)),
    "float32 least": lambda: (scaled(whole(80, 76, -9, 2), -149), scaled(whole(80, 77, 0, 11), -149)),
    "float32 top": lambda: (
        scaled(whole(70, 78, 2**24 - 4, 2**24 - 2), 104),
        scaled(whole(70, 79, 2**24 - 2, 2**24 - 1), 104),
    ),
    "float32 powers": lambda: (
        picked(80, 80, (0.25, ldexp(2**24 - 1, -24), 1.0)),
        picked(80, 81, (1.0, 1.0 + 2.0**-23, 2.0, 4.0)),
    ),
    # more than 2^17 of a class are ranked another way
    "many": lambda: (flat(140_000, 82), flat(135_000, 83, 0, 2)),
    "many tied": lambda: (picked(140_000, 84, (0.0, 0.5, 1.0)), picked(900, 85, (0.5, 1.0, 1.5, 2.0))),
}

NAMES: Final = tuple(_SAMPLES)


@cache
def sample(name: str) -> Sample:
    """Return the scores of labelled normal and labelled anomalous points that go by a name."""
    return _SAMPLES[name]()


def fingerprint(scores: Iterable[float]) -> str:
    """Return 16 hexadecimal digits that tell whether scores are the same doubles, or whole numbers, in order.

    >>> fingerprint([0.0]) == fingerprint([-0.0])
    False
    """
    texts = (score.hex() if isinstance(score, float) else str(score) for score in scores)
    return sha256(" ".join(texts).encode()).hexdigest()[:16]


_POSITIVE: Final = (
    LEAST,
    ldexp(2**52 - 1, -1074),
    LEAST_NORMAL,
    1e-200,
    2.0**-150,
    nextafter(2.0**-150, 1.0),
    2.0**-149,
    2.0**-126,
    2.0**-25,
    nextafter(2.0**-25, 1.0),
    2.0**-24,
    2.0**-14,
    0.1,
    1 / 3,
    20.0,
    110.0,
    65504.0,
    65519.0,
    65520.0,
    2.0**53,
    _LARGEST_32,
    nextafter(ldexp(2**25 - 1, 103), 0.0),
    ldexp(2**25 - 1, 103),
    1e300,
    LARGEST,
    inf,
)
# both infinities, both zeros, the ends and middles of every type, and a grid where most scores lie
PROBES: Final[Scores] = (
    *(-score for score in reversed(_POSITIVE)),
    -0.0,
    0.0,
    *_POSITIVE,
    *(halves / 2 for halves in range(-6, 13) if halves),
)


def probes(*edges: float | None) -> Scores:
    """Return the fixed probes, then each edge between its two neighbours; None is left out.

    >>> probes(None, 0.0)[len(PROBES) :]
    (-5e-324, 0.0, 5e-324)
    """
    around = ((nextafter(edge, -inf), edge, nextafter(edge, inf)) for edge in edges if edge is not None)
    return (*PROBES, *(score for three in around for score in three))


def verdict_text(verdicts: Iterable[int]) -> str:
    """Return one sign for each verdict: 0 for normal (0), + for anomaly (1), - for abstained (-1).

    >>> verdict_text([0, 1, -1])
    '0+-'
    """
    signs = {0: "0", 1: "+", -1: "-"}
    return "".join(signs[int(verdict)] for verdict in verdicts)
