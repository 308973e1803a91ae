"""A certificate whose ceilings hold for every kind: the rule of those that bind, and all evidence."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import OnMissing, check_rate
from pac_wrap.base.codec import SavedAsJSON
from pac_wrap.base.floats import ScoreType, float_below, kept_together
from pac_wrap.base.text import quoted
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.kinds.consistency import MOST_KINDS as MOST_KINDS
from pac_wrap.method.kinds.consistency import kind_problems
from pac_wrap.method.kinds.part import Measured, Part, confidence_of_kinds, farthest, kept
from pac_wrap.method.metrics import Tally, tally
from pac_wrap.method.promise import Error, Population, Promise, check_kind
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.thresholds import Regime, Thresholds

FORMAT: Final = "pac-wrap certificate of kinds"
Label = Literal["normal", "anomalous"]
Kinds = Mapping[str, ArrayLike]


@dataclass(frozen=True, slots=True)
class KindCertificate(SavedAsJSON):
    """A rule whose ceilings hold for every kind of points; made by `calibrate` from scores by kind.

    Each kind has its own threshold, from its own points. The rule is that of the two kinds that bind: the
    normal one with the greatest, the anomalous one with the least: eq. (60). Any mixture of kinds then keeps
    the largest of their ceilings: eq. (61).

    Parameters
    ----------
    normal, anomalous : tuple of Part
        The kinds of each class; a part without a name is all points of the class as they come.
    binding : Certificate
        The certificate of the two kinds that bind, by themselves; it has the rule.

    Examples
    --------
    >>> from pac_wrap import Guarantee, calibrate
    >>> asked = Guarantee(max_fpr=0.05, max_fnr={"stolen": 0.02, "takeover": 0.1})
    >>> kinds = calibrate(range(1000), {"stolen": range(950, 1950), "takeover": range(900, 1900)}, asked)
    >>> kinds.thresholds.clear_below, kinds.binds[1].name
    (962.0, 'stolen')
    >>> kinds.verdicts([0, 962, 1500])
    array([0, 1, 1], dtype=int8)
    """

    normal: tuple[Part, ...]
    anomalous: tuple[Part, ...]
    binding: Certificate

    _header: ClassVar[dict[str, Any]] = {"format": FORMAT, "schema": 1}

    @property
    def rule(self) -> Rule:
        """What `verdicts` follows."""
        return self.binding.rule

    @property
    def thresholds(self) -> Thresholds:
        """The greatest `alarm_from` and the least `clear_below` of all kinds: eq. (60)."""
        return self.binding.thresholds

    @property
    def regime(self) -> Regime:
        """How the two thresholds lie."""
        return self.binding.regime

    @property
    def score_type(self) -> ScoreType:
        """The type of the calibrating scores."""
        return self.binding.score_type

    @property
    def empty(self) -> bool:
        """Whether some kind has too few labels for what was asked, or nothing useful could be certified."""
        parts = (*self.normal, *self.anomalous)
        lost = any(part.vacuous or (part.ceiling is None) != (part.asked is None) for part in parts)
        return lost or self.binding.empty

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What is promised, of every part that has labels enough for it."""

        def of(label: Label, error: Error, parts: tuple[Part, ...]) -> Iterator[Promise]:
            for part in kept(parts):
                assert part.ceiling is not None  # it is kept
                yield Promise(Population(label, part.name), error, part.ceiling, part.delta)

        return (
            *of("normal", Error.FALSE_ALARM, self.normal),
            *of("anomalous", Error.MISS, self.anomalous),
        )

    @property
    def confidence(self) -> float:
        """How surely all ceilings hold together: eqs. (99) and (100), and the two classes multiply."""
        sides: tuple[tuple[Label, tuple[Part, ...]], ...]
        sides = ("normal", self.normal), ("anomalous", self.anomalous)
        sure = [confidence_of_kinds(parts, counted=self.counted(label)) for label, parts in sides]
        return float_below(kept_together(*sure))

    @property
    def binds(self) -> tuple[Part | None, Part | None]:
        """The normal and the anomalous part that the rule comes from; None where nothing is promised."""
        return self._binding("normal", self.normal, inf), self._binding("anomalous", self.anomalous, -inf)

    def _binding(self, label: Label, parts: tuple[Part, ...], never: float) -> Part | None:
        promised = [part for part in parts if part.asked is not None]
        if not promised:
            return None
        if self.counted(label):
            return max(promised, key=lambda part: inf if part.ceiling is None else part.ceiling)
        return farthest(iter(promised), never)

    def counted(self, label: Label) -> bool:
        """Return whether the ceilings of a class are bounds of counted errors: the other class is held.

        Parameters
        ----------
        label : "normal" or "anomalous"
            The class.

        Returns
        -------
        bool
            False where its ceilings are those that were asked for.
        """
        held = self.binding.overlap
        return isinstance(held, Hold) and (held.rate == "fnr") == (label == "normal")

    def verdicts(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.int8]:
        """Return the verdict on each score, following the rule.

        Parameters
        ----------
        scores : array-like of float
            One score per point, of whatever kind; NaN is a missing one.
        on_missing : "abstain" or "stop"
            Whether points without a score are abstained on, with a `MissingScoreWarning`, or refused.

        Returns
        -------
        ndarray of int8
            1 (anomaly), 0 (normal) or -1 (abstain) for each score.
        """
        return self.rule.verdicts(scores, on_missing)

    def evaluate(
        self, normal: "ArrayLike | Kinds", anomalous: "ArrayLike | Kinds", *, confidence: float = 0.95
    ) -> tuple[Measured, ...]:
        """Return how the points of each kind did that were not used to calibrate.

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

        def tallies(given: "ArrayLike | Kinds", anomalous: bool) -> dict[str | None, Tally]:
            kinds: dict[str | None, ArrayLike] = {None: given}  # type: ignore[dict-item]  # or a mapping
            if isinstance(given, Mapping):
                kinds = {check_kind(kind): scores for kind, scores in given.items()}
            verdicts = {kind: self.verdicts(scores) for kind, scores in kinds.items()}
            return {
                kind: tally(one, np.full(one.size, anomalous))[int(anomalous)]
                for kind, one in verdicts.items()
            }

        return self.measured(
            tallies(normal, False), tallies(anomalous, True), check_rate("confidence", confidence)
        )

    def measured(
        self,
        normal: Mapping[str | None, Tally],
        anomalous: Mapping[str | None, Tally],
        confidence: float = 0.95,
    ) -> tuple[Measured, ...]:
        """Return what counts of the verdicts 0, 1 and -1 on each kind amount to; None is a whole class.

        Parameters
        ----------
        normal, anomalous : mapping of kinds to counts
            How often each verdict fell on the points of a kind.
        confidence : float
            How surely each interval holds its rate.

        Returns
        -------
        tuple of Measured
            Errors and abstentions of each kind, and of each class.
        """

        def of(
            label: str, wrong: int, parts: tuple[Part, ...], counts: Mapping[str | None, Tally]
        ) -> Iterator[tuple[str, float | None, tuple[int, int, int]]]:
            ceilings = {part.name: None if part.vacuous else part.ceiling for part in parts}
            whole = sum(counts.values(), np.zeros(3, dtype=np.int64))
            for kind, found in (dict(counts) | {None: whole}).items():
                name = f"{label} {'points' if kind is None else quoted(kind)}"
                errors, left, n = int(found[wrong]), int(found[2]), int(found.sum())
                yield name, ceilings.get(kind), (errors, left, n)

        counted = *of("normal", 1, self.normal, normal), *of("anomalous", 0, self.anomalous, anomalous)
        return Measured.together(counted, confidence)

    def report(
        self,
        path: str | os.PathLike[str],
        normal: "ArrayLike | Kinds | None" = None,
        anomalous: "ArrayLike | Kinds | None" = None,
        *,
        detector: str | None = None,
    ) -> None:
        """Write a report: one HTML page that can be passed on, or Markdown or JSON, by the name of the file.

        Parameters
        ----------
        path : str or path
            The file: .html, .md or .json.
        normal, anomalous : array-like of float, or mapping of kinds to such, optional
            The calibration scores of each class, which a certificate does not keep; with them the page shows
            each kind.
        detector : str, optional
            What the detector is called.

        Raises
        ------
        InputError
            If the scores are not those the certificate was made from, or the format is unknown.
        """
        from pac_wrap.report.render import write

        write(self, path, normal, anomalous, detector=detector)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from pac_wrap.report.render import notebook

        return notebook(self)

    def with_provenance(self, **facts: Any) -> Self:
        """Return the same with more known of where it comes from.

        Parameters
        ----------
        facts : object
            The fields of `Provenance` that are to be set.

        Returns
        -------
        KindCertificate
            What promises the same.
        """
        return replace(self, binding=self.binding.with_provenance(**facts))

    def _problems(self) -> Iterator[str]:
        return kind_problems(self)

    def __str__(self) -> str:
        from pac_wrap.report.render import short

        return short(self)
