"""What a certificate bounds of the fate of a point of each class, and the deltas that this takes."""

from dataclasses import dataclass
from decimal import Decimal
from math import inf, nextafter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.floats import confidence_left, float_below, kept_together
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.rule import Rule, Verdict
from pac_wrap.method.sampling import Assumption, are_independent
from pac_wrap.method.thresholds import Evidence, Regime
from pac_wrap.tails.bounds import lower_bound, upper_bound


class Certified(Protocol):
    """The parts of a certificate that are looked at."""

    @property
    def certified(self) -> Guarantee | None:
        """What is promised."""

    @property
    def overlap(self) -> Any:
        """What was done where the classes overlap: a `Strategy`."""

    @property
    def rule(self) -> Rule:
        """What verdicts follow."""

    @property
    def regime(self) -> Regime:
        """How the two thresholds lie."""

    @property
    def normal(self) -> Evidence:
        """What the normal points contributed."""

    @property
    def anomalous(self) -> Evidence:
        """What the anomalous points contributed."""

    @property
    def weighting(self) -> Weighting | None:
        """How the points were drawn by weights."""

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the promises assume."""

    @property
    def confidence(self) -> float:
        """How surely all ceilings hold together."""

    @property
    def confidences(self) -> dict[str, float]:
        """How surely each ceiling holds, by the name of its rate."""


class Shares(NamedTuple):
    """Bounds of what happens to a point of each class, and the deltas they take: eqs. (46), (47) and (49).

    At most `false_alarms` of the normal points are alarms, at least `caught` of the anomalies; at most
    `missed` of the anomalies are declared normal, and of each class at most `undecided` are abstained on.
    """

    false_alarms: float
    caught: float
    missed: float
    undecided: tuple[float, float]
    deltas: tuple[float, ...]
    # how surely `false_alarms` and `caught` hold together, which takes less than everything does: eq. (121)
    sure: float
    # what only the undecided normal points take
    extra: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """How many points are declared anomalies and normal, among how many, and how many have no score.

    `unseen` are those of groups that no label was seen of.

    >>> print(Counted(alarms=150, clears=6801, points=7000, missing=3))
    7,000 rows: 6,801 normal, 150 alarms, 49 undecided (3 without a score)
    """

    alarms: int = 0
    clears: int = 0
    points: int = 0
    missing: int = 0
    unseen: int = 0

    @classmethod
    def of(cls, verdicts: NDArray[np.int8], missing: int, unseen: int = 0) -> "Counted":
        """Return the counts of verdicts, of which some are those of points without a score."""
        alarms, clears = (int(np.count_nonzero(verdicts == one)) for one in (Verdict.ANOMALY, Verdict.NORMAL))
        return cls(alarms, clears, verdicts.size, missing, unseen)

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(
            self.alarms + other.alarms,
            self.clears + other.clears,
            self.points + other.points,
            self.missing + other.missing,
            self.unseen + other.unseen,
        )

    def __str__(self) -> str:
        rows, alarms = (
            f"{count:,} {word}" + "s" * (count != 1)
            for count, word in ((self.points, "row"), (self.alarms, "alarm"))
        )
        reasons = [f"{self.missing:,} without a score"] * (self.missing > 0)
        reasons += [f"{self.unseen:,} in groups never seen"] * (self.unseen > 0)
        without = f" ({', '.join(reasons)})" if reasons else ""
        undecided = self.points - self.alarms - self.clears
        return f"{rows}: {self.clears:,} normal, {alarms}, {undecided:,} undecided{without}"


def count_verdicts(rule: Rule, scores: ArrayLike) -> Counted:
    """Return how many points a rule declares anomalies and normal; NaN counts as undecided.

    >>> count_verdicts(Rule(0.3, 0.7), [0.1, 0.5, 0.8, 0.9, float("nan")])
    Counted(alarms=2, clears=1, points=5, missing=1, unseen=0)
    """
    verdicts, missing = rule.decided(scores)
    return Counted.of(verdicts, missing.size)


def kept_by(one: Certified) -> Guarantee:
    """Return what is certified, or refuse."""
    if one.certified is None:
        raise InputError("no threshold is certified, so no alarm is raised; certificate.diagnosis says why")
    if not one.overlap.proved:
        raise InputError("the confidence of this certificate is not guaranteed; calibrate with a correction")
    return one.certified


def false_alarms_of(one: Certified) -> float:
    """Return the ceiling of the share of normal points that are alarms, or refuse."""
    ceiling = kept_by(one).max_fpr
    if ceiling is None or one.rule.anomaly_from == inf:
        raise InputError(
            "no ceiling of the FPR is certified, or no alarm is ever raised, so nothing bounds how many of"
            " them are false; ask for a ceiling of the FPR, or label more normal points"
        )
    return ceiling


def shares_of(one: Certified, delta: float | None) -> Shares:
    """Return the bounds of a certificate; delta is that of each share that is counted."""
    kept, false_alarms = kept_by(one), false_alarms_of(one)
    if kept.max_fnr is None:  # then anomalies may be caught, missed or undecided, as far as the rule abstains
        undecided = 0.0 if one.rule.single else 1.0
        deltas: tuple[float, ...] = (kept.delta_fpr,)
        return Shares(false_alarms, 0.0, 1.0, (undecided, undecided), deltas, float_below(_sure(one)))
    deltas = kept.delta_fpr, kept.delta_fnr
    found = Shares(false_alarms, 1.0 - kept.max_fnr, kept.max_fnr, (0.0, 0.0), deltas, one.confidence)
    if one.overlap.single:
        return found
    # one threshold or two, by how the classes lie: what either case takes is added up, eq. (47)
    counted = check_rate("delta", kept.delta_fnr if delta is None else delta)
    others = kept.delta_fpr if delta is None else counted
    found = found._replace(deltas=(*deltas, counted), extra=(others,))
    if _counts(one):
        found = found._replace(sure=float_below(_caught_too(one, kept, counted)))
    if one.rule.single:
        return found
    if one.regime is Regime.SEPARATED:  # two thresholds all the same: alarms begin at clear_below
        return found._replace(undecided=(false_alarms, kept.max_fnr))
    if one.weighting is not None and one.weighting.intervals:
        raise InputError(
            "weights are known up to intervals, and the classes overlap, so what is counted among the points"
            " that survived has no bound; try precision_from_unlabelled"
        )
    if not one.overlap.fixed_sizes:
        raise InputError(
            "the labels were looked at as they came, and the classes overlap, so what is counted among"
            " them has no bound; count new points without labels"
        )
    if Assumption.POOLED in one.assumptions:  # counts are not binomial: eq. (116)
        raise InputError(
            "the points of a pool come from several groups, and the classes overlap, so what is counted among"
            " them is not binomial and has no bound; count new points without labels"
        )
    n, crossing = one.anomalous.n, one.anomalous.crossing or 0
    normal, anomalous = kept.fpr, kept.fnr
    assert normal is not None  # `kept` has both ceilings
    assert anomalous is not None
    caught = lower_bound(n - crossing, n, counted)
    if anomalous.room is not None:  # what is not caught may become more, eq. (70)
        caught = max(0.0, nextafter(1.0 - anomalous.afterwards(upper_bound(crossing, n, counted)), -1.0))
    lacking = _lacking(one)
    return Shares(
        false_alarms,
        caught,
        # with too few anomalies nothing is ever declared normal, and there is no other case
        0.0 if lacking else min(kept.max_fnr, 1.0 - caught),
        (normal.afterwards(upper_bound(one.normal.crossing or 0, one.normal.n, others)), 1.0 - caught),
        (kept.delta_fpr, counted) if lacking else found.deltas,
        found.sure,
        (others,),
    )


def _counts(one: Certified) -> bool:
    """Return whether a share may be counted where the classes overlap; else nothing is said there."""
    known = one.weighting is None or not one.weighting.intervals
    return known and one.overlap.fixed_sizes and Assumption.POOLED not in one.assumptions


def _lacking(one: Certified) -> bool:
    """Return whether the anomalies are too few for any budget, so that nothing is ever declared normal."""
    return one.anomalous.budget is None or one.anomalous.budget.errors is None


def _sure(one: Certified) -> Decimal:
    """Return how surely the ceiling of the FPR holds."""
    return Decimal(repr(one.confidences.get("FPR", 1.0)))


def _caught_too(one: Certified, kept: Guarantee, counted: float) -> Decimal:
    """Return how surely the ceiling of the FPR and the share of anomalies that are caught hold: eq. (121)."""
    own: tuple[float, ...] = (counted,)
    if not _lacking(one):
        own = (kept.delta_fnr,) if counted <= kept.delta_fnr else (kept.delta_fnr, counted)
    if are_independent(one.assumptions):
        return kept_together(_sure(one), confidence_left(*own))
    return confidence_left(kept.delta_fpr, *own)
