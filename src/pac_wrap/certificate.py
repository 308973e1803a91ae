"""The certificate: what was asked, found and assumed, the rule it carries, and its JSON file."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.binomial import confidence, error_budget
from pac_wrap.codec import decode, encode
from pac_wrap.errors import CertificateError
from pac_wrap.files import write_whole
from pac_wrap.guarantee import Budget, Guarantee, confidence_left, rounded_down, rounded_up
from pac_wrap.relaxation import Strategy, feasible_levels, survives
from pac_wrap.sampling import Sampling
from pac_wrap.thresholds import Regime, Thresholds, find_regime
from pac_wrap.version import __version__

_HEADER: Final = {"format": "pac-wrap certificate", "schema": 1}

ASSUMPTIONS: Final = (
    "within each class, calibration points and future points are independent draws from one distribution",
    "the detector was trained without the calibration points and stays the same",
    "the distribution of each class does not shift",
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the calibration points of one class contributed.

    `crossing` counts the points beyond the other class's threshold; the classes are separated exactly if it
    is within the budget: eq. (13).
    """

    n: int
    digest: str
    budget: Budget | None
    crossing: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Thresholds with the promise they keep; made by `calibrate`, never by hand.

    `guarantee` is what was asked, `certified` what is promised (None: no single threshold could be
    certified, and everything is abstained). `thresholds`, `regime` and evidence belong to what is promised.
    """

    guarantee: Guarantee
    certified: Guarantee | None
    thresholds: Thresholds
    regime: Regime
    normal: Evidence
    anomalous: Evidence
    strategy: Strategy | None = None
    tau: float | None = None
    levels: int | None = None
    level: int | None = None
    sampling: Sampling | None = field(default=None, metadata={"optional": True})
    assumptions: tuple[str, ...] = ASSUMPTIONS
    version: str = __version__

    @property
    def rule(self) -> Thresholds:
        """What `verdicts` follows: the two thresholds, or twice the same where abstaining is not allowed."""
        if self.strategy is None:
            return self.thresholds
        if self.tau is None:
            return Thresholds(alarm_from=inf, clear_below=-inf)
        return Thresholds(alarm_from=self.tau, clear_below=None if self.tau == inf else self.tau)

    @property
    def empty(self) -> bool:
        """Whether nothing useful is promised: too few labels, or no single threshold could be certified."""
        if self.regime is Regime.VACUOUS or self.certified is None:
            return True
        asked, kept = self.guarantee, self.certified
        return (asked.max_fpr, asked.max_fnr).count(None) < (kept.max_fpr, kept.max_fnr).count(None)

    def verdicts(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 1 (anomaly), 0 (normal) or -1 (abstain) for each score, following the rule."""
        return self.rule.verdicts(scores)

    def prediction_sets(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Return an (n, 2) array: is label 0, is label 1 still possible?"""
        return self.rule.prediction_sets(scores)

    def ambiguity(self, scores: ArrayLike) -> float:
        """Return the share of scores that the rule abstains on."""
        return self.rule.ambiguity(scores)

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return encode(self, _HEADER)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Certificate":
        """Return the certificate in a JSON text, after checking that it is whole and consistent."""
        certificate = decode(cls, text, _HEADER)
        for problem in _inconsistencies(certificate):
            raise CertificateError(f"the certificate contradicts itself: {problem}; calibrate again")
        return certificate

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as a JSON file that appears whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Certificate":
        """Read a certificate; loading never runs code."""
        return cls.from_json(Path(path).read_bytes())

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that say why the thresholds lie as they do, and which labels are missing."""
        sentences = []
        asked = (self.guarantee.max_fpr, self.guarantee.max_fnr)
        for (name, rate, evidence), ceiling in zip(self._sides(), asked, strict=True):
            budget = evidence.budget
            if budget is not None and budget.errors is None:
                needed = evidence.n + budget.missing
                sentences.append(
                    f"{evidence.n:,} {name} scores cannot certify {rate} <= {rounded_up(budget.rate)} at"
                    f" delta = {rounded_up(budget.delta)}; at least {needed:,} are needed"
                )
            elif budget is None and ceiling is not None:
                sentences.append(f"{evidence.n:,} {name} scores certify no {rate} below 1 at this threshold")
        for (name, _, evidence), threshold, beyond in zip(
            self._sides(), ("clear_below", "alarm_from"), ("at or above", "below"), strict=True
        ):
            if self.regime is not Regime.VACUOUS and evidence.crossing is not None and evidence.budget:
                sentences.append(
                    f"{evidence.crossing:,} of {evidence.n:,} {name} scores lie {beyond} {threshold};"
                    f" the budget is {evidence.budget.errors:,}"
                )
        return tuple(sentences)

    def _sides(self) -> tuple[tuple[str, str, Evidence], ...]:
        return ("normal", "FPR", self.normal), ("anomalous", "FNR", self.anomalous)

    def lines(self) -> list[tuple[str, str]]:
        """Return what the certificate says, as pairs of a heading and a text; a heading may be empty."""
        lines = [("asked", str(self.guarantee)), ("promised", _promise(self)), ("rule", _rule(self))]
        lines += [("regime", f"{self.regime.value}: {self.regime.explanation}")]
        lines += [("", sentence) for sentence in self.diagnosis]
        lines += [(name, _evidence(one, self.levels is not None)) for name, _, one in self._sides()]
        if self.sampling is not None:
            lines += [("series", str(self.sampling)), ("", self.sampling.worth)]
        if self.strategy is not None:
            lines += [("strategy", _strategy(self.strategy, self.levels, self.level))]
        return lines + [("" if i else "assumes", text) for i, text in enumerate(self.assumptions)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self.lines())


def _promise(certificate: Certificate) -> str:
    certified = certificate.certified
    if certified is None:
        return "nothing: no single threshold can be certified at any level tried; every point is abstained"
    joint = f"; jointly {rounded_down(confidence_left(certified.delta_fpr, certified.delta_fnr))}"
    return f"{certified}{joint if None not in (certified.max_fpr, certified.max_fnr) else ''}"


def _rule(certificate: Certificate) -> str:
    rule = certificate.rule
    if rule.single:
        tau = rule.clear_below if rule.alarm_from is None else rule.alarm_from
        return "never an alarm" if tau == inf else f"anomaly from {tau!r} on, normal below"
    low, high = rule.ambiguity_region or (0.0, 0.0)
    alarm = "never an alarm" if rule.alarm_from == inf else f"anomaly from {high!r} on"
    clear = "never cleared" if low == -inf else f"normal below {low!r}"
    return f"{clear}, {alarm}, abstain between"


def _evidence(evidence: Evidence, chosen: bool) -> str:
    text = f"{evidence.n:,} scores"
    if evidence.budget is None:
        return f"{text}, nothing promised"
    if evidence.budget.errors is None:
        return f"{text}, too few for any error budget"
    of = "confidence of this level alone" if chosen else "exact confidence"
    return f"{text}, error budget {evidence.budget.errors:,}, {of} {rounded_down(evidence.budget.confidence)}"


def _strategy(strategy: Strategy, levels: int | None, level: int | None) -> str:
    if levels is None:
        held = "FNR" if strategy.name == "hold_fnr" else "FPR"
        return f"{strategy.name}: the {held} ceiling is kept, the other rate certified from counted errors"
    reached = "none reached" if level is None else f"level {level + 1} reached"
    text = f"relax: {reached} of {levels} fixed beforehand; "
    if strategy.correction is None:
        return text + "delta is not corrected for the choice of level, so the confidence is not guaranteed"
    if strategy.relax_delta:
        return text + "the delta of the last one, divided by their number, survives the choice"
    return text + "delta shared equally among them, so the confidence survives the choice"


def _expected_promise(certificate: Certificate) -> tuple[Guarantee | None, int | None]:
    """Return the promise that follows from what was asked and the counts, and the number of levels."""
    asked, strategy = certificate.guarantee, certificate.strategy
    if strategy is None:
        return asked, None
    if strategy.name == "relax":
        levels = feasible_levels(strategy, asked, certificate.normal.n, certificate.anomalous.n)
        level = certificate.level
        if level is None or not 0 <= level < len(levels):
            return None, len(levels)
        return survives(strategy, levels, level), len(levels)
    if strategy.name == "hold_fnr":
        budget = certificate.normal.budget
        return replace(asked, max_fpr=None if budget is None else budget.rate), None
    budget = certificate.anomalous.budget
    return replace(asked, max_fnr=None if budget is None else budget.rate), None


def _inconsistencies(certificate: Certificate) -> Iterator[str]:
    if (sampling := certificate.sampling) is not None:
        effective = (sampling.effective_normal, sampling.effective_anomalous)
        for (name, _, evidence), size in zip(certificate._sides(), effective, strict=True):
            if size is not None and size > evidence.n:
                yield f"{evidence.n:,} {name} scores cannot be worth {size:,.0f}"
    if (certificate.certified, certificate.levels) != _expected_promise(certificate):
        yield "what is certified does not follow from what was asked"
    budgets = (certificate.normal.budget, certificate.anomalous.budget)
    for name, rate, evidence in certificate._sides():
        if (budget := evidence.budget) is None:
            continue
        if budget.n != evidence.n:
            yield f"the {rate} budget is for {budget.n:,} {name} scores, not {evidence.n:,}"
        elif budget.errors != (errors := error_budget(budget.n, budget.rate, budget.delta)):
            yield f"the {rate} budget is {errors}, not {budget.errors}"
        elif abs(confidence(budget.n, budget.rate, budget.errors) - budget.confidence) > 1e-9:
            yield f"the exact confidence of the {rate} is not {budget.confidence}"
    if certificate.regime is not (regime := find_regime(certificate.thresholds, *budgets)):
        yield f"the regime is {regime.value}, not {certificate.regime.value}"
    low, high = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    tau = certificate.tau
    if tau is not None and not (-inf if low is None else low) <= tau <= (inf if high is None else high):
        yield f"tau = {tau!r} does not lie between alarm_from and clear_below"
    certified = certificate.certified
    ceilings = (None, None) if certified is None else (certified.max_fpr, certified.max_fnr)
    for (name, rate, evidence), ceiling, threshold in zip(
        certificate._sides(), ceilings, (low, high), strict=True
    ):
        budget, crossing = evidence.budget, evidence.crossing
        if certified is not None and ceiling != (budget and budget.rate):
            yield f"the {rate} is certified at {ceiling}, but its budget is for {budget and budget.rate}"
        if (threshold is None) != (budget is None) and tau is None:
            yield f"the {rate} has a budget or a threshold, but not both"
        if crossing is not None and not 0 <= crossing <= evidence.n:
            yield f"{crossing:,} of {evidence.n:,} {name} scores cannot cross"
        beyond = crossing is not None and budget is not None and crossing > (budget.errors or 0)
        if certificate.regime is Regime.SEPARATED and beyond:
            yield f"{crossing:,} crossing {name} scores are beyond the budget"
