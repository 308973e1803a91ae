"""What a monitor watches, a share that must not exceed a limit or all scores, and the alarms it raises."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, inf, isfinite, log, nextafter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, check_count, check_rate
from pac_wrap.base.floats import ScoreType, rounded, rounded_up
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import kept_by, shares_of
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.values import Group
from pac_wrap.method.monitoring.bets import Bets, Placed, Reached, confidence_sequence, wait
from pac_wrap.method.promise import Error, refuse_room
from pac_wrap.method.robust.shift_and_noise import NEW_LABELS
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.tails.bounds import Rate

UNDECIDED: Final = "undecided"
SCORES: Final = "scores"
_LONGEST_SHOWN: Final = 60
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

    Attributes
    ----------
    groups : tuple
        The group that it is about, several where they are a pool, none where a certificate has no groups;
        `row` and `since` then count the rows of these groups.

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
    groups: tuple[Group, ...] = field(default=(), init=False)

    @property
    def e_value(self) -> float:
        """How strong it is: had the limit been kept, so large a wealth were less likely than 1 / e_value."""
        return as_wealth(self.log_wealth)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence sequence of the rate since then; None for scores, whose thresholds were chosen."""
        return None if self.watch == SCORES else confidence_sequence(self.count, self.n, self.level)

    def __str__(self) -> str:
        whose = f"{called(self.groups)}: " if self.groups else ""
        batch = "" if self.id is None else f" in batch {quoted(self.id)}"
        low, high = self.between or (0.0, 0.0)
        what, fate = _FATES.get(self.watch, ("scores", f"lie from {low:.6g} to {high:.6g}"))
        return (
            f"{whose}{self.watch} alarm at row {self.row:,}{batch}: {self.count:,} of {self.n:,} {what} since"
            f" row {self.since:,} {fate}, {self.count / self.n:.3g} where {rounded_up(self.limit)} is allowed"
            f" (e-value {wealth_text(self.log_wealth)}){f'; {NEW_LABELS}' if self.noisy else ''}"
        )


def about(groups: tuple[Group, ...], alarm: Alarm) -> Alarm:
    """Return an alarm with the groups that it is about."""
    object.__setattr__(named := copy(alarm), "groups", groups)
    return named


def called(groups: tuple[Group, ...]) -> str:
    """Return what the groups that are watched together are called: one as it is shown, or a pool of so many.

    >>> called(("a",)), called((None,)), called(("a", "b"))
    ("'a'", 'none', 'the pool of 2 groups')
    """
    if len(groups) > 1:
        return f"the pool of {len(groups):,} groups"
    return "none" if groups[0] is None else quoted(groups[0], _LONGEST_SHOWN)


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


Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
# the bounds whose thresholds are paired, and the shares of the largest bet that are mixed: eq. (91)
LEVELS: Final = (0.01, 0.03, 0.08, 0.2, 0.4)
SHARES: Final = (0.5, 0.2, 0.08, 0.03)


@dataclass(frozen=True)
class Hull:
    """Bets that too many scores lie between two thresholds, for every pair of them.

    A pair (t, t') with t < t' has the bounds FPR(t) <= 1 - a and FNR(t') <= 1 - b. For any prevalence
    P(s < t) / a + P(s >= t') / b >= 1: eq. (89). `edges` are all thresholds, rising; `pairs` has for each bet
    the places of its two and its a and b.
    """

    edges: Doubles
    pairs: tuple[tuple[int, int, float, float], ...]
    bets: Bets
    score_type: ScoreType

    def cells(self, scores: Scores) -> Counts:
        """Return the cell of each score: how many thresholds it reaches."""
        values = scores if self.score_type == "float64" else rounded(scores, self.score_type)
        return np.searchsorted(self.edges, values, side="right").astype(np.int64)

    def allowed(self, bet: int, fates: Counts) -> float:
        """Return what share may lie between the thresholds of a bet, beside those that lie above."""
        _, _, a, b = self.pairs[bet]
        above = float(fates[2] / max(1, fates.sum()))
        return min(1.0, max(0.0, 1.0 - a - above * (1.0 - a / b)))

    def ends(self, bet: int) -> tuple[float, float]:
        """Return the thresholds of a bet."""
        low, high, _, _ = self.pairs[bet]
        return float(self.edges[low]), float(self.edges[high])


