"""The certificate: what was asked, found and assumed, the rule it carries, and its JSON file."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.assumptions import OF_DRAWS, OF_SERIES, Assumption
from pac_wrap.codec import MOST_BYTES, decode, encode
from pac_wrap.consistency import Claim, contradictions
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.files import write_whole
from pac_wrap.foreign import quoted
from pac_wrap.guarantee import Budget, Guarantee, confidence_left, rounded_down, rounded_up
from pac_wrap.precision import ScoreType, is_narrower, represents, straddled
from pac_wrap.relaxation import LARGEST, Outcome, Strategy
from pac_wrap.sampling import Sampling
from pac_wrap.thresholds import Regime, Thresholds, find_regime
from pac_wrap.version import __version__

_HEADER: Final = {"format": "pac-wrap certificate", "schema": 1}

_NO_SCORES: Final = "0" * 16
# as Python's packages are numbered, and no longer than they are
_VERSION: Final = r"[0-9]{1,4}([.][0-9]{1,4}){0,3}((a|b|rc)[0-9]{1,4})?([.](post|dev)[0-9]{1,8}){0,2}"


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
    `score_type` is the type of the calibrating scores, to which every score is rounded before it is compared.
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
    score_type: ScoreType = "float64"
    sampling: Sampling | None = field(default=None, metadata={"optional": True})
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__

    @property
    def rule(self) -> Thresholds:
        """What `verdicts` follows: the two thresholds, or twice the same where abstaining is not allowed.

        They are those for scores that have not been rounded to `score_type` yet, and right for others too.
        """
        if self.strategy is None:
            return self.thresholds.before_rounding(self.score_type)
        if self.tau is None:
            return Thresholds(alarm_from=inf, clear_below=-inf)
        tau = self.tau
        return Thresholds(tau, None if tau == inf else tau).before_rounding(self.score_type)

    def undecidable(self, kind: ScoreType) -> tuple[float, ...]:
        """Return the scores of a narrower type that had to be wider to be decided: a threshold is that near.

        Where the calibration score behind the threshold has no more digits than the type, none were lost.
        """
        if not is_narrower(kind, self.score_type):
            return ()
        behind = self._deciding
        edges = (self.rule.alarm_from, self.rule.clear_below)
        found = set()
        for edge, score in zip(edges, behind, strict=True):
            scores = (score,) if self.strategy is None else behind
            lost = any(one is not None and not represents(kind, one) for one in scores)
            if lost and edge is not None and edge < inf:
                found.add(straddled(edge, kind))
        return tuple(sorted(one for one in found if one is not None))

    @property
    def _deciding(self) -> tuple[float | None, float | None]:
        """The calibration scores behind alarm_from and clear_below: eqs. (7) and (9)."""
        alarm = self.thresholds.alarm_from
        return None if alarm is None else nextafter(alarm, -inf), self.thresholds.clear_below

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
        try:
            problem = next(_inconsistencies(certificate), None)
        except InputError as error:  # numbers that no calibration would take
            problem = str(error)
        if problem is not None:
            raise CertificateError(f"the certificate contradicts itself: {problem}; calibrate again")
        return certificate

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as a JSON file that appears whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Certificate":
        """Read a certificate; loading never runs code, and reads no more than a certificate can have.

        Its checksum and digests find accidents, not forgers: whoever can write the file can make them fit.
        """
        with open(path, "rb") as file:
            return cls.from_json(file.read(MOST_BYTES + 1))

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
        if self.score_type != "float64":
            lines += [("", f"which decides as if every score were rounded to {self.score_type} first")]
        lines += [("regime", f"{self.regime.value}: {self.regime.explanation}")]
        lines += [("", sentence) for sentence in self.diagnosis]
        lines += [(name, _evidence(one, self.levels is not None)) for name, _, one in self._sides()]
        if self.sampling is not None:
            lines += [("series", str(self.sampling)), ("", self.sampling.worth)]
        if self.strategy is not None:
            lines += [("strategy", _strategy(self.strategy, self.levels, self.level))]
        return lines + [("" if i else "assumes", text) for i, text in enumerate(map(str, self.assumptions))]

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


def _inconsistencies(certificate: Certificate) -> Iterator[str]:
    """Yield what in a certificate contradicts itself, its own texts and those of a series included."""
    sides, found = certificate._sides(), certificate.sampling
    effective = (None, None) if found is None else (found.effective_normal, found.effective_anomalous)
    for (name, _, evidence), size in zip(sides, effective, strict=True):
        if not re.fullmatch(r"[0-9a-f]{16}", evidence.digest):
            yield f"{quoted(evidence.digest)} is no digest of {name} scores, which has 16 hexadecimal digits"
        if not evidence.n and evidence.digest != _NO_SCORES:
            yield f"the digest of no {name} scores is {_NO_SCORES}, not {evidence.digest}"
        if size is not None and size > evidence.n:
            yield f"{evidence.n:,} {name} scores cannot be worth {size:,.0f}"
    if not re.fullmatch(_VERSION, certificate.version):
        yield f"{quoted(certificate.version)} is no version of pac-wrap-ad"
    for score in certificate._deciding:
        if score is not None and abs(score) < LARGEST and not represents(certificate.score_type, score):
            yield f"the score {score!r} behind a threshold is no {certificate.score_type}"
    if certificate.assumptions != (OF_DRAWS if found is None else OF_SERIES):
        yield f"these are not the assumptions of {'draws' if found is None else 'a series'}"
    budgets = (certificate.normal.budget, certificate.anomalous.budget)
    outcome = Outcome(
        *budgets,
        certificate.thresholds,
        certificate.certified,
        certificate.tau,
        certificate.levels,
        certificate.level,
    )
    yield from contradictions(
        Claim(
            certificate.guarantee,
            certificate.strategy,
            outcome,
            (certificate.normal.n, certificate.anomalous.n),
            (certificate.normal.crossing, certificate.anomalous.crossing),
        )
    )
    if certificate.regime is not (regime := find_regime(certificate.thresholds, *budgets)):
        yield f"the regime is {regime.value}, not {certificate.regime.value}"
