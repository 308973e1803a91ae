"""The certificate: what was asked, found and assumed, the rule it carries, and its JSON file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import OnMissing
from pac_wrap.base.codec import SavedAsJSON, checksum_of
from pac_wrap.base.floats import ScoreType, float_below, is_narrower, represents, rounded, straddled
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import AlarmBounds
from pac_wrap.method.certificates.consistency import inconsistencies
from pac_wrap.method.certificates.lineage import Lineage
from pac_wrap.method.certificates.provenance import Provenance, Traced
from pac_wrap.method.certificates.shown import Shown
from pac_wrap.method.clause import Clause
from pac_wrap.method.promise import Guarantee, Population
from pac_wrap.method.robust.radius import Robust
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import OF_DRAWS, Assumption, Sampling, are_independent
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.method.strategies.given import Given
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.interface import Claim, Outcome
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.method.strategies.raising import Raise
from pac_wrap.method.thresholds import LARGEST, Evidence, Regime, Thresholds
from pac_wrap.tails.bounds import Budget
from pac_wrap.version import __version__

# every strategy that a certificate can have been made with
Overlap = Abstain | Raise | Hold | Algorithm1 | Looks | Given


@dataclass(frozen=True, slots=True)
class Certificate(AlarmBounds, Robust, Traced, SavedAsJSON, Shown):
    """A rule with the promise that it keeps, and what both rest on; made by `calibrate`, never by hand.

    Parameters
    ----------
    guarantee : Guarantee
        What was asked for.
    overlap : Strategy
        What was done where the classes overlap.
    certified : Guarantee or None
        What is promised. None: no single threshold could be certified, and everything is abstained.
    rule : Rule
        What `verdicts` follows, for scores that have not been rounded to `score_type` yet, and others too.
    thresholds : Thresholds
        Evidence, of each class by itself: `alarm_from` of the normal, `clear_below` of the anomalous points.
    regime : Regime
        How the two thresholds lie.
    normal, anomalous : Evidence
        What each class contributed.
    score_type : "float64", "float32" or "float16"
        The type of the calibrating scores, to which every score is rounded before it is compared.
    separable : bool, optional
        Where ceilings were raised: whether one threshold would have kept those that were asked for.
    sampling : Sampling, optional
        How the points were taken from a time series.
    assumptions : tuple of Assumption
        What the promise assumes.
    version : str
        The version of the package that made it.
    provenance : Provenance, optional
        Where the scores came from. It stands apart: `==` and `verify` do not look at it.
    lineage : Lineage, optional
        Which certificates it follows, if `recalibrate` made it.
    weighting : Weighting, optional
        How the calibration points were drawn by their weights.

    Examples
    --------
    >>> from pac_wrap import Guarantee, calibrate
    >>> certificate = calibrate(range(1000), range(900, 1900), Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.rule
    ('overlapping', Rule(normal_below=938.0, anomaly_from=961.0000000000001))
    """

    guarantee: Guarantee
    overlap: Overlap
    certified: Guarantee | None
    rule: Rule
    thresholds: Thresholds
    regime: Regime
    normal: Evidence
    anomalous: Evidence
    score_type: ScoreType = "float64"
    separable: bool | None = field(default=None, metadata={"optional": True})
    sampling: Sampling | None = field(default=None, metadata={"optional": True})
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})
    lineage: Lineage | None = field(default=None, metadata={"optional": True})
    weighting: Weighting | None = field(default=None, metadata={"optional": True})

    _header: ClassVar[dict[str, Any]] = {"format": "pac-wrap certificate", "schema": 2}

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Each promise with what became of it, those about normal points first."""
        return self.fpr, self.fnr

    @property
    def fpr(self) -> Clause:
        """What became of the promise about normal points."""
        certified, own = None if self.certified is None else self.certified.fpr, self.normal
        found = own.n, own.digest, own.budget, self.thresholds.alarm_from, own.crossing
        return Clause(Population("normal"), self.guarantee.fpr, certified, *found)

    @property
    def fnr(self) -> Clause:
        """What became of the promise about anomalous points."""
        certified, own = None if self.certified is None else self.certified.fnr, self.anomalous
        found = own.n, own.digest, own.budget, self.thresholds.clear_below, own.crossing
        return Clause(Population("anomalous"), self.guarantee.fnr, certified, *found)

    @property
    def exclusions(self) -> Thresholds:
        """Which scores rule out a label, before they are rounded: what the prediction sets follow.

        Where one threshold decides everything it rules out one label or the other; else each class's own
        threshold rules out that class.
        """
        if self.certified is None:
            return Thresholds(alarm_from=inf, clear_below=-inf)
        if not self.rule.single:
            edges = self.thresholds.before_rounding(self.score_type)
            # the largest double stands for inf, as in the rule: no score between them tells the two apart
            clear = None if edges.clear_below is None else min(edges.clear_below, LARGEST)
            return Thresholds(edges.alarm_from, clear)
        tau, asked = self.rule.anomaly_from, self.guarantee
        clear = None if asked.fnr is None or tau == inf else tau
        return Thresholds(None if asked.fpr is None else tau, clear)

    def undecidable(self, kind: ScoreType) -> tuple[float, ...]:
        """Return the scores of a narrower type that had to be wider to be decided: a threshold is that near.

        Where the calibration score behind the threshold has no more digits than the type, none were lost.

        Parameters
        ----------
        kind : "float64", "float32" or "float16"
            The narrower type.

        Returns
        -------
        tuple of float
            Those scores, one for each threshold at most.
        """
        if not is_narrower(kind, self.score_type):
            return ()
        edges, behind = self.exclusions, self.deciding
        if self.rule.single and self.overlap.at_score(self.claim) and len(self.guarantee.promises) == 2:
            behind = (float(rounded(self.rule.anomaly_from, self.score_type)),) * 2
        found = set()
        for edge, score in zip((edges.alarm_from, edges.clear_below), behind, strict=True):
            scores = behind if self.rule.single else (score,)
            lost = any(one is not None and not represents(kind, one) for one in scores)
            if lost and edge is not None and edge < inf:
                found.add(straddled(edge, kind))
        return tuple(sorted(one for one in found if one is not None))

    @property
    def deciding(self) -> tuple[float | None, float | None]:
        """The calibration scores behind alarm_from and clear_below: eqs. (7) and (9)."""
        alarm = self.thresholds.alarm_from
        return None if alarm is None else nextafter(alarm, -inf), self.thresholds.clear_below

    @property
    def empty(self) -> bool:
        """Whether nothing useful is promised: too few labels, or no single threshold could be certified."""
        if self.regime is Regime.VACUOUS or self.certified is None:
            return True
        return len(self.certified.promises) < len(self.guarantee.promises)

    @property
    def overstated(self) -> tuple[str, ...]:
        """The classes whose points of a series are worth too few independent ones for what is promised.

        So few that the share of errors of the rule is more than their own budget allows, eq. (137), or nobody
        knows how many. More than half of their number count as all.
        """
        taken, found = self.sampling, []
        if taken is None or self.certified is None:
            return ()
        for name, effective, errors in (
            ("normal", taken.effective_normal, taken.errors_normal),
            ("anomalous", taken.effective_anomalous, taken.errors_anomalous),
        ):
            evidence: Evidence = getattr(self, name)
            budget = evidence.budget
            if budget is None or budget.errors is None:
                continue  # nothing is promised that could be wrong
            if effective is None:
                found.append(name)
            elif 2.0 * effective < evidence.n:
                fewer = Budget.of(int(effective), budget.rate, budget.delta).errors
                shown = budget.errors if errors is None else errors
                if fewer is None or fewer * evidence.n < shown * int(effective):
                    found.append(name)
        return tuple(found)

    @property
    def claim(self) -> Claim:
        """What is claimed, as its strategy sees it."""
        budgets = self.normal.budget, self.anomalous.budget
        return Claim(
            self.guarantee,
            Outcome(*budgets, self.thresholds, self.certified, self.rule, self.separable),
            (self.normal.n, self.anomalous.n),
            (self.normal.crossing, self.anomalous.crossing),
            self.score_type,
        )

    @property
    def confidence(self) -> float:
        """How surely all ceilings hold together that are promised: eq. (97), and eq. (12) where it must add.

        Where the two classes are independent samples, and no ceiling was chosen on both, their confidences
        multiply, those of ceilings that are kept as asked by their exact tails. Else the deltas add up.
        """
        return float_below(self.overlap.joint(self.claim, **self._drawn))

    @property
    def confidences(self) -> dict[str, float]:
        """How surely each ceiling holds that is promised, by the name of its rate."""
        exact = self._drawn["exact"]
        return {
            name: float_below(one) for name, one in self.overlap.confidences(self.claim, exact=exact).items()
        }

    @property
    def _drawn(self) -> dict[str, bool]:
        """Whether the classes are independent of each other, and the numbers of points of the scores."""
        counted = self.weighting is None or not self.weighting.intervals
        return {"independent": are_independent(self.assumptions), "exact": counted}

    def verdicts(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.int8]:
        """Return the verdict on each score, following the rule.

        Parameters
        ----------
        scores : array-like of float
            One score per point; infinities are scores too, and NaN is a missing one.
        on_missing : "abstain" or "stop"
            Whether points without a score are abstained on, with a `MissingScoreWarning` that counts them, or
            refused.

        Returns
        -------
        ndarray of int8
            1 (anomaly), 0 (normal) or -1 (abstain) for each score.
        """
        return self.rule.verdicts(scores, on_missing)

    def prediction_sets(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.bool_]:
        """Return which labels each score leaves possible: eq. (11).

        Parameters
        ----------
        scores : array-like of float
            One score per point; NaN is a missing one.
        on_missing : "abstain" or "stop"
            Whether points without a score keep both labels, with a `MissingScoreWarning`, or are refused.

        Returns
        -------
        ndarray of bool, shape (n, 2)
            Is label 0, is label 1 still possible?
        """
        return self.exclusions.prediction_sets(scores, on_missing)

    def ambiguity(self, scores: ArrayLike) -> float:
        """Return the share of scores that the rule abstains on: eq. (14).

        Parameters
        ----------
        scores : array-like of float
            One score per point, and one point at least; a missing one is abstained on.

        Returns
        -------
        float
            The share, from 0 to 1.
        """
        return self.rule.ambiguity(scores)

    @property
    def checksum(self) -> str:
        """A digest of all it says, whatever is known of its provenance: what monitors and successors name."""
        return checksum_of(self.bare.to_json())

    def _problems(self) -> Iterator[str]:
        return inconsistencies(self)


def no_certificate(
    given: object, wanted: str = "certificate must be a Certificate", **remedies: str
) -> InputError:
    """Return the refusal of what is no certificate of two classes, with the remedy for its type."""
    name = type(given).__name__
    return InputError(f"{wanted}, got {name}; {remedies.get(name, 'load a file with Certificate.load')}")