@lru_cache(maxsize=8)
def hull_of(curve: Curve) -> Hull | None:
    """Return the bets on a curve, None if no pair of thresholds has anything between.

    >>> from pac_wrap import certify_curve
    >>> hull = hull_of(certify_curve(range(1000), range(2000, 3000)))
    >>> hull.edges.size, len(hull.pairs)
    (10, 100)
    """
    pairs = list(_pairs(curve))
    if not pairs:
        return None
    edges = np.array(sorted({edge for low, high, _, _ in pairs for edge in (low, high)}))
    cells = np.arange(edges.size + 1)
    found, logs, fates = [], [], []
    for t, above, a, b in pairs:
        low, high = int(np.searchsorted(edges, t)), int(np.searchsorted(edges, above))
        fate = np.where(cells <= low, 0, np.where(cells <= high, 1, 2))
        for share in SHARES:  # eq. (90)
            bet = share * min(a / (1.0 - a), b / (1.0 - b))
            logs.append(np.log1p([-bet * (1.0 - a) / a, bet, -bet * (1.0 - b) / b])[fate])
            fates.append(fate)
            found.append((low, high, a, b))
    return Hull(edges, tuple(found), Bets(np.array(logs), np.array(fates)), curve.score_type)


def _pairs(curve: Curve) -> Iterator[tuple[float, float, float, float]]:
    """Yield pairs of thresholds with something between, and what each side keeps at least."""
    lows = [curve.normal.score_within(level) for level in LEVELS]
    highs = [curve.anomalous.score_within(level) for level in LEVELS]
    for t in dict.fromkeys(nextafter(score, inf) for score in lows if score is not None and score < inf):
        for above in dict.fromkeys(score for score in highs if score is not None and score > -inf):
            a, b = 1.0 - curve.fpr(t), 1.0 - curve.fnr(above)
            if t < above and 0.0 < a < 1.0 and 0.0 < b < 1.0:
                yield t, above, a, b


_NO_BETS: Final = Bets(np.zeros((1, 1)), np.zeros((1, 1), dtype=np.int64))


# places of rows, and the cells that they fall into
Points = tuple[Counts, Counts]


class Told(NamedTuple):
    """How a batch is fed: its name, whether its labels come late, and whether its rows count together."""

    id: str | None = None
    late: bool = False
    together: bool = False


