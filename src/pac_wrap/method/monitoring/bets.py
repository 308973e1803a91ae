"""Bets against the promises of a certificate, and the evidence that they collect (an e-process)."""

from dataclasses import dataclass
from math import inf, log, nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, gammaln, kl_div

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.tails.bounds import check_errors

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
_HALF_LOG_TWO_PI: Final = 0.5 * log(2.0 * np.pi)
# from here on Stirling's series has all digits of a double
_STIRLING_FROM: Final = 16.0
# smaller tails have lost digits, or are 0
_TINY_TAIL: Final = 1e-250
_FRACTIONS: Final = 2_000
_EXACT: Final = 1e-15
_HALVINGS: Final = 60
# shares of errors of units, which are rounded down to one of these: eq. (154)
SHARES_OF_UNITS: Final = tuple((step / 256) ** 2 for step in range(257))
# by how much the bets of a confidence sequence of their mean raise the odds
_RAISED: Final = 2.0 ** np.arange(-3, 17)


def log_evidence(errors: ArrayLike, labels: ArrayLike, ceiling: float) -> Doubles:
    """Return the logarithm of the evidence that a rate exceeds its ceiling, given the errors: eq. (81).

    W(k, n) = F(k; n + 1, e) / ((1 - e) (n + 1) b(k; n, e)), the likelihood ratio of all rates above the
    ceiling, mixed uniformly, against the ceiling itself.
    """
    k, n = np.broadcast_arrays(np.asarray(errors, dtype=np.float64), np.asarray(labels, dtype=np.float64))
    above, below, total = k + 1.0, n - k + 1.0, n + 2.0
    tail = np.asarray(betaincc(above, below, ceiling))
    far = tail < _TINY_TAIL
    with np.errstate(divide="ignore"):
        # by Stirling's formula, so that no two large numbers are subtracted
        found = (
            kl_div(above, total * ceiling)
            + kl_div(below, total * (1.0 - ceiling))
            + 0.5 * np.log(total / (above * below))
            + _HALF_LOG_TWO_PI
            + (_stirling(above) + _stirling(below) - _stirling(total))
            + (log(ceiling) + np.log(tail))
        )
    if far.any():
        found = np.where(far, 0.0, found)
        found[far] = log(ceiling) + np.log(_fraction(below[far], above[far], 1.0 - ceiling) / below[far])
    return np.asarray(found)


def confidence_sequence(errors: int, labels: int, alpha: float) -> tuple[float, float]:
    """Return bounds of a rate that hold at all times, each with confidence 1 - alpha: eq. (87).

    A constant rate lies between the bounds at all times. If the rate changes, its largest value is never
    below the lower bound.
    """
    labels = check_count("labels", labels)
    errors = check_errors(errors, labels)
    bar = -log(check_rate("alpha", alpha))
    return _lower(errors, labels, bar), 1.0 - _lower(labels - errors, labels, bar)


def mean_sequence(cells: Counts, alpha: float) -> tuple[float, float, float]:
    """Return bounds of the mean share of errors of units that hold at all times, and the mean: eq. (155).

    `cells` counts the units with each of `SHARES_OF_UNITS`.
    """
    shares, n, bar = np.array(SHARES_OF_UNITS), int(cells.sum()), -log(check_rate("alpha", alpha))

    def lower(of: Doubles) -> float:
        gains, low, high = np.log1p(np.outer(_RAISED, of)) @ cells, 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            reached = np.logaddexp.reduce(gains - n * np.log1p(_RAISED * middle)) >= bar + log(_RAISED.size)
            low, high = (middle, high) if reached else (low, middle)
        return low

    upper = 1.0 - lower(1.0 - np.append(shares[1:], 1.0))
    return lower(shares), upper, float(shares @ cells) / n if n else nan


def _lower(errors: int, labels: int, bar: float) -> float:
    """Return the largest rate whose bet has reached the bar, 0 if there is none; it is rounded down."""
    low, high = 0.0, errors / labels if labels else 0.0
    for _ in range(_HALVINGS if high else 0):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        reached = float(log_evidence(errors, labels, middle)) >= bar
        low, high = (middle, high) if reached else (low, middle)
    return low


def _stirling(x: Doubles) -> Doubles:
    """Return ln Gamma(x) - (x - 1/2) ln x + x - (ln 2 pi) / 2."""
    small = np.minimum(x, _STIRLING_FROM)
    exact = gammaln(small) - ((small - 0.5) * np.log(small) - small + _HALF_LOG_TWO_PI)
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(x < _STIRLING_FROM, exact, series)


