"""The monitored quantities, each with its limit and evidence, and the alarms of a monitor."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, inf, isfinite, log, nextafter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, check_count, check_rate
from pac_wrap.base.floats import ScoreType, rounded, rounded_up
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import kept_by, shares_of
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.values import Group
from pac_wrap.method.monitoring import bets as betting
from pac_wrap.method.monitoring.bets import SHARES_OF_UNITS, Bets, Placed, Reached
from pac_wrap.method.promise import Error, Promise, refuse_tolerance
from pac_wrap.method.robust.shift_and_noise import NEW_LABELS
from pac_wrap.method.strategies.interface import Abstain
from pac_wrap.tails.bounds import MeanRate, Rate

UNDECIDED: Final = "undecided"
SCORES: Final = "scores"
_LONGEST_SHOWN: Final = 60
# its exponential is beyond the largest double
_BEYOND: Final = 709.0
_FATES: Final = {
    "FPR": ("normal points", "are false alarms"),
    "FNR": ("anomalous points", "are missed"),
    UNDECIDED: ("points", "are undecided"),
    "alarms": ("points", "raise an alarm"),
    "false alarms": ("points", "are false alarms"),
    "wrong alarms": ("alarms", "are wrong"),
    "days": ("days", "have too many false alarms"),
    "events": ("events", "are missed"),
}
# what needs a review of every alarm
REVIEWED: Final = ("false alarms", "wrong alarms")


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of a monitor: what it is about, since when, how strong the evidence is, and the counts.

    Attributes
    ----------
    watch : str
        What the alarm is about: "FPR", "FNR", "undecided" or "scores"; of traffic "alarms", "false alarms" or
        "wrong alarms".
    row, since : int
        The row at which the evidence reached 1/alpha, and the row at which the change probably began. Rows
        are counted from 1 over all batches, within `groups` where there are groups.
    log_evidence : float
        The logarithm of the evidence at the alarm.
    count, n : int
        The errors, or undecided points, and all points since row `since`. For "scores", `count` is the number
        of scores between the two thresholds.
    limit : float
        The allowed share.
    alpha, delta, level : float
        The chance of a false alarm, of a wrong limit, and of each end of `interval` being wrong.
    id : str or None
        The id of the batch in which the alarm came.
    between : tuple of float or None
        For "scores", the two thresholds.
    noisy : bool or None
        Whether the limit tolerates label noise. If so, it assumes that new labels are no noisier.
    units : str or None
        What is counted of units, "days", "events" or "units"; rows are units then. Of "units", `count` have a
        larger share of errors than `limit`.
    groups : tuple
        The group that it is about. A pool has several; empty if the certificate has no groups.
    """

    watch: str
    row: int
    since: int
    log_evidence: float
    count: int
    n: int
    limit: float
    alpha: float
    delta: float
    level: float
    id: str | None = field(default=None, metadata={"optional": True})
    between: tuple[float, ...] | None = field(default=None, metadata={"optional": True})
    noisy: bool | None = field(default=None, metadata={"optional": True})
    units: str | None = field(default=None, metadata={"optional": True})
    groups: tuple[Group, ...] = field(default=(), init=False)

    @property
    def e_value(self) -> float:
        """The evidence at the alarm; if the limit holds, it ever gets there with chance <= 1 / e_value."""
        return exp(self.log_evidence) if self.log_evidence < _BEYOND else inf

    @property
    def interval(self) -> tuple[float, float] | None:
        """Bounds of the rate since row `since`; None for chosen thresholds of scores, and for "units"."""
        known = self.units != "units" and self.watch != SCORES
        return betting.confidence_sequence(self.count, self.n, self.level) if known else None

    def of(self, groups: tuple[Group, ...]) -> "Alarm":
        """Return a copy of the alarm that names its groups."""
        object.__setattr__(named := copy(self), "groups", groups)
        return named

    def __str__(self) -> str:
        whose = f"{called(self.groups)}: " if self.groups else ""
        batch = "" if self.id is None else f" in batch {quoted(self.id)}"
        low, high = self.between or (0.0, 0.0)
        what, fate = _FATES.get(self.watch, ("scores", f"lie from {low:.6g} to {high:.6g}"))
        head = f"too many {self.watch}" if self.watch.endswith("alarms") else f"{self.watch} alarm"
        row, allowed = "unit" if self.units else "row", rounded_up(self.limit)
        end = f"{self.count / self.n:.3g} where {allowed} is allowed"
        if self.units == "units":
            fate, what = f"have more than {allowed} of their {what} wrong", "units"
            end = "which is allowed on average only"
        elif self.units is not None:
            what, fate = _FATES[self.units]
        return (
            f"{whose}{head} at {row} {self.row:,}{batch}: {self.count:,} of {self.n:,} {what} since"
            f" {row} {self.since:,} {fate}, {end}"
            f" (e-value {evidence_text(self.log_evidence)}){f'; {NEW_LABELS}' if self.noisy else ''}"
        )