class _Limit(NamedTuple):
    """A limit that can be watched: a share, or that of scores; `delta` is the chance that it is wrong."""

    name: str
    delta: float
    ceiling: float | None
    hull: Hull | None = None
    noisy: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """One thing that is watched: how much was counted, what is allowed, and the wealth of the bets on more.

    Parameters
    ----------
    name : str
        "FPR" or "FNR", which need labels; "undecided" or "scores", which need none.
    alpha : float
        The chance of an alarm of this watch, ever, though nothing exceeds what is allowed.
    delta : float
        The chance that what is allowed is itself wrong, over draws of the calibration points: eq. (86).
    ceiling : float or None
        The share that is allowed; None for "scores", where it depends on the scores themselves.
    cells : tuple of int
        How many points fell into each cell: for a share those that are not counted and those that are.
    starts, following : int
        How often bets were placed, and after how many points they will be again.
    gains, best : tuple of float
        What each bet had gained by its starts, and by the best of them, as logarithms.
    began : tuple of int
        The best start of each bet: its row and number, and how many points had lost, won and lain above then.
    past : tuple of float
        The logarithm of the wealth, at rows in equal steps.

    Examples
    --------
    >>> from pac_wrap import Monitor, calibrate
    >>> monitor = Monitor(calibrate(range(1000), range(2000, 3000)))
    >>> _ = monitor.update([1] * 3 + [0] * 97, [0] * 100)
    >>> watch = monitor.watches[0]
    >>> watch.name, watch.count, watch.n, str(watch.rate)
    ('FPR', 3, 100, '0.0300 [0.0007, 0.1329]')
    """

    name: str
    alpha: float
    delta: float
    ceiling: float | None
    cells: tuple[int, ...]
    starts: int
    following: int
    gains: tuple[float, ...]
    best: tuple[float, ...]
    began: tuple[int, ...]
    past: tuple[float, ...] = ()
    bets: Bets = field(default=_NO_BETS, init=False, repr=False, compare=False)
    hull: Hull | None = field(default=None, init=False, repr=False, compare=False)
    noisy: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_rate("alpha", self.alpha)
        for number in (*self.cells, self.starts, self.following, *self.began):
            check_count("what was counted", number)
        late = self.following > self.n + wait(self.n)
        if late or not all(map(isfinite, self.past)) or inf in self.gains:
            raise InputError(f"the watch of {self.name} cannot have come about; start a new monitor")

    @classmethod
    def of(
        cls,
        name: str,
        alpha: float,
        delta: float,
        ceiling: float | None,
        hull: Hull | None = None,
        *,
        noisy: bool = False,
    ) -> "Watch":
        """Return a watch before any point, of a share or of scores."""
        bets = hull.bets if hull is not None else _bets(ceiling or 0.5)
        empty = cls(name, alpha, delta, ceiling, (), 0, 0, (), (), ()).on(bets, hull, noisy)
        return empty._with(bets.unplaced(), ())

    def on(self, bets: Bets, hull: Hull | None, noisy: bool) -> "Watch":
        """Return the same with its bets, and whether labels may be wrong, as the certificate has them."""
        object.__setattr__(self, "bets", bets)
        object.__setattr__(self, "hull", hull)
        object.__setattr__(self, "noisy", noisy)
        return self

    @property
    def n(self) -> int:
        """How many points were seen."""
        return sum(self.cells)

    @property
    def count(self) -> int:
        """How many of them are errors, or undecided; of scores none is by itself."""
        return 0 if self.hull else self.cells[1]

    @property
    def rate(self) -> Rate:
        """The share so far; its confidence sequence is wrong, ever, with chance alpha at either end."""
        ends = (0.0, 1.0) if self.hull else confidence_sequence(self.count, self.n, self.alpha)
        return Rate(self.count, self.n, *ends)

    @property
    def log_wealth(self) -> float:
        """The logarithm of the wealth now."""
        return float(self.bets.log_wealth(self._placed))

    @property
    def wealth(self) -> float:
        """The wealth now, an e-value: the alarm comes when it reaches 1/alpha."""
        return as_wealth(self.log_wealth)

    @property
    def _placed(self) -> Placed:
        return Placed(
            np.array(self.cells, dtype=np.int64),
            self.starts,
            self.following,
            np.array(self.gains),
            np.array(self.best),
            np.array(self.began, dtype=np.int64).reshape(-1, 5),
        )

    def thinned(self) -> "Watch":
        """Return the same with every second row of the past."""
        return self._with(self._placed, self.past[1::2])

    def fed(
        self, points: Points, span: tuple[int, int], marks: Counts, *, watching: bool, batch: "Told"
    ) -> tuple["Watch", Alarm | None]:
        """Return the watch after a batch, and the alarm if it came.

        `points` are the places of the rows of the batch that matter, and the cells they fall into; `span` is
        how many rows came before the batch, and how many with it, and `marks` how many of the batch each kept
        part of the past takes in. Where all rows of a batch count together, nothing depends on their order,
        eq. (130): a new start has the first row of the batch, an alarm its last one, and the past kept within
        the batch is that before it.
        """
        (places, cells), (before, after) = points, span
        bar = -log(self.alpha) if watching else None
        if batch.together:
            placed, reached = self.bets.took_together(self._placed, cells, before + 1, bar)
            height = float(self.bets.log_wealth(placed))
            heights = [height if before + mark == after else self.log_wealth for mark in marks.tolist()]
            row = after
        else:
            stops = np.searchsorted(places, marks)
            placed, heights, reached = self.bets.took(self._placed, cells, before + 1 + places, stops, bar)
            row = 0 if reached is None else before + 1 + int(places[reached.point])
        alarm = None if reached is None else self._alarm(row, reached, batch.id)
        return self._with(placed, (*self.past, *heights)), alarm

    def _alarm(self, row: int, reached: Reached, batch: str | None) -> Alarm:
        """Return the record of what had been counted when the wealth reached the bar."""
        bet, since, number, fates = self.bets.strongest(reached.placed)
        limit, between = self.ceiling or 0.0, None
        if self.hull is not None:
            limit, between = self.hull.allowed(bet, fates), self.hull.ends(bet)
        return Alarm(
            self.name,
            row,
            since,
            reached.log_wealth,
            int(fates[1]),
            int(fates.sum()),
            limit,
            self.alpha,
            self.delta,
            self.alpha / ((number + 1.0) * (number + 2.0)),
            batch,
            between,
            self.noisy or None,
        )

    def _with(self, placed: Placed, past: tuple[float, ...]) -> "Watch":
        """Return the same with other bets and another past."""
        changed = replace(
            self,
            cells=tuple(placed.cells.tolist()),
            starts=placed.starts,
            following=placed.following,
            gains=tuple(placed.gains.tolist()),
            best=tuple(placed.best.tolist()),
            began=tuple(placed.began.ravel().tolist()),
            past=past,
        )
        return changed.on(self.bets, self.hull, self.noisy)

    def __str__(self) -> str:
        wealth = f"wealth {wealth_text(self.log_wealth)} of {1.0 / self.alpha:.6g}"
        share = (
            f"{self.n:,} points"
            if self.ceiling is None
            else f"{self.rate}, allowed {rounded_up(self.ceiling)}"
        )
        return f"{self.name:<10} {share}; {wealth}"