def _fraction(a: Doubles, b: Doubles, x: float) -> Any:
    """Return the continued fraction of the incomplete beta function, by Lentz's method: eq. (81)."""
    c, d = np.ones_like(a), 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    for m in range(1, _FRACTIONS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d, c = 1.0 / (1.0 + step * d), 1.0 + step / c
            value *= c * d
        if np.all(np.abs(c * d - 1.0) < _EXACT):
            break
    return value


# points between two starts: this many, or a 128th of all points so far: eq. (83)
_LEAST_WAIT: Final = 32
_PART: Final = 128
# the largest number of rates that are bet on, and the ratio of their odds
_MOST_RATES: Final = 24
_APART: Final = 2.0**0.5
_LARGEST_RATE: Final = 0.95
# points that are bounded together, and the rounding error of a bound
_FEW: Final = 16
_ROUNDING: Final = 1e-6


class Placed(NamedTuple):
    """The state of the bets: points per cell, the number of starts, the next start, and the gains."""

    cells: Counts
    starts: int
    following: int
    # for each bet the logarithm of its value, and of that of its best start alone
    gains: Doubles
    best: Doubles
    # the row and number of the best start, and the points by fate before it
    began: Counts


class Reached(NamedTuple):
    """The point at which the evidence reached the bar, counted from 0, and the bets then."""

    point: int
    log_evidence: float
    placed: Placed


def wait(total: int) -> int:
    """Return the number of points from a start of the bets after `total` points to the next: eq. (83)."""
    return max(_LEAST_WAIT, total // _PART)


@dataclass(frozen=True)
class Bets:
    """Bets on points that fall into cells: the factor of each cell for each bet, as logarithms.

    On average the factors do not exceed 1 while the ceilings hold, eq. (80), so no bet can be expected to
    win. All bets are mixed equally, and each starts again and again, the j-th time with the weight
    1/((j+1)(j+2)): eq. (82). With a `ceiling`, half of the stake is on a rate above it from the first point
    on: eq. (81). The fate of a cell in a bet is 1 if the bet wins there, 0 if not, or 2 above such cells.
    """

    logs: Doubles
    fates: Counts
    ceiling: float | None = None

    @classmethod
    def above(cls, ceiling: float, shares: tuple[float, ...] = (0.0, 1.0)) -> "Bets":
        """Return the bets that a rate is above its ceiling.

        A cell holds points, or units, with the same share of errors: 0 or 1 for a point, eq. (154) for units.
        """
        odds, most = ceiling / (1.0 - ceiling), _LARGEST_RATE / (1.0 - _LARGEST_RATE)
        steps = max(1, min(_MOST_RATES, int(log(max(most / odds, 1.0)) / log(_APART))))
        apart = max(_APART, (most / odds) ** (1.0 / steps))
        # in terms of the odds, since a rate next to 1 would have no digits left
        raised = apart ** np.arange(1, steps + 1) - 1.0
        won = [np.log1p(raised * (share - ceiling) / (1.0 + raised * ceiling)) for share in shares[1:]]
        logs = np.stack([-np.log1p(raised * ceiling), *won], axis=-1)
        fates = np.broadcast_to((np.array(shares) > ceiling).astype(np.int64), logs.shape)
        return cls(logs, fates, ceiling if len(shares) == 2 else None)

    def unplaced(self) -> Placed:
        """Return the bets before any point."""
        bets, cells = self.logs.shape
        none = np.full(bets, -inf)
        return Placed(np.zeros(cells, dtype=np.int64), 0, 0, none, none, np.zeros((bets, 5), dtype=np.int64))

    def log_evidence(self, placed: Placed, cells: Counts | None = None) -> Doubles:
        """Return the logarithm of the evidence, also for other cells along the last axis."""
        counts = placed.cells if cells is None else cells
        bets, rest = self._paths(counts) + placed.gains, -log(placed.starts + 1.0)
        top = np.maximum(bets.max(axis=-1), rest)
        mean = np.exp(bets - top[..., None]).sum(axis=-1) / bets.shape[-1]
        # including the weight that is not placed yet
        found = top + np.log(mean + np.exp(rest - top))
        if self.ceiling is None:
            return np.asarray(found)
        closed = log_evidence(counts[..., 1], counts.sum(axis=-1), self.ceiling)
        return np.asarray(np.logaddexp(found, closed) - log(2.0))

    def strongest(self, placed: Placed) -> tuple[int, int, int, Counts]:
        """Return the bet with the largest gain, its best start by row and number, and the points since."""
        bet = int(np.argmax(self._paths(placed.cells) + placed.best))
        row, number, *before = placed.began[bet].tolist()
        return bet, row, number, self._by_fate(placed.cells)[bet] - np.array(before)

    def took_together(
        self, placed: Placed, cells: Counts, row: int, bar: float | None
    ) -> tuple[Placed, Reached | None]:
        """Return the bets after a batch, taken as one, and whether they reach a bar: eqs. (130) to (131)."""
        if not cells.size:
            return placed, None
        total = int(placed.cells.sum())
        if total >= placed.following:
            placed = self._started(placed, total, row)
        placed = placed._replace(cells=placed.cells + self._counted(cells))
        height = float(self.log_evidence(placed))
        reached = bar is not None and height >= bar
        return placed, Reached(cells.size - 1, height, placed) if reached else None

    def took(
        self, placed: Placed, cells: Counts, rows: Counts, stops: Counts, bar: float | None
    ) -> tuple[Placed, list[float], Reached | None]:
        """Return the bets after more points, the log of the evidence at stops, and where it reached a bar."""
        heights = [float(self.log_evidence(placed)) for stop in stops.tolist() if not stop]
        waiting, found = [stop for stop in stops.tolist() if stop], None
        done = 0
        while done < cells.size:
            total = int(placed.cells.sum())
            if total >= placed.following:  # greater only after a batch whose points counted together
                placed = self._started(placed, total, int(rows[done]))
            end = min(cells.size, done + placed.following - total)
            if bar is not None and found is None:
                found = self._first(placed, cells[done:end], bar)
                found = None if found is None else found._replace(point=done + found.point)
            while waiting and waiting[0] <= end:  # one by one: several at once round as many as they are
                part = placed.cells + self._counted(cells[done : waiting.pop(0)])
                heights.append(float(self.log_evidence(placed, part)))
            placed = placed._replace(cells=placed.cells + self._counted(cells[done:end]))
            done = end
        return placed, heights, found

    def _started(self, placed: Placed, total: int, row: int) -> Placed:
        """Return the bets with one more start, just before the point in a row."""
        number = placed.starts
        gain = -log((number + 1.0) * (number + 2.0)) - self._paths(placed.cells)
        better = gain > placed.best
        here = [np.full(gain.shape, one) for one in (row, number)]
        began = np.stack([*here, *self._by_fate(placed.cells).T], axis=-1)
        return Placed(
            placed.cells,
            number + 1,
            total + wait(total),
            np.logaddexp(placed.gains, gain),
            np.where(better, gain, placed.best),
            np.where(better[:, None], began, placed.began),
        )

    def _first(self, placed: Placed, cells: Counts, bar: float) -> Reached | None:
        """Return the first point at which the bar is reached, before the next start."""
        groups = -(-cells.size // _FEW)
        size = self.logs.shape[1]
        place = np.arange(cells.size) // _FEW * size + cells
        inside = np.bincount(place, minlength=groups * size).reshape(groups, size)
        before = placed.cells + np.cumsum(inside, axis=0) - inside
        for group in np.flatnonzero(self._most(placed, before, inside) >= bar - _ROUNDING):
            some = cells[_FEW * group : _FEW * (group + 1)]
            counts = np.zeros((some.size, size), dtype=np.int64)
            counts[np.arange(some.size), some] = 1
            counts = before[group] + np.cumsum(counts, axis=0)
            heights = self.log_evidence(placed, counts)
            over = np.flatnonzero(heights >= bar)
            if over.size:
                first = int(over[0])
                then = placed._replace(cells=counts[first])
                return Reached(int(_FEW * group + first), float(heights[first]), then)
        return None

    def _most(self, placed: Placed, before: Counts, inside: Counts) -> Doubles:
        """Return an upper bound of the log of the evidence within groups of points, in any order."""
        rises = np.maximum(self.logs, 0.0).T
        found = before @ self.logs.T + inside @ rises + placed.gains
        most = np.asarray(np.max(found, axis=-1))
        rest = -log(placed.starts + 1.0)
        if self.ceiling is None:
            return np.asarray(np.maximum(most, rest) + log(2.0))
        # with the errors of a group first, at the best rate: eq. (85)
        errors = before[:, 1] + inside[:, 1]
        labels = before.sum(axis=-1) + inside[:, 1]
        share = errors / np.maximum(labels, 1)
        ratio = labels * (kl_div(share, self.ceiling) + kl_div(1.0 - share, 1.0 - self.ceiling))
        closed = np.where(share > self.ceiling, ratio, 0.0)
        return np.asarray(np.maximum(np.maximum(most, rest) + log(2.0), closed))

    def _paths(self, counts: Counts) -> Doubles:
        """Return the logarithm of each bet as if it had started with the first point."""
        # not a matrix product, whose rounding depends on the number of rows
        return np.asarray((counts[..., None, :] * self.logs).sum(axis=-1))

    def _by_fate(self, counts: Counts) -> Counts:
        """Return how many points each bet has of each fate."""
        return np.stack([((self.fates == fate) * counts).sum(axis=-1) for fate in range(3)], axis=-1)

    def _counted(self, cells: Counts) -> Counts:
        return np.bincount(cells, minlength=self.logs.shape[1])