def called(groups: tuple[Group, ...]) -> str:
    """Return the name of a monitored group, or of a pool of groups."""
    if len(groups) > 1:
        return f"the pool of {len(groups):,} groups"
    return "none" if groups[0] is None else quoted(groups[0], _LONGEST_SHOWN)


def evidence_text(logarithm: float) -> str:
    """Return evidence with three digits, from its logarithm, also beyond all doubles."""
    return f"{exp(logarithm):.3g}" if logarithm < _BEYOND else "beyond 1e308"


Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
# bounds whose thresholds are paired, and the mixed shares of the largest bet: eq. (91)
LEVELS: Final = (0.01, 0.03, 0.08, 0.2, 0.4)
SHARES: Final = (0.5, 0.2, 0.08, 0.03)


@dataclass(frozen=True)
class Hull:
    """Bets that too many scores lie between two thresholds, for every pair of thresholds: eq. (89)."""

    edges: Doubles
    # for each bet the places of two edges t < t', and the a and b of FPR(t) <= 1 - a and FNR(t') <= 1 - b
    pairs: tuple[tuple[int, int, float, float], ...]
    bets: Bets
    score_type: ScoreType

    def cells(self, scores: Scores) -> Counts:
        """Return the cell of each score, the number of thresholds that it reaches."""
        values = scores if self.score_type == "float64" else rounded(scores, self.score_type)
        return np.searchsorted(self.edges, values, side="right").astype(np.int64)


@lru_cache(maxsize=8)
def hull_of(curve: Curve) -> Hull | None:
    """Return the bets on a curve, None if no two thresholds have scores between them."""
    lows = [curve.normal.score_within(level) for level in LEVELS]
    highs = [curve.anomalous.score_within(level) for level in LEVELS]
    pairs = []
    for t in dict.fromkeys(nextafter(score, inf) for score in lows if score is not None and score < inf):
        for above in dict.fromkeys(score for score in highs if score is not None and score > -inf):
            a, b = 1.0 - curve.fpr(t), 1.0 - curve.fnr(above)  # least shares without an error
            if t < above and 0.0 < a < 1.0 and 0.0 < b < 1.0:
                pairs.append((t, above, a, b))
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


# places of rows, and the cells that they fall into
Points = tuple[Counts, Counts]
_bets = lru_cache(maxsize=64)(Bets.above)