def watches_of(certificate: Certificate, curve: Curve | None, alpha: float) -> tuple[Watch, ...]:
    """Return what can be watched of a certificate, and of a curve, before any point."""
    kept, rule = [one for one in kept_by(certificate) if one is not None], certificate.rule
    # of a verdict that is never given nothing can be counted
    given = {Error.FALSE_ALARM: rule.anomaly_from < inf, Error.MISS: rule.normal_below > -inf}
    # labels so wrong that they may show any share of errors while a ceiling holds contradict nothing
    promises = [one for one in kept if one.counted < 1.0 and given[one.error]]
    found = [_Limit(one.name, one.delta, one.counted, noisy=one.label_noise is not None) for one in promises]
    found += _undecided(certificate)
    if curve is not None:
        refuse_room(certificate.guarantee, "a curve", "leave it out: all else is watched without it")
    hull = None if curve is None else hull_of(curve)
    if curve is not None and hull is not None:
        found.append(_Limit(SCORES, curve.normal.delta + curve.anomalous.delta, None, hull))
    if not found and not any(given.values()):
        raise InputError("every point is left undecided, so nothing can be watched; label more points")
    if not found:
        raise InputError(
            "labels as wrong as there is room for may show any share of errors while the ceilings hold, so"
            " nothing can be watched; ask for lower ceilings, or for room for fewer lost labels"
        )
    share = alpha / len(found)  # eq. (129)
    return tuple(Watch.of(one.name, share, *one[1:4], noisy=one.noisy) for one in found)


def _undecided(certificate: Certificate) -> list[_Limit]:
    """Return the watch of undecided points, where there can be any and their share has a bound: eq. (88)."""
    if certificate.rule.single:
        return []
    try:
        shares = shares_of(certificate, None)
    except InputError:  # what is certified bounds no share of undecided points
        return []
    limit = max(shares.undecided)
    if not 0.0 < limit < 1.0:
        return []
    always = isinstance(certificate.overlap, Abstain) and certificate.overlap.always
    delta = sum(shares.deltas if always else shares.deltas[-1:]) + sum(shares.extra)
    return [_Limit(UNDECIDED, delta, limit)]


@lru_cache(maxsize=64)
def _bets(ceiling: float) -> Bets:
    return Bets.above(ceiling)
