"""What a promise assumes, each by its number: a file names it, and the sentence is ours alone."""

from enum import Enum
from typing import Final


class Assumption(Enum):
    """Something a promise assumes; a certificate's file holds its number, `str` is the sentence.

    >>> Assumption(2).name, str(Assumption(3))
    ('HELD_OUT', 'the distribution of each class does not shift')
    """

    # a number that was given out never changes its meaning
    INDEPENDENT = 1
    HELD_OUT = 2
    NO_SHIFT = 3
    MIXING = 4
    STATIONARY = 5

    def __str__(self) -> str:
        return _SENTENCES[self]


_SENTENCES: Final = {
    Assumption.INDEPENDENT: (
        "within each class, calibration points and future points are independent draws from one distribution"
    ),
    Assumption.HELD_OUT: "the detector was trained without the calibration points and stays the same",
    Assumption.NO_SHIFT: "the distribution of each class does not shift",
    Assumption.MIXING: (
        "the points are windows of a time series and depend on each other: the promise is conditional on"
        " mixing, that is, on windows so far apart being as good as independent draws"
    ),
    Assumption.STATIONARY: (
        "within each class, the series is stationary: calibration and future windows have one distribution"
    ),
}
OF_DRAWS: Final = (Assumption.INDEPENDENT, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_SERIES: Final = (Assumption.MIXING, Assumption.STATIONARY, Assumption.HELD_OUT)