@dataclass(frozen=True, slots=True)
class Watch:
    """One monitored quantity: its counts, its limit, and the evidence that the limit is exceeded.

    `cells` counts the points in each cell; a share has two, points without and with an error, and shares of
    units have many. `gains` and `best` are the logarithms of the gain of each bet from all its starts, and
    from the best start; `began` has the row and number of the best start, and how many points had lost, won
    and been above by then. The chance of a false alarm is at most `alpha` plus `delta`: eq. (86).
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
    # derived from the certificate and the curve: after loading, they are set from a fresh object
    hull: Hull | None = field(default=None, init=False, repr=False, compare=False)
    noisy: bool = field(default=False, init=False, repr=False, compare=False)
    units: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_rate("alpha", self.alpha)
        for number in (*self.cells, self.starts, self.following, *self.began):
            check_count("a count", number)
        late = self.following > self.n + betting.wait(self.n)
        if late or not all(map(isfinite, self.past)) or inf in self.gains:
            raise InputError(f"the stored state of {self.name} is impossible; start a new monitor")

    @classmethod
    def of(cls, alpha: float, name: str, delta: float, ceiling: float | None, *rest: Any) -> "Watch":
        """Return a monitored share, or the monitored scores, before any point."""
        empty = cls(name, alpha, delta, ceiling, (), 0, 0, (), (), ()).on(*rest)
        return empty.after(empty.bets.unplaced(), ())

    def on(self, hull: Hull | None = None, noisy: bool = False, units: str | None = None) -> "Watch":
        """Set the fields that are not stored, and return this object."""
        for name, value in (("hull", hull), ("noisy", noisy), ("units", units)):
            object.__setattr__(self, name, value)
        return self

    @property
    def bets(self) -> Bets:
        """The bets that the limit is exceeded."""
        if self.hull is not None:
            return self.hull.bets
        return _bets(self.ceiling or 0.5, SHARES_OF_UNITS if self.units == "units" else (0.0, 1.0))

    @property
    def n(self) -> int:
        """How many points were counted."""
        return sum(self.cells)

    @property
    def count(self) -> int:
        """How many points are errors, or undecided; how many units have too many errors; 0 for scores."""
        return 0 if self.hull else int(self.bets.fates[0] @ np.array(self.cells))

    @property
    def rate(self) -> Rate:
        """The share so far; each end of its confidence sequence is ever wrong with chance at most alpha.

        Of units, it is the mean of their shares of errors, which are rounded down.
        """
        if self.units == "units":
            return MeanRate(self.count, self.n, *betting.mean_sequence(np.array(self.cells), self.alpha))
        ends = (0.0, 1.0) if self.hull else betting.confidence_sequence(self.count, self.n, self.alpha)
        return Rate(self.count, self.n, *ends)

    @property
    def counted(self) -> str:
        """The share so far in words."""
        if self.units == "units":
            return f"{self.rate} on average in {amount(self.n, 'unit')}" if self.n else "no units"
        return f"{self.count:,} of {self.n:,}: {self.rate}" if self.n else "no points"

    @property
    def log_evidence(self) -> float:
        """The logarithm of the present evidence."""
        return float(self.bets.log_evidence(self.placed))

    @property
    def placed(self) -> Placed:
        """The present state of the bets."""
        cells, began = (np.array(one, dtype=np.int64) for one in (self.cells, self.began))
        gains, best = np.array(self.gains), np.array(self.best)
        return Placed(cells, self.starts, self.following, gains, best, began.reshape(-1, 5))

    def fed(
        self, points: Points, rows: tuple[int, int], marks: Counts, *, watching: bool, together: bool
    ) -> tuple["Watch", Alarm | None]:
        """Return this quantity after the rows of a batch, its evidence stored at `marks`, and its alarm."""
        (places, cells), (before, after), bets = points, rows, self.bets
        bar = -log(self.alpha) if watching else None
        if together:  # their order has no effect: a start gets the first row, an alarm the last, eq. (130)
            placed, reached = bets.took_together(self.placed, cells, before + 1, bar)
            earlier, height, row = self.log_evidence, float(bets.log_evidence(placed)), after
            heights = [height if before + mark == after else earlier for mark in marks.tolist()]
        else:
            stops = np.searchsorted(places, marks)
            placed, heights, reached = bets.took(self.placed, cells, before + 1 + places, stops, bar)
            row = 0 if reached is None else before + 1 + int(places[reached.point])
        return self.after(placed, (*self.past, *heights)), reached and self._alarm(row, reached)

    def _alarm(self, row: int, reached: Reached) -> Alarm:
        """Return the alarm, with the counts when the evidence reached 1/alpha."""
        bet, since, number, fates = self.bets.strongest(reached.placed)
        count, n, limit, between = int(fates[1]), int(fates.sum()), self.ceiling or 0.0, None
        if self.hull is not None:
            # given the points above, the share that may lie between the two thresholds of the bet
            low, high, a, b = self.hull.pairs[bet]
            above = float(fates[2] / max(1, n))
            limit = min(1.0, max(0.0, 1.0 - a - above * (1.0 - a / b)))
            between = float(self.hull.edges[low]), float(self.hull.edges[high])
        level = self.alpha / ((number + 1.0) * (number + 2.0))
        counted = count, n, limit, self.alpha, self.delta, level
        of: Any = {"between": between, "noisy": self.noisy or None, "units": self.units}
        return Alarm(self.name, row, since, reached.log_evidence, *counted, **of)

    def after(self, placed: Placed, past: tuple[float, ...]) -> "Watch":
        """Return this quantity with other bets, and another past."""
        arrays = placed.cells, placed.gains, placed.best, placed.began
        cells, gains, best, began = (tuple[Any, ...](one.ravel().tolist()) for one in arrays)
        state = cells, placed.starts, placed.following, gains, best, began, past
        known = self.hull, self.noisy, self.units
        return Watch(self.name, self.alpha, self.delta, self.ceiling, *state).on(*known)

    def __str__(self) -> str:
        share = amount(self.n, "point")
        if self.ceiling is not None:
            share = self.counted if self.units == "units" else str(self.rate)
            share += f", allowed {rounded_up(self.ceiling)}"
        evidence = f"{evidence_text(self.log_evidence)} (alarm at {1.0 / self.alpha:.6g})"
        width = 12 if self.name.endswith("alarms") else 10
        return f"{self.name:<{width}} {share}; evidence against the promise: {evidence}"


def watches_of(certificate: Certificate, curve: Curve | None, alpha: float) -> tuple[Watch, ...]:
    """Return the monitored quantities of a certificate and a curve, before any point."""
    traffic, rule = certificate.traffic is not None, certificate.rule
    plain = not traffic and certificate.units is None
    promised = kept_by(certificate) if plain else [clause.certified for clause in certificate.clauses]
    kept = certificate.promises if traffic else [one for one in promised if one is not None]
    # a verdict that is never given has no errors to count
    event = None if certificate.units is None else certificate.units.event
    missed = rule.normal_below > -inf or (event is not None and event.alarms > 1)
    given = dict.fromkeys(Error, rule.anomaly_from < inf) | {Error.MISS: missed}
    # with very noisy labels, any share of errors is possible while a ceiling holds: nothing contradicts it
    found: list[tuple[Any, ...]] = [
        (name_of(one), one.delta, _limit(one), None, one.label_noise is not None, _counts(certificate, one))
        for one in kept
        if given[one.error] and not why_unseen(one, traffic) and _limit(one) < 1.0
    ]
    if traffic:  # two promises about false alarms have one limit, the lower
        names = dict.fromkeys(one[0] for one in found)
        found = [min((one for one in found if one[0] == name), key=lambda one: one[2]) for name in names]
    if (limit := _undecided(certificate)) is not None:
        found.append((UNDECIDED, *limit))
    if curve is not None and certificate.units is not None:
        raise InputError("a curve takes points for independent, and the certificate has units; remove it")
    if curve is not None:
        refuse_tolerance(certificate.guarantee, "a curve", "remove it; the rest is monitored without it")
        if (hull := hull_of(curve)) is not None:
            found.append((SCORES, curve.normal.delta + curve.anomalous.delta, None, hull))
    if found:
        return tuple(Watch.of(alpha / len(found), *one) for one in found)  # eq. (129)
    if traffic:
        told = dict.fromkeys(why_unseen(one, traffic) or "no alarm is ever raised" for one in kept)
        raise InputError(f"nothing can be monitored: {', and '.join(told) or 'nothing is certified'}")
    if not any(given.values()):
        raise InputError("every point is left undecided, so nothing can be monitored; label more points")
    if certificate.guarantee.label_noise is None:
        raise InputError("no verdict can break what is certified, so there is nothing to monitor")
    raise InputError(
        "with the tolerated label noise, any share of errors may appear while the ceilings hold, so"
        " nothing can be monitored; ask for lower ceilings, or tolerate fewer lost labels"
    )


def name_of(promise: Promise) -> str:
    """Return the name of what is monitored for a promise: of traffic, the errors among all points."""
    return f"{promise.error}s" if promise.of_traffic and promise.error is not Error.MISS else promise.name


def why_unseen(promise: Promise, traffic: bool) -> str | None:
    """Return why reviews of alarms cannot contradict a promise; None if they can, or labels are given."""
    if promise.by_coins:
        return "coins leave alarms without a review"
    return "reviews of alarms show no missed anomaly" if traffic and promise.error is Error.MISS else None


def _counts(certificate: Certificate, promise: Promise) -> str | None:
    """Return "events", "days" or "units" if a promise is about them, None if it is about points."""
    units, of_misses = certificate.units, promise.error is Error.MISS
    if units is None:
        return None
    if (units.event if of_misses else units.day) is not None:
        return "events" if of_misses else "days"
    return None if (certificate.fnr if of_misses else certificate.fpr).units is None else "units"


def _limit(promise: Promise) -> float:
    """Return the largest share of errors that may show while a promise holds: eqs. (76) and (150)."""
    if promise.reviews is None:
        return promise.counted
    return replace(promise.reviews, mistaken=0.0).before(promise.ceiling)


def _undecided(certificate: Certificate) -> tuple[float, float] | None:
    """Return delta and limit of the undecided share, None if there is none or it has no bound: eq. (88)."""
    if certificate.rule.single:
        return None
    try:
        shares = shares_of(certificate, None)
    except InputError:  # the certificate does not bound the share of undecided points
        return None
    limit = max(shares.undecided)
    always = isinstance(certificate.overlap, Abstain) and certificate.overlap.always
    delta = sum(shares.deltas if always else shares.deltas[-1:]) + sum(shares.extra)
    return (delta, limit) if 0.0 < limit < 1.0 else None
