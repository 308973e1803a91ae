"""How many independent points the points of one class are worth, judged by all of their scores.

A diagnostic: it estimates, and promises nothing. Errors alone would not do: where one or two of them are
allowed, they show no dependence, however strong it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_scores, check_choice
from pac_wrap.series.dependence import Dependence, dependence, misleading

# cuts that leave this share of the points on the side where errors lie, if both sides have points enough
_SHARES: Final = (0.5, 0.25, 0.1)
_EITHER_SIDE: Final = 15
_FEW_EVENTS: Final = 2


@dataclass(frozen=True, eq=False)
class Worth:
    """How many independent points n points of one class are worth.

    Attributes
    ----------
    n : int
        The number of points.
    dependence : Dependence or None
        That of the cut through the scores which shows most of it, in the order of time; None where no cut has
        15 points on either side, so that nothing can be said.
    events : int or None
        How many runs of neighbouring anomalous windows the points come from; None for normal points.

    Examples
    --------
    >>> found = worth(np.repeat(np.random.default_rng(0).normal(size=60), 5), anomalous=False)
    >>> found.n, found.dependence.effective < 100
    (300, True)
    """

    n: int
    dependence: Dependence | None
    events: int | None = None

    @property
    def effective(self) -> float | None:
        """The number of independent points, at most that of one or two events; None if none can be named.

        Within one or two events no autocorrelation shows how much events differ from each other.
        """
        if self._few_events:
            return float(self.events or 0)
        return None if self.dependence is None else self.dependence.effective

    @property
    def misleading(self) -> bool:
        """Whether n overstates the evidence: half of it is lost, nothing can be said, or events are few."""
        return self._few_events or self.dependence is None or misleading(self.dependence)

    @property
    def apart(self) -> int:
        """How many windows further on the points no longer seem to depend; 1 if each is as good as new."""
        found = self.dependence
        return 1 if found is None else max(found.lag, ceil(found.n / found.effective))

    @property
    def _few_events(self) -> bool:
        return self.events is not None and 0 < self.events <= _FEW_EVENTS

    def warning(self, name: str, every: int, needed: int, unit: str = "window") -> str | None:
        """Return the sentence that warns a user, or None if all is well.

        Parameters
        ----------
        name : str
            What the class is called: normal or anomalous.
        every : int
            The steps between two windows.
        needed : int
            How many points of this class the promise needs.
        unit : str
            What a point is called: window or step.

        Returns
        -------
        str or None
            What is wrong, and what would help.

        Examples
        --------
        >>> print(worth(np.repeat([0.1, 0.7, 0.3, 0.2], 25)).warning("normal", every=60, needed=22))
        100 normal windows are worth about 5 independent ones, so the stated confidence is too high; the \
series is too short to take windows further apart, because fewer than the 22 that are needed would remain
        """
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
                f"{points} cannot show how far {unit}s depend on each other, because no score has"
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


def worth(
    scores: ArrayLike,
    *,
    anomalous: bool = False,
    errors: int = 0,
    events: int | None = None,
) -> Worth:
    """Return how many independent points the points of one class are worth, given their scores in time.

    Cuts through the scores leave a half, a quarter and a tenth of the points on the side where errors lie
    (high for normal, low for anomalous points), and a last one the `errors` at the threshold; a cut counts if
    15 points or more lie on either side, and the least effective size of all is taken. Points are compared in
    their order, wherever they stand: the variance of a mean is a sum over all pairs, in whatever order.

    Parameters
    ----------
    scores : array-like of float
        The scores of one class, in the order of time.
    anomalous : bool
        Which class it is.
    errors : int
        How many of them are errors at the threshold.
    events : int, optional
        How many runs of neighbouring anomalous windows they come from.

    Returns
    -------
    Worth
        The effective number, and what it rests on.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> round(worth(random.normal(size=1000)).effective), round(worth(np.arange(1000)).effective)
    (883, 3)
    >>> worth(random.normal(size=29)).effective is None
    True
    """
    check_choice("anomalous", anomalous, (True, False))
    values = as_scores(scores)
    found = [dependence(indicator) for indicator in _cuts(-values if anomalous else values, errors)]
    return Worth(values.size, min(found, key=lambda one: one.effective, default=None), events)


def _cuts(values: NDArray[np.float64], errors: int) -> Iterator[NDArray[np.bool_]]:
    """Yield which points lie above each cut; among ties, the cut that comes nearest to its share."""
    n, ranked = values.size, np.sort(values)
    # how many points lie below each place where a cut can be made
    places = np.flatnonzero(ranked[1:] > ranked[:-1]) + 1
    places = places[(places >= _EITHER_SIDE) & (places <= n - _EITHER_SIDE)]
    if places.size == 0:
        return
    wanted = [share * n for share in _SHARES] + [float(errors)]
    chosen = {int(np.abs(places - (n - above)).argmin()) for above in wanted if above >= _EITHER_SIDE}
    for place in places[sorted(chosen)]:
        yield values >= ranked[place]
