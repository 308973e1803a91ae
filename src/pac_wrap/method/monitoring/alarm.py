"""The record of an alarm: which watch, since when, how strong."""

from dataclasses import dataclass, field
from math import exp, inf
from typing import Final

from pac_wrap.base.floats import rounded_up
from pac_wrap.base.text import quoted
from pac_wrap.method.monitoring.wealth import confidence_sequence
from pac_wrap.method.robust.noise import NEW_LABELS

UNDECIDED: Final = "undecided"
SCORES: Final = "scores"
_FATES: Final = {
    "FPR": ("normal points", "are false alarms"),
    "FNR": ("anomalous points", "are missed"),
    UNDECIDED: ("points", "are undecided"),
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """The record of an alarm: which watch, since when, how strong, and what had been counted by then.

    Parameters
    ----------
    watch : str
        "FPR", "FNR", "undecided" or "scores".
    row : int
        The row at which the wealth reached 1/alpha, counted from 1 over all batches.
    since : int
        The row at which the bet that won most was placed: about when things changed.
    log_wealth : float
        The logarithm of the wealth at the alarm.
    count, n : int
        How many errors, or undecided points, among how many since then; for "scores" how many lie between the
        two thresholds of that bet.
    limit : float
        What share is allowed.
    alpha, delta : float
        The chance of a false alarm, and that the limit itself is wrong.
    level : float
        The chance that an end of `interval` is wrong.
    id : str, optional
        The batch in which it happened.
    between : tuple of float, optional
        For "scores" those two thresholds.
    noisy : bool, optional
        Whether the limit allows for wrong labels, and so assumes how many of the new ones are.

    Examples
    --------
    >>> alarm = Alarm("FPR", 612, 1, 5.4, count=61, n=580, limit=0.05, alpha=0.005, delta=0.05, level=0.0025)
    >>> round(alarm.e_value, 1), [round(end, 3) for end in alarm.interval]
    (221.4, [0.059, 0.162])
    >>> print(str(alarm)[:77])
    FPR alarm at row 612: 61 of 580 normal points since row 1 are false alarms, 0
    """

    watch: str
    row: int
    since: int
    log_wealth: float
    count: int
    n: int
    limit: float
    alpha: float
    delta: float
    level: float
    id: str | None = field(default=None, metadata={"optional": True})
    between: tuple[float, ...] | None = field(default=None, metadata={"optional": True})
    noisy: bool | None = field(default=None, metadata={"optional": True})

    @property
    def e_value(self) -> float:
        """How strong it is: had the limit been kept, so large a wealth were less likely than 1 / e_value."""
        return as_wealth(self.log_wealth)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence sequence of the rate since then; None for scores, whose thresholds were chosen."""
        return None if self.watch == SCORES else confidence_sequence(self.count, self.n, self.level)

    def __str__(self) -> str:
        batch = "" if self.id is None else f" in batch {quoted(self.id)}"
        low, high = self.between or (0.0, 0.0)
        what, fate = _FATES.get(self.watch, ("scores", f"lie from {low:.6g} to {high:.6g}"))
        return (
            f"{self.watch} alarm at row {self.row:,}{batch}: {self.count:,} of {self.n:,} {what} since row"
            f" {self.since:,} {fate}, {self.count / self.n:.3g} where {rounded_up(self.limit)} is allowed"
            f" (e-value {wealth_text(self.log_wealth)}){f'; {NEW_LABELS}' if self.noisy else ''}"
        )


def as_wealth(logarithm: float) -> float:
    """Return the number whose logarithm this is, inf if it is beyond all doubles.

    >>> as_wealth(0.0), as_wealth(1000.0)
    (1.0, inf)
    """
    return exp(logarithm) if logarithm < 709.0 else inf


def wealth_text(logarithm: float) -> str:
    """Return the number whose logarithm this is with three digits, also beyond all doubles.

    >>> wealth_text(5.0), wealth_text(1000.0)
    ('148', 'beyond 1e308')
    """
    found = as_wealth(logarithm)
    return f"{found:.3g}" if found < inf else "beyond 1e308"
