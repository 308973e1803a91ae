"""The certificate: what was asked, found and assumed, the rule it carries, and its JSON file."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import OnMissing, check_rate
from pac_wrap.base.codec import SavedAsJSON, checksum_of
from pac_wrap.base.floats import (
    ScoreType,
    float_below,
    is_narrower,
    kept_together,
    represents,
    rounded,
    straddled,
)
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.alarms.precision import AlarmBounds, Prevalence
from pac_wrap.method.certificates.consistency import inconsistencies
from pac_wrap.method.certificates.lineage import Lineage
from pac_wrap.method.certificates.provenance import Provenance, Traced
from pac_wrap.method.clause import Clause, Written, asked_by, binding, confidence_of_kinds, points_of
from pac_wrap.method.metrics import Measured, Metrics, Tally, measured_kinds, tally
from pac_wrap.method.promise import (
    LABELS,
    OF_DRAWS,
    Assumption,
    Guarantee,
    Label,
    Population,
    Promise,
    are_independent,
    check_kind,
)
from pac_wrap.method.robust.shift_and_noise import Robust
from pac_wrap.method.robust.weights import Weighting, Weights
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import Sampling
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.method.strategies.given import Given
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.interface import Claim, Outcome
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.method.strategies.raising import Raise
from pac_wrap.method.thresholds import LARGEST, Regime, Thresholds, find_regime
from pac_wrap.tails.bounds import Budget
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pac_wrap.method.verify import Verification

# every strategy that a certificate can have been made with
Overlap = Abstain | Raise | Hold | Algorithm1 | Looks | Given
# the scores of each kind of a class
Kinds = Mapping[str, ArrayLike]


_OPTIONAL: Final = {"optional": True}


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """What stands in the file of a certificate: what was asked, counted and decides.

    Parameters
    ----------
    overlap : object
        What was done where the classes overlap.
    score_type : str
        The type of the calibrating scores.
    rule : object
        What verdicts follow.
    clauses : array
        Each promise with what became of it, those about normal points first.
    separable : bool, optional
        Where ceilings were raised: whether one threshold would have kept those that were asked for.
    sampling, weighting, lineage, provenance : object, optional
        How the points were taken, which certificates came before, and where the scores came from.
    assumptions : array
        What the promise assumes.
    version : str
        The version of the package that made it.
    """

    overlap: Overlap
    score_type: ScoreType
    rule: Rule
    clauses: tuple[Written, ...]
    separable: bool | None = field(metadata=_OPTIONAL)
    sampling: Sampling | None = field(metadata=_OPTIONAL)
    weighting: Weighting | None = field(metadata=_OPTIONAL)
    lineage: Lineage | None = field(metadata=_OPTIONAL)
    assumptions: tuple[Assumption, ...]
    version: str
    provenance: Provenance | None = field(metadata=_OPTIONAL)


# what a file has as the certificate has it
_KEPT: Final = tuple(one.name for one in fields(CertificateFile) if one.name != "clauses")


@dataclass(frozen=True, slots=True)
class Certificate(AlarmBounds, Robust, Traced, SavedAsJSON):
    """A rule with the promises that it keeps, and what both rest on; made by `calibrate`, never by hand.

    Parameters
    ----------
    guarantee : Guarantee
        What was asked for.
    overlap : Strategy
        What was done where the classes overlap.
    clauses : tuple of Clause
        Each promise with what became of it, those about normal points first: one for each class, or for each
        kind of it. The rule is that of the two that bind, `fpr` and `fnr`: the normal one with the greatest
        threshold, the anomalous one with the least, eq. (60).
    rule : Rule
        What `verdicts` follows, for scores that have not been rounded to `score_type` yet, and others too.
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
    >>> certificate.fpr.ceiling, certificate.fpr.budget.errors
    (0.05, 38)
    """

    # what the clauses ask for, together
    guarantee: Guarantee = field(compare=False)
    overlap: Overlap
    clauses: tuple[Clause, ...]
    rule: Rule
    score_type: ScoreType = "float64"
    separable: bool | None = None
    sampling: Sampling | None = None
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False)
    lineage: Lineage | None = None
    weighting: Weighting | None = None

    _header: ClassVar[dict[str, Any]] = {"format": "pac-wrap certificate", "schema": 3}
    form: ClassVar[type] = CertificateFile

    @property
    def fpr(self) -> Clause:
        """The clause about normal points that binds: the only one, unless the class has kinds."""
        return self._binding("normal")

    @property
    def fnr(self) -> Clause:
        """The clause about anomalous points that binds: the only one, unless the class has kinds."""
        return self._binding("anomalous")

    def _binding(self, label: Label) -> Clause:
        if len(self.clauses) == 2:
            return self.clauses[label == "anomalous"]
        return binding(self.of(label), counted=self.counted(label))

    def clause(self, label: Label, kind: str | None = None) -> Clause:
        """Return what became of the promise about a class, or about a kind of it.

        Parameters
        ----------
        label : "normal" or "anomalous"
            The class.
        kind : str, optional
            The kind; None is all points of the class.

        Returns
        -------
        Clause

        Raises
        ------
        InputError
            If there is no such clause.
        """
        for one in self.clauses:
            if (one.of.label, one.of.kind) == (label, kind):
                return one
        raise InputError(
            f"there is no clause about {Population(label, kind)}; certificate.clauses lists those there are"
        )

    def of(self, label: Label) -> list[Clause]:
        """Return the clauses about a class.

        Parameters
        ----------
        label : "normal" or "anomalous"
            The class.

        Returns
        -------
        list of Clause
            One, or one for each kind and perhaps one for all of them.
        """
        return [one for one in self.clauses if one.of.label == label]

    @property
    def by_kind(self) -> bool:
        """Whether something is said of the kinds of a class."""
        return any(one.of.kind is not None for one in self.clauses)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many normal and how many anomalous points calibrated, of whatever kind."""
        return points_of(self.of("normal")), points_of(self.of("anomalous"))

    def counted(self, label: Label) -> bool:
        """Return whether the ceilings of a class are bounds of counted errors, since the other is held.

        Parameters
        ----------
        label : "normal" or "anomalous"
            The class.

        Returns
        -------
        bool
        """
        held = self.overlap
        return isinstance(held, Hold) and (held.rate == "fnr") == (label == "normal")

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What is promised, of all points that have labels enough for it."""
        return tuple(one.certified for one in self.clauses if one.certified is not None and not one.vacuous)

    @property
    def uncertified(self) -> bool:
        """Whether no threshold could be certified at all, so that every point is abstained on."""
        return all(one.certified is None for one in self.clauses)

    @property
    def thresholds(self) -> Thresholds:
        """The threshold of each class by itself: `alarm_from` and `clear_below` of the clauses that bind."""
        return Thresholds(self.fpr.threshold, self.fnr.threshold)

    @property
    def regime(self) -> Regime:
        """How the two thresholds lie."""
        fpr, fnr = self.fpr, self.fnr
        return find_regime(Thresholds(fpr.threshold, fnr.threshold), fpr.budget, fnr.budget)

    @property
    def exclusions(self) -> Thresholds:
        """Which scores rule out a label, before they are rounded: what the prediction sets follow.

        Where one threshold decides everything it rules out one label or the other; else each class's own
        threshold rules out that class.
        """
        if self.uncertified:
            return Thresholds(alarm_from=inf, clear_below=-inf)
        if not self.rule.single:
            edges = self.thresholds.before_rounding(self.score_type)
            # the largest double stands for inf, as in the rule: no score between them tells the two apart
            clear = None if edges.clear_below is None else min(edges.clear_below, LARGEST)
            return Thresholds(edges.alarm_from, clear)
        tau = self.rule.anomaly_from
        clear = None if self.fnr.asked is None or tau == inf else tau
        return Thresholds(None if self.fpr.asked is None else tau, clear)

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
        if self.rule.single and self.overlap.at_score(claim := self.claim) and len(claim.asked.promises) == 2:
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
        return any(one.lacking for one in self.clauses)

    @property
    def overstated(self) -> tuple[str, ...]:
        """The classes whose points of a series are worth too few independent ones for what is promised.

        So few that the share of errors of the rule is more than their own budget allows, eq. (137), or nobody
        knows how many. More than half of their number count as all.
        """
        taken, found = self.sampling, []
        if taken is None or self.uncertified:
            return ()
        for name, clause, effective, errors in (
            ("normal", self.fpr, taken.effective_normal, taken.errors_normal),
            ("anomalous", self.fnr, taken.effective_anomalous, taken.errors_anomalous),
        ):
            budget = clause.budget
            if budget is None or budget.errors is None:
                continue  # nothing is promised that could be wrong
            if effective is None:
                found.append(name)
            elif 2.0 * effective < clause.n:
                fewer = Budget.of(int(effective), budget.rate, budget.delta).errors
                shown = budget.errors if errors is None else errors
                if fewer is None or fewer * clause.n < shown * int(effective):
                    found.append(name)
        return tuple(found)

    @property
    def claim(self) -> Claim:
        """What is claimed of the two classes, or of the two kinds that bind, as the strategy sees it."""
        fpr, fnr = self.fpr, self.fnr
        asked, certified = self.guarantee, self.guarantee.with_promises(fpr.certified, fnr.certified)
        if self.by_kind:
            asked = asked.with_promises(fpr.asked, fnr.asked) or asked
        found = Outcome(fpr.budget, fnr.budget, self.thresholds, certified, self.rule, self.separable)
        return Claim(asked, found, (fpr.n, fnr.n), (fpr.beyond, fnr.beyond))

    @property
    def confidence(self) -> float:
        """How surely all ceilings hold together that are promised: eq. (97), and eq. (12) where it must add.

        Where the two classes are independent samples, and no ceiling was chosen on both, their confidences
        multiply, those of ceilings that are kept as asked by their exact tails. Else the deltas add up. Of
        the kinds of a class see eqs. (99) and (100).
        """
        if self.by_kind:
            sides = (confidence_of_kinds(self.of(one), counted=self.counted(one)) for one in LABELS)
            return float_below(kept_together(*sides))
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

    def evaluate(
        self, normal: ArrayLike | Kinds, anomalous: ArrayLike | Kinds, *, confidence: float = 0.95
    ) -> tuple[Measured, ...]:
        """Return how the points of each class and kind did that were not used to calibrate.

        Parameters
        ----------
        normal, anomalous : array-like of float, or mapping of kinds to such
            The scores of each class. A kind that was not there at calibration is measured too; nothing is
            promised of it.
        confidence : float
            How surely each interval holds its rate.

        Returns
        -------
        tuple of Measured
            Errors and abstentions of each kind, and of each class.
        """
        counts: dict[Label, dict[str | None, Tally]] = {}
        for label, given in zip(LABELS, (normal, anomalous), strict=True):
            kinds: dict[str | None, Any] = {None: given}
            if isinstance(given, Mapping):
                kinds = {check_kind(kind): scores for kind, scores in given.items()}
            wrong = label == "anomalous"
            verdicts = {kind: self.verdicts(scores) for kind, scores in kinds.items()}
            counts[label] = {
                kind: tally(one, np.full(one.size, wrong))[int(wrong)] for kind, one in verdicts.items()
            }
        return measured_kinds(self.clauses, counts, check_rate("confidence", confidence))

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

    def verify(
        self,
        normal: ArrayLike | Kinds,
        anomalous: ArrayLike | Kinds,
        *,
        normal_weights: Weights | None = None,
        anomalous_weights: Weights | None = None,
    ) -> "Verification":
        """Recompute it from the scores it was made of, and say where the two differ.

        This shows that the scores, in any order unless they have weights, give the certificate. It does not
        show that the detector gave these scores, that the labels are right, or that nobody chose the rows.

        Parameters
        ----------
        normal, anomalous : array-like of float, or mapping of kinds to such
            The calibration scores of each class, by kind for a certificate of kinds. Those of a wider type
            than the certificate's are rounded to it first: a float32 that was written as 0.3 comes back as a
            double.
        normal_weights, anomalous_weights : array-like of float, or pair of such, optional
            The weights that `calibrate` was given, if any, in the order of the scores.

        Returns
        -------
        Verification
            True if nothing differs; printed, it says what does.

        Raises
        ------
        InputError
            If scores are not numbers, or weights are missing.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> certificate = calibrate([0.1, 0.2], [0.8, 0.9])
        >>> bool(certificate.verify([0.2, 0.1], [0.8, 0.9]))
        True
        >>> print(certificate.verify([0.1, 0.3], [0.8, 0.9]))  # doctest: +ELLIPSIS
        not verified: normal.digest is '4bf0b9951e6a64ba' in the certificate, '6564847ef7e48ce1' from ...
        """

        from pac_wrap.method.verify import verify

        return verify(self, normal, anomalous, (normal_weights, anomalous_weights))

    @property
    def checksum(self) -> str:
        """A digest of all it says, whatever is known of its provenance: what monitors and successors name."""
        return checksum_of(self.bare.to_json())

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that say why the thresholds lie as they do, and which labels are missing."""
        from pac_wrap.report.sentences import diagnosis_of

        return diagnosis_of(self)

    @property
    def shortfall(self) -> str | None:
        """What was asked for and is not promised, and what it would take; None if all of it is promised."""
        from pac_wrap.report.sentences import shortfall_of

        return shortfall_of(self)

    def report(
        self,
        path: str | os.PathLike[str],
        normal: ArrayLike | Kinds | None = None,
        anomalous: ArrayLike | Kinds | None = None,
        *,
        prevalence: Prevalence | None = None,
        metrics: Metrics | None = None,
        detector: str | None = None,
    ) -> None:
        """Write a report: one HTML page that can be passed on, Markdown, JSON or a picture, by its name.

        Parameters
        ----------
        path : str or path
            The file: .html, .md or .json; .svg or .png with the scores.
        normal, anomalous : array-like of float, or mapping of kinds to such, optional
            The calibration scores of each class, which a certificate does not keep. With them the page shows
            both classes, and lets its reader choose another certified threshold.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default that of the calibration points.
        metrics : Metrics, optional
            Rates measured on points that were not used to calibrate; made by `evaluate`.
        detector : str, optional
            What the detector is called.

        Raises
        ------
        InputError
            If the scores are not those the certificate was made from, or the format is unknown.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> normal, anomalous = range(1000), range(900, 1900)
        >>> calibrate(normal, anomalous).report("report.pdf", normal, anomalous)
        Traceback (most recent call last):
        ...
        pac_wrap.errors.InputError: a report is written as .html, .md or .json, or drawn as .svg or .png, \
got 'report.pdf'; print the HTML file to get a PDF
        """
        from pac_wrap.report.render import write

        known: Any = {"metrics": metrics, "detector": detector, "prevalence": prevalence}
        write(self, path, normal, anomalous, **known)

    def plot(self, normal: ArrayLike, anomalous: ArrayLike, ax: "Axes | None" = None) -> "Axes":
        """Draw the scores of both classes with the thresholds; needs matplotlib.

        Parameters
        ----------
        normal, anomalous : array-like of float
            Scores of labelled points of each class.
        ax : Axes, optional
            Where to draw; by default a new figure, which a notebook shows.

        Returns
        -------
        Axes
            What was drawn on.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(1000), range(900, 1900)).plot(range(1000), range(900, 1900)).get_ylabel()
        'share of class (%)'
        """
        from pac_wrap.report.figures.scores import plot_scores

        return plot_scores(self, normal, anomalous, ax=ax)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from pac_wrap.report.render import notebook

        return notebook(self)

    def __str__(self) -> str:
        from pac_wrap.report.render import short

        return short(self)

    def to_form(self) -> CertificateFile:
        """Return what stands in its file."""
        deltas = {"normal": self.guarantee.delta_fpr, "anomalous": self.guarantee.delta_fnr}
        clauses = tuple(one.to_form(deltas[one.of.label]) for one in self.clauses)
        return CertificateFile(clauses=clauses, **{name: getattr(self, name) for name in _KEPT})

    @classmethod
    def from_form(cls, found: CertificateFile) -> Self:
        """Return the certificate of a file."""
        labels = [one.of for one in found.clauses]
        if set(labels) != set(LABELS) or labels != sorted(labels, reverse=True):
            raise CertificateError("a certificate has clauses about normal points, then about anomalous ones")
        clauses = tuple(one.clause() for one in found.clauses)
        asked = asked_by(clauses, (found.clauses[0].delta, found.clauses[-1].delta))
        return cls(guarantee=asked, clauses=clauses, **{name: getattr(found, name) for name in _KEPT})

    def _problems(self) -> Iterator[str]:
        return inconsistencies(self)


def no_certificate(
    given: object, wanted: str = "certificate must be a Certificate", **remedies: str
) -> InputError:
    """Return the refusal of what is no certificate of two classes, with the remedy for its type."""
    name = type(given).__name__
    return InputError(f"{wanted}, got {name}; {remedies.get(name, 'load a file with Certificate.load')}")
