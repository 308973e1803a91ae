"""Dependence of points in time, and their effective sample size.

These are estimates, not promises. `dependence` uses one indicator, such as that of an error; `effective_size`
uses all scores of a class, since one or two errors cannot show any dependence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_array, as_scores, check_choice, check_count, check_same_length
from pac_wrap.errors import InputError

Indices = NDArray[np.intp]
_LONGEST: Final = 1 << 26
_TOO_FAR: Final = 1 << 62
# rounding of the Fourier transform, which must not decide where a sum ends
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Dependence:
    """The effective sample size of n points, and the distance from which they seem independent.

    Attributes
    ----------
    n, effective : int and float
        The number of points, and the number of independent points whose mean would vary as much.
    lag : int
        The first distance, in units of the grid, at which the autocorrelation is within 2 / sqrt(pairs) of 0.
        With few points this bound is wide, so the lag is small for lack of evidence.
    autocorrelation : ndarray of float
        At lag k, the mean product of the deviations of points k apart, divided by its value at lag 0. It is
        NaN at lags without a pair, and for a constant sequence at every lag except 0.
    """

    n: int
    effective: float
    lag: int
    autocorrelation: Scores

    @property
    def misleading(self) -> bool:
        """Whether the effective sample size is less than half the number of points."""
        return self.effective < self.n / 2.0


def dependence(
    indicator: ArrayLike, positions: ArrayLike | None = None, max_lag: int | None = None
) -> Dependence:
    """Return the dependence of the points of one class, estimated from one indicator, such as their errors.

    effective = n / (1 + 2 sum_k (pairs_k / n) rho_k) over k = 1, 2, ..., where pairs_k is the number of pairs
    at distance k, which is n - k without holes. The sum ends by Geyer's rule, before the first two
    neighbouring lags whose terms have no positive sum. The result is at least 1 and at most n. A constant
    indicator shows no dependence: `effective` is n and `lag` is 1, though nothing was learned.

    Parameters
    ----------
    indicator : array-like of float
        One finite value per point.
    positions : array-like of int, optional
        The places of the points on a regular grid, in units of the grid, if some are missing.
    max_lag : int, optional
        The largest lag to use, for example to ignore pairs from different joined series.

    Examples
    --------
    >>> found = dependence(np.repeat([0, 1, 0, 0], 25))
    >>> found.n, round(found.effective, 1), found.lag
    (100, 5.7, 15)
    """
    values, steps = _on_grid(indicator, positions)
    last = None if max_lag is None else check_count("max_lag", max_lag) + 1
    sums, pairs = _lag_sums(values, steps)
    sums, pairs = sums[:last], pairs[:last]
    rho = np.full(sums.size, np.nan)
    rho[0] = 1.0
    if sums[0] == 0.0:
        return Dependence(values.size, float(values.size), 1, rho)
    lags = np.flatnonzero(pairs)
    rho[lags] = sums[lags] / pairs[lags] / (sums[0] / pairs[0])
    terms = sums[lags] / sums[0]
    small = np.abs(rho[lags[1:]]) <= 2.0 / np.sqrt(pairs[lags[1:]]) + _ROUNDING
    lag = int(lags[1:][small.argmax()]) if small.any() else int(lags[-1]) + 1
    # neighbouring pairs of terms, up to the first pair that is not above 0
    paired = np.append(terms, 0.0)[: terms.size + terms.size % 2].reshape(-1, 2).sum(axis=1)
    positive = np.logical_and.accumulate(paired > _ROUNDING)
    inflation = max(2.0 * float(paired[positive].sum()) - 1.0, 1.0)
    return Dependence(values.size, max(values.size / inflation, 1.0), lag, rho)


def _on_grid(indicator: ArrayLike, positions: ArrayLike | None) -> tuple[Scores, Indices]:
    """Return the deviations from the mean, scaled so that their squares stay finite, and their places."""
    values = as_scores(indicator, "indicator")
    if values.size == 0:
        raise InputError("indicator is empty; pass at least one point")
    if not np.isfinite(values).all():
        raise InputError("indicator must be finite, got infinite values; pass exceedances, which are 0 or 1")
    steps = np.arange(values.size) if positions is None else as_array(positions, "positions")
    if steps.ndim != 1:
        raise InputError(
            f"positions must be one-dimensional, one step number per point, got shape {steps.shape}"
        )
    check_same_length("indicator", values.size, "positions", steps.size)
    if steps.dtype.kind not in "iu":
        raise InputError(
            f"positions must be whole step numbers, got dtype {steps.dtype};"
            " count steps from 0, for example with points.positions"
        )
    late = steps[1:] <= steps[:-1]
    if late.any():
        first = int(late.argmax()) + 1
        raise InputError(
            f"positions must increase, but number {first} is {steps[first]} after {steps[first - 1]};"
            " sort the points by time and drop repeated ones"
        )
    if steps[0] < 0 or steps[-1] >= _TOO_FAR:
        raise InputError(
            f"positions must lie between 0 and 2^62, got {steps[0]} to {steps[-1]}; count steps from 0"
        )
    steps = steps.astype(np.intp)
    if steps[-1] - steps[0] >= _LONGEST:
        raise InputError(
            f"positions must span at most {_LONGEST:,} units of the grid, got {steps[-1] - steps[0] + 1:,};"
            " count in units of the grid, for example starts // every"
        )
    if values.min() == values.max():
        return np.zeros(values.size), steps
    scaled = values / np.abs(values).max()
    scaled -= scaled.mean()
    return scaled / np.abs(scaled).max(), steps


def _lag_sums(values: Scores, steps: Indices) -> tuple[Scores, Indices]:
    """Return for each lag the sum of products over all pairs at that distance, and the number of pairs."""
    size = int(steps[-1] - steps[0]) + 1
    padded = 1 << (2 * size - 1).bit_length()

    def sums(weights: Scores) -> Scores:
        grid = np.zeros(padded)
        grid[steps - steps[0]] = weights
        transformed = np.fft.rfft(grid)
        return np.asarray(np.fft.irfft(transformed.real**2 + transformed.imag**2, padded)[:size])

    if size == values.size:  # no holes
        return sums(values), np.arange(size, 0, -1, dtype=np.intp)
    return sums(values), np.rint(sums(np.ones(values.size))).astype(np.intp)


# cuts with this share of the points on the side of the errors, if both sides have enough points
_SHARES: Final = (0.5, 0.25, 0.1)
_EITHER_SIDE: Final = 15
_FEW_EVENTS: Final = 2


@dataclass(frozen=True, eq=False)
class EffectiveSize:
    """The effective sample size of the points of one class.

    Attributes
    ----------
    n : int
        The number of points.
    dependence : Dependence or None
        The dependence at the cut through the scores that shows most of it, in the order of time; None if no
        cut has 15 points on either side, so that it is unknown.
    events : int or None
        The number of runs of neighbouring anomalous windows among the points; None for normal points.
    """

    n: int
    dependence: Dependence | None
    events: int | None = None

    @property
    def effective(self) -> float | None:
        """The effective sample size; the number of events if that is 1 or 2, and None if it is unknown."""
        # with one or two events, no autocorrelation can show how much events differ
        if self._few_events:
            return float(self.events or 0)
        return None if self.dependence is None else self.dependence.effective

    @property
    def misleading(self) -> bool:
        """Whether n overstates the evidence: effective size below n / 2 or unknown, or few events."""
        return self._few_events or self.dependence is None or self.dependence.misleading

    @property
    def apart(self) -> int:
        """The distance, in windows, from which points seem independent; 1 if neighbours already do."""
        found = self.dependence
        return 1 if found is None else max(found.lag, ceil(found.n / found.effective))

    @property
    def _few_events(self) -> bool:
        return self.events is not None and 0 < self.events <= _FEW_EVENTS

    def warning(self, name: str, every: int, needed: int, unit: str = "window") -> str | None:
        """Return a warning about windows that start every `every` steps, or None if there is no problem."""
        if not self.misleading:
            return None
        points = f"{self.n:,} {name} {unit}{'s' * (self.n != 1)}"
        if self._few_events:
            events = "one event" if self.events == 1 else f"{self.events} events"
            return (
                f"{points} of only {events} can tell little about other events, so the stated confidence is"
                f" too high; label {unit}s of more events"
            )
        if self.dependence is None:
            return (
                f"{points} cannot show whether {unit}s depend on each other, because no score has"
                f" {_EITHER_SIDE} of them on either side, so the stated confidence holds only if they do not;"
                " label more"
            )
        apart = f"{self.apart * every:,} steps"
        advice = (
            (f"take one in about {apart}" if unit == "step" else f"take {unit}s about {apart} apart")
            if self.n // self.apart >= needed
            else f"the series is too short to take {unit}s further apart, because fewer than the"
            f" {needed:,} that are needed would remain"
        )
        return (
            f"{points} are worth about {self.dependence.effective:,.0f} independent ones, so the stated"
            f" confidence is too high; {advice}"
        )


def effective_size(
    scores: ArrayLike, *, anomalous: bool = False, errors: int = 0, events: int | None = None
) -> EffectiveSize:
    """Return the effective sample size of the points of one class, given their scores in time.

    Cuts through the scores have a half, a quarter and a tenth of the points on the side of the errors (high
    for normal, low for anomalous points), and a last cut has the `errors` at the threshold. Of all cuts with
    at least 15 points on either side, the smallest effective size is taken. Only the order of the points
    matters, not their distance, since the variance of a mean is a sum over all pairs.

    Parameters
    ----------
    scores : array-like of float
        The scores of one class, in the order of time.
    anomalous : bool
        Whether the points are anomalous.
    errors, events : int, optional
        The number of errors at the threshold, and the number of runs of neighbouring anomalous windows.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> found = effective_size(random.normal(size=1000)), effective_size(np.arange(1000))
    >>> [round(one.effective) for one in found]
    [883, 3]
    """
    check_choice("anomalous", anomalous, (True, False))
    values = as_scores(scores)
    found = [dependence(indicator) for indicator in _cuts(-values if anomalous else values, errors)]
    return EffectiveSize(values.size, min(found, key=lambda one: one.effective, default=None), events)


def _cuts(values: NDArray[np.float64], errors: int) -> Iterator[NDArray[np.bool_]]:
    """Yield a mask of the points above each cut; with ties, the cut that is closest to its share."""
    n, ranked = values.size, np.sort(values)
    # how many points lie below each possible cut
    places = np.flatnonzero(ranked[1:] > ranked[:-1]) + 1
    places = places[(places >= _EITHER_SIDE) & (places <= n - _EITHER_SIDE)]
    if places.size == 0:
        return
    wanted = [share * n for share in _SHARES] + [float(errors)]
    chosen = {int(np.abs(places - (n - above)).argmin()) for above in wanted if above >= _EITHER_SIDE}
    for place in places[sorted(chosen)]:
        yield values >= ranked[place]
