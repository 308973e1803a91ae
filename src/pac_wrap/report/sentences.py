"""The sentences of a certificate: its status, its promise, its assumptions, and the labels it lacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from math import inf, isfinite, nan
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.base.floats import rounded, rounded_down, rounded_up
from pac_wrap.base.text import LONGEST, amount, quoted, sentence, visible
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import Prevalence, as_interval
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.metrics import Metrics, all_exceeded
from pac_wrap.method.promise import LABELS, Assumption, Clause, Error, Population, Promise, binding
from pac_wrap.method.provenance import Provenance, Traced
from pac_wrap.method.robust.shift_and_noise import NEW_LABELS
from pac_wrap.method.rule import Regime, Rule, Verdict
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import is_upside_down, rough_auc
from pac_wrap.report.account import Account, Fact, Status, account_of, facts_of
from pac_wrap.report.numbers import about, ceiling, confidence, least, percent, shortened, sure, told_apart
from pac_wrap.tails.bounds import Budget, Rate, upper_bound

# [low, high), None for an open end, which includes infinite scores
Range = tuple[float | None, float | None]
# characters of a name in a title or a list
LONGEST_NAME: Final = 60
# kinds whose ceilings the promise names; how many times more labels of a binding kind are considered
_LISTED, _MORE = 4, 4
# the effect of a rule that lacks verdicts
CONSEQUENCES: Final = {
    frozenset({Verdict.NORMAL}): "every point is called normal",
    frozenset({Verdict.ANOMALY}): "every point is called an anomaly",
    frozenset({Verdict.ABSTAIN}): "every point is left undecided",
    frozenset({Verdict.NORMAL, Verdict.ABSTAIN}): "no anomaly is ever declared",
    frozenset({Verdict.ABSTAIN, Verdict.ANOMALY}): "no point is ever called normal",
}
_ERRORS: Final = {"FPR": "false alarms", "FNR": "missed anomalies"}
# the points of each class, and what they do if the rule is wrong about them
MISTAKES: Final = {
    "normal": ("normal points", "raise a false alarm"),
    "anomalous": ("anomalies", "are missed"),
}
# what traffic does, by the option of its promise
_DO: Final = {
    "max_alarms": "raise an alarm",
    "max_false_alarms": "raise a false alarm",
    "max_fpr": "of normal points raise a false alarm",
    "max_fnr": "of anomalies are missed",
}
# what a bounded workload counts, in words
WORK: Final = {
    "alarms": "alarms",
    "right": "right alarms",
    "false_alarms": "false alarms",
    "missed": "missed anomalies",
    "undecided": "undecided",
}
# assumptions in a few words; their sentences stand in a report
_BRIEFLY: Final = {
    Assumption.INDEPENDENT: "independent points, of one distribution per class",
    Assumption.HELD_OUT: "a detector that was trained without them and stays the same",
    Assumption.NO_SHIFT: "no distribution shift",
    Assumption.MIXING: "mixing: windows this far apart are practically independent",
    Assumption.STATIONARY: "a stationary series",
    Assumption.ONE_SOURCE: "independent calibration points, of one distribution per class",
    Assumption.BOUNDED_SHIFT: "no more distribution shift than is tolerated",
    Assumption.LABELS: "no more label noise than is tolerated",
    Assumption.WEIGHTS: "weights that are right and nowhere exceed their bound",
    Assumption.POOLED: "independent points, and groups in the mix of the calibration points",
    Assumption.TRAFFIC: "points that are a random sample of all that comes",
    Assumption.STEADY: "no shift of traffic",
    Assumption.REVIEWED: "reviews that find only anomalies anomalous",
    Assumption.ANOMALIES: "labelled anomalies that are random ones",
    Assumption.UNITS: "independent units, with any dependence within",
    Assumption.UNITS_APART: "independent units of one class each, with any dependence within",
    Assumption.ONE_EACH: "future units with one point or event of a class, as here",
    Assumption.APART: "and independent of the traffic",
    Assumption.AUDITED: "audits that a coin drew at all scores",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the calibration scores came from: the tables, the column of scores and that of labels."""

    tables: tuple[str, ...]
    score: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A certificate with other facts for its report; only its own calibration scores are accepted."""

    certificate: Certificate
    normal: Any = None
    anomalous: Any = None
    source: Origin | None = None
    metrics: Metrics | None = None  # of held-out points
    detector: str | None = None
    prevalence: Prevalence | None = None
    in_time: tuple[Fact, ...] = ()  # about series
    # the scores of each clause, if they are at hand
    scores: dict[Population, Scores] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.normal is None) != (self.anomalous is None):
            raise InputError("pass the calibration scores of both classes, or of neither")
        if self.prevalence is not None:
            object.__setattr__(self, "prevalence", as_interval(self.prevalence))
        if self.normal is not None:
            for label in LABELS:
                own = self.certificate.of(label)
                object.__setattr__(self, label, self._checked(label, getattr(self, label), own))

    def _checked(self, label: str, given: ArrayLike | Mapping[str, ArrayLike], own: list[Clause]) -> Scores:
        """Return the scores of a class, and keep those of its kinds; scores of other points are refused."""
        each: dict[Any, Any] = dict(given) if isinstance(given, Mapping) else {None: given}
        score_type = self.certificate.score_type
        parts = {kind: rounded(as_scores(some, label), score_type) for kind, some in each.items()}
        whole = np.concatenate([*parts.values(), np.empty(0)]) if None not in parts else parts[None]
        parts[None] = whole
        for clause in own:
            scores = parts.get(clause.of.kind)
            if scores is None or scores.size != clause.n or clause.digest not in (None, digest(scores)):
                kinds = self.certificate.by_kind
                of, of_each = (f" of {called(clause)}", " of each kind") if kinds else ("", "")
                raise InputError(
                    f"the {label} scores{of} are not those the certificate was made from (their digests"
                    f" differ); pass the calibration scores{of_each}"
                )
            self.scores[clause.of] = scores
        return whole

    @property
    def shares(self) -> tuple[float, float] | None:
        """The least and the greatest prevalence: as stated, or else that of the calibration points."""
        sizes, stated = self.certificate.sizes, self.prevalence
        return stated if isinstance(stated, tuple) else (sizes[1] / sum(sizes),) * 2 if all(sizes) else None


def called(clause: Clause, longest: int = LONGEST) -> str:
    """Return the quoted name of a clause's kind, or "all kinds"."""
    return "all kinds" if clause.of.kind is None else quoted(clause.of.kind, longest)


def account_in_short(result: Certificate | Report) -> Account:
    """Return the account of a certificate without its sections."""
    report = result if isinstance(result, Report) else Report(result)
    certificate, kinds = report.certificate, report.certificate.by_kind
    known, source = certificate.provenance or Provenance(), report.source
    return Account(
        title(report.detector, known, source) + ", by kind" * kinds,
        subtitle(known, source),
        Status(*_status(certificate, report.metrics), int(certificate.empty or bool(certificate.overstated))),
        promise(certificate),
        tuple(warnings_of(report)),
        facts=tuple(facts(certificate)),
        form=("pac-wrap report of kinds", 1) if kinds else ("pac-wrap report", 2),
    )


def promise_in_words(promise: Promise) -> str:
    """Return a promise about traffic in words, in the unit in which it was stated."""
    if promise.error is Error.WRONG_ALARM:
        return f"{least_right(promise)} of alarms are right"
    most = f"{ceiling(promise.ceiling)}{' of all points' * (promise.of.label == 'traffic')}"
    if promise.limit is not None:
        most = f"{promise.limit[0]:,.12g} of every {promise.limit[1]:,.0f} points"
    return f"at most {most} {_DO[promise.of.option]}"


def least_right(promise: Promise) -> str:
    """Return the least share of alarms that are right."""
    return f"at least {least((promise.limit or (1.0 - promise.ceiling,))[0])}"


def title(detector: str | None, known: Provenance, source: Origin | None = None) -> str:
    """Return the title of a page, which names the detector or the column of scores."""
    name = detector or known.detector or (source or known).score or "an anomaly detector"
    return f"Error rates of {visible(name, LONGEST_NAME)}"


def subtitle(known: Provenance, source: Origin | None = None) -> str:
    """Return the names of the tables and the date, as far as they are known."""
    tables = (source or known).tables
    names = [visible(table, LONGEST_NAME) for table in tables[:2]]
    if len(tables) > 2:
        names.append(f"{len(tables) - 2:,} more")
    if known.date is not None:
        day = datetime.strptime(known.date[:10], "%Y-%m-%d")
        names.append(f"{day.day} {day:%B %Y}")
    return ", ".join(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Clause):
    """The clause that sets one of the two error rates, with the request and the measurements beside it."""

    name: str
    mistakes: str
    wanted: float | None
    asked_delta: float
    delta: float
    measured: Rate | None
    exceeded: bool
    effective: float | None  # the number of independent points that those of a series count as
    misjudged: int | None
    overstated: bool  # whether those are too few for the promise

    @property
    def at_hand(self) -> int:
        """The number of labels, of their units, or of the independent labels that they count as."""
        return (self.units or self.n) if self.effective is None else int(min(self.effective, self.n))

    @property
    def lowest(self) -> float:
        """The lowest ceiling that the labels at hand can keep."""
        return self.afterwards(upper_bound(0, self.at_hand, self.asked_delta))

    @property
    def raised(self) -> bool:
        """Whether the ceiling is higher than what was asked for."""
        return self.wanted is not None and (self.ceiling is None or self.ceiling > self.wanted)

    @property
    def less_confident(self) -> bool:
        """Whether the confidence is lower than what was asked for."""
        return self.ceiling is not None and self.delta > self.asked_delta

    @property
    def finding(self) -> str:
        """How the measured rate compares with the ceiling, in a few words."""
        if not self.kept or self.ceiling is None or self.measured is None:
            return "no promise"
        if not self.measured.n or self.exceeded:
            return "exceeded" if self.exceeded else "no points"
        return "within" if self.measured.value <= self.ceiling else "above, not significantly"

    def afterwards(self, rate: float) -> float:
        """Return the ceiling that follows from a rate at calibration, after the tolerated shift and noise."""
        return rate if self.asked is None else self.asked.afterwards(rate)


def sides_of(certificate: Certificate, metrics: Metrics | None = None) -> tuple[Side, Side]:
    """Return the false positive and the false negative rate of a certificate."""
    taken, asked = certificate.sampling, certificate.guarantee
    both = certificate.fpr, certificate.fnr
    rates = (None, None) if metrics is None else (metrics.fpr, metrics.fnr)
    # labels that may be wrong at calibration may be as wrong here
    tops = [nan if one.certified is None or one.vacuous else one.certified.counted for one in both]
    known = [one for one in rates if one is not None]
    over = all_exceeded([one.count for one in known], [one.n for one in known], tops) if known else []
    deltas = asked.delta_fpr, asked.delta_fnr
    low, high = (
        Side(
            *(getattr(clause, one.name) for one in fields(Clause)),
            name=name,
            mistakes=mistakes,
            wanted=None if clause.asked is None else clause.asked.ceiling,
            asked_delta=deltas[place],
            delta=deltas[place] if clause.certified is None else clause.certified.delta,
            measured=rates[place],
            exceeded=place in over,
            effective=getattr(taken, f"effective_{clause.of.label}", None),
            misjudged=getattr(taken, f"errors_{clause.of.label}", None),
            overstated=clause.of.label in certificate.overstated,
        )
        for place, (clause, (name, mistakes)) in enumerate(zip(both, _ERRORS.items(), strict=True))
    )
    return low, high


def rate_record(rate: Rate) -> dict[str, Any]:
    """Return a measured rate as a record for programs."""
    return {"count": rate.count, "n": rate.n, "value": rate.value, "low": rate.low, "high": rate.high}


def rates_record(metrics: Metrics) -> dict[str, Any]:
    """Return all measured rates as records for programs."""
    return {field.name: rate_record(getattr(metrics, field.name)) for field in fields(metrics)}


def ranges(rule: Rule) -> dict[Verdict, Range]:
    """Return the scores of each verdict that is ever given, in ascending order."""
    low, high = rule.normal_below, rule.anomaly_from
    start, stop = None if low == -inf else low, None if high == inf else high
    found: dict[Verdict, Range] = {}
    if low > -inf:
        found[Verdict.NORMAL] = (None, stop if rule.single else low)
    if not rule.single:
        found[Verdict.ABSTAIN] = (start, stop)
    if stop is not None:
        found[Verdict.ANOMALY] = (start if rule.single else stop, None)
    return found


def range_words(found: dict[Verdict, Range]) -> dict[Verdict, str]:
    """Return each range in words."""
    ends = sorted({end for ends in found.values() for end in ends if end is not None})
    text = dict(zip(ends, told_apart(ends), strict=True))

    def words(low: float | None, high: float | None) -> str:
        if low is None:
            return "every score" if high is None else f"below {text[high]}"
        return f"from {text[low]} on" if high is None else f"from {text[low]} to below {text[high]}"

    return {verdict: words(*ends) for verdict, ends in found.items()}


def rule_words(rule: Rule) -> str:
    """Return a rule in words, its thresholds rounded to a few digits."""
    low, high = rule.normal_below, rule.anomaly_from
    (below, above), exact = shortened(low, high)
    alarm = {inf: "never an alarm", -inf: "always an alarm"}.get(high, f"anomaly from {above} on")
    text = f"{alarm}, normal below" if isfinite(high) else alarm
    if not rule.single:
        text = f"{'never normal' if low == -inf else f'normal below {below}'}, {alarm}, else undecided"
        text = "every point is left undecided" if (low, high) == (-inf, inf) else text
    return text if exact else f"{text} (rounded)"


def facts(certificate: Certificate) -> Iterator[Fact]:
    """Yield the short account of a certificate."""
    claim, overlap, kinds = certificate.claim, certificate.overlap, certificate.by_kind
    if kinds:
        yield from facts_of("promised", list(map(str, certificate.promises)))
    else:
        yield Fact("asked", str(certificate.guarantee))
        yield from facts_of("tolerates", certificate.guarantee.tolerance)
    yield Fact("rule", rule_words(certificate.rule))
    if certificate.score_type != "float64":
        yield Fact("", f"it decides as if every score were first rounded to {certificate.score_type}")
    yield Fact("regime", f"{certificate.regime.value}: {certificate.regime.explanation}")
    for label in LABELS:
        own = certificate.of(label)
        names = ["" if one.of.kind is None and len(own) == 1 else f"{called(one)}: " for one in own]
        texts = [f"{name}{_labels(certificate, one)}" for name, one in zip(names, own, strict=True)]
        yield from facts_of(label, texts)
    yield from facts_of("binds", list(binding_words(certificate)) if kinds else [])
    if certificate.units is not None:
        yield from facts_of("units", [str(one) for one in certificate.units.counted])
    if (taken := certificate.sampling) is not None:
        yield from facts_of("series", (str(taken), *[taken.worth] * (certificate.units is None)))
    for name, one in (("weights", certificate.weighting), ("lineage", certificate.lineage)):
        yield from facts_of(name, [str(one)] * (one is not None))
    if overlap.single or overlap.tried(certificate.guarantee, claim.sizes) > 1:
        yield Fact("overlap", overlap.summary(claim))
    yield Fact("assumes", briefly(certificate.assumptions) + (f"; {_mixture(certificate)}" if kinds else ""))
    yield from made_facts(certificate)


def _labels(certificate: Certificate, clause: Clause) -> str:
    """Return the labels of a population and the errors that they allow, in words."""
    budget, words = clause.budget, clause.words
    if certificate.units is not None and clause.of.label in certificate.units.mistakes:
        words = words.replace("label", {"normal": "day", "anomalous": "event"}[clause.of.label], 1)
    if certificate.by_kind and clause.errors is not None:
        return f"{words}, threshold {about(clause.threshold or 0.0)}"
    if budget is not None and budget.errors is None and not certificate.by_kind:
        return f"{words}{_instead(sides_of(certificate)[LABELS.index(clause.of.label)], budget)}"
    if certificate.regime is not Regime.OVERLAPPING or clause.beyond is None or budget is None:
        return words
    other = "FNR" if clause.of.label == "normal" else "FPR"
    return f"{words}; a threshold for the {other} alone makes {clause.beyond:,}"


def briefly(assumptions: Sequence[Assumption]) -> str:
    """Return assumptions in a few words each."""
    return "; ".join(_BRIEFLY[one] for one in assumptions)


def _mixture(certificate: Certificate) -> str:
    text = "all this for each kind by itself: their mix may change"
    if any(len(own) > 1 and any(one.of.kind is None for one in own) for own in map(certificate.of, LABELS)):
        return f"{text}, but not for the ceiling of all kinds together"
    return text


def assumed(certificate: Certificate) -> tuple[str, ...]:
    """Return the assumptions in sentences, also about the mix of kinds or how points were taken."""
    texts = list(map(str, certificate.assumptions))
    if certificate.by_kind:
        return *texts, _mixture(certificate)
    texts += [f"the promise tolerates this, {text}" for text in certificate.guarantee.tolerance]
    if (taken := certificate.sampling) is not None:
        texts.append(f"the points are {taken}" + f"; {taken.worth}" * (certificate.units is None))
    if certificate.weighting is not None:
        texts.append(str(certificate.weighting))
    return *texts, *((certificate.provenance or Provenance()).notes or ())


def made_facts(certified: Traced) -> Iterator[Fact]:
    """Yield the origin of a certificate or a curve, if it is known."""
    known = certified.provenance
    if known is not None:
        when = "" if known.date is None else f"{known.date}, "
        yield Fact("made", f"{when}pac-wrap {certified.version}{': ' * bool(str(known))}{known}")
    yield from noted_facts(known)


def noted_facts(known: Provenance | None) -> Iterator[Fact]:
    """Yield the notes of those who made the scores."""
    yield from facts_of("notes", (known and known.notes) or ())


def diagnosis_of(certificate: Certificate) -> tuple[str, ...]:
    """Return sentences about the missing labels and about the errors that one threshold would make."""
    if certificate.traffic is not None:
        return tuple(account_of(certificate, brief=True).headline.splitlines())
    said = []
    for side in sides_of(certificate):
        budget = side.budget
        if budget is not None and budget.errors is None:
            said.append(
                f"{amount(side.n, f'{side.of.label} score')} cannot certify {side.name} <="
                f" {rounded_up(side.afterwards(budget.rate))} at delta = {rounded_up(budget.delta)}; at least"
                f" {side.needed} are needed{_instead(side, budget)}"
            )
        elif budget is None and side.asked is not None:
            said.append(f"at this threshold, no {side.name} below 1 follows from {amount(side.n, 'label')}")
    return (*said, *_beyond(certificate))


def shortfall_of(certificate: Certificate) -> str | None:
    """Return one sentence about promises that lack labels, with the number needed; None if none does."""
    if not certificate.empty:
        return None
    if certificate.traffic is not None:
        return account_of(certificate, brief=True).headline.splitlines()[-1]
    asked = [side for side in sides_of(certificate) if side.asked is not None]
    if all(side.ceiling is None for side in asked):
        return f"nothing is promised: {certificate.overlap.unreached}; every point is left undecided"
    lacking = (side for side in asked if not side.kept)
    return "; ".join(f"nothing is promised about the {side.name} {_why(side)}" for side in lacking)


def _why(side: Side) -> str:
    """Return the reason why nothing is promised about a rate, and a remedy."""
    budget = side.budget
    labels = side.labels if side.n else "no labels"
    if budget is None:
        return f"({labels}, so no bound below 1 at this threshold)"
    return f"({labels}; {side.needed} needed{_instead(side, budget)})"


def _instead(side: Side, budget: Budget) -> str:
    """Return the lowest ceiling that the labels at hand could keep, if any."""
    if not budget.n:
        return ""
    least = upper_bound(0, budget.units or budget.n, budget.delta)
    if budget.units is not None and least > 0.5:
        return ""  # a higher ceiling is refused
    return f", or a ceiling of {rounded_up(side.afterwards(least))}"


def _beyond(certificate: Certificate) -> Iterator[str]:
    """Yield the number of scores of each class beyond the threshold of the other."""
    for clause, beyond in (
        (certificate.fpr, "at or above clear_below"),
        (certificate.fnr, "below alarm_from"),
    ):
        if certificate.regime is not Regime.VACUOUS and clause.beyond is not None and clause.budget:
            yield (
                f"{clause.beyond:,} of {clause.n:,} {clause.of.label} scores lie {beyond};"
                f" {amount(clause.budget.errors or 0, 'error')} allowed"
            )


def binding_words(certificate: Certificate) -> Iterator[str]:
    """Yield which kind sets each threshold, and what more labels of it would change."""
    for label, one in zip(LABELS, (certificate.fpr, certificate.fnr), strict=True):
        own, budget = certificate.of(label), one.budget
        if one.threshold is None or budget is None or len(own) == 1:
            continue
        labels = amount(one.n, "label")
        text = f"{label} points of {called(one)} set the threshold at {about(one.threshold)}"
        if budget.errors is None:
            needed = one.n + budget.missing
            text = f"{label} points of {called(one)} have {labels}, and any threshold needs {needed:,}"
        if others := [other for other in own if other.of != one.of and other.threshold is not None]:
            following = binding(others, counted=False)
            text += f"; without them, {called(following)} would set it at {about(following.threshold or 0.0)}"
        yield text
        if budget.errors is None:
            continue
        more = Budget.of(_MORE * one.n, budget.rate, budget.delta)
        now, then = (rounded_down((some.errors or 0) / some.n, 100, 4) for some in (budget, more))
        yield (
            f"{labels} allow {amount(budget.errors, 'error')} ({now} %, for a ceiling of"
            f" {rounded_up(budget.rate, 100)} %); {more.n:,} would allow {then} %"
        )


def _status(certificate: Certificate, metrics: Metrics | None) -> tuple[str, str]:
    clauses, kinds = certificate.clauses, certificate.by_kind
    asked = [(one, one.asked) for one in clauses if one.asked is not None]
    lacking = [one for one in clauses if one.vacuous]
    if all(one.certified is None for one in clauses):
        return "none", "nothing certified"
    if any(side.exceeded for side in sides_of(certificate, metrics)):
        return "broken", "certified, but held-out points contradict it"
    if lacking and not certificate.promises:
        return "none", "too few labels"
    if lacking:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        of_kind = f"labels of {called(lacking[0], LONGEST_NAME)}{more}"
        return "partly", f"partly certified: too few {of_kind if kinds else f'{lacking[0].of.label} labels'}"
    if not certificate.overlap.proved:
        return "broken", "confidence not guaranteed"
    if certificate.overstated:
        return "partly", "certified only if points of one series do not depend on each other"
    if any(one.certified is None for one, _ in asked):
        return "partly", "partly certified"
    if any((one.ceiling or 0.0) > wanted.ceiling for one, wanted in asked):
        return "raised", "certified with raised ceilings"
    if any(one.certified and one.certified.delta > wanted.delta for one, wanted in asked):
        return "raised", "certified with less confidence"
    return "certified", "certified for every kind" if kinds else "certified"


def promise(certificate: Certificate) -> str:
    """Return the promise in one plain sentence, with reservations in further ones."""
    if certificate.by_kind:
        return _kind_promise(certificate)
    sides = sides_of(certificate)
    if all(side.ceiling is None for side in sides):
        return f"Nothing is promised: {certificate.overlap.unreached}. Every point is left undecided."
    kept, lacking = [one for one in sides if one.kept], [one for one in sides if one.vacuous]
    mistakes = {label: " ".join(words) for label, words in MISTAKES.items()}
    mistakes |= certificate.units.mistakes if certificate.units else {}
    said = [f"at most {ceiling(one.ceiling or 1.0)} of {mistakes[one.of.label]}" for one in kept]
    doubted = [side for side in sides if side.overstated]
    start = "If the points were independent, in the long run" if doubted else "In the long run"
    surely, texts = f", with {confidence(kept[0].delta)} confidence" if kept else "", []
    if len(kept) == 2:
        surely = f": both together with {sure(certificate.confidence)} confidence"
        if not certificate.confidence:
            alone = [f"{one.mistakes} with {confidence(one.delta)} confidence" for one in kept]
            surely = f": {', '.join(alone)}"
    if kept:
        texts.append(f"{start}, {', and '.join(said)}{surely}")
    counts = []
    for one in doubted:
        known = "an unknown number" if one.effective is None else f"about {one.at_hand:,}"
        counts.append(f"{one.n:,} {one.of.label} points count as {known}")
    if doubted:
        texts.append(f"They are not independent: {' and '.join(counts)}")
    if not certificate.overlap.proved:
        texts.append("This confidence is not guaranteed")
    tolerated = [f"the {one.name} promise tolerates {one.tolerance}" for one in certificate.promises]
    texts += [sentence("; ".join(tolerated))[:-1]] if certificate.guarantee.tolerance and kept else []
    if lacking:
        of = "" if len(lacking) == len(sides) else f" about {lacking[0].mistakes}"
        counts = []
        for one in lacking:
            units = "" if one.units is None else f" of {amount(one.units, 'unit')}"
            counts.append(f"{one.n:,} {one.of.label}{units} (at least {one.needed} are needed)")
        effect = CONSEQUENCES[frozenset(ranges(certificate.rule))]
        why = "because too few points are labelled"
        texts.append(f"Nothing is promised{of} yet, {why}: {' and '.join(counts)}")
        texts.append(f"{effect[0].upper()}{effect[1:]}")
    texts += [f"Nothing is promised about {one.mistakes}" for one in sides if one not in kept + lacking]
    return f"{'. '.join(texts)}."


def _kind_promise(certificate: Certificate) -> str:
    kept = certificate.promises
    if not kept:
        return "Nothing is promised, because too few points are labelled."
    clauses, silent = [], []
    for label, mistakes in zip(LABELS, _ERRORS.values(), strict=True):
        mine = {one.of.kind: one.ceiling for one in kept if one.of.label == label}
        if mine:
            clauses.append(_of_kinds(mine, len(certificate.of(label)), *MISTAKES[label]))
        else:
            silent.append(f" Nothing is promised about {mistakes}.")
    surely = f"with {confidence(kept[0].delta)} confidence"
    if len(kept) > 1:
        surely = f"all of it together with {sure(certificate.confidence)} confidence"
    if not certificate.confidence:
        surely = "each with the confidence that was asked for"
    return f"In the long run, {', and '.join(clauses)}: {surely}.{''.join(silent)}"


def _of_kinds(ceilings: Mapping[str | None, float], count: int, points: str, mistaken: str) -> str:
    """Return the ceilings of kinds as a clause of the promise."""
    rates = set(ceilings.values())
    if len(rates) == 1 and (count == 1 or (None not in ceilings and len(ceilings) == count)):
        each = "" if count == 1 else f" of each of {count:,} kinds"
        return f"at most {ceiling(rates.pop())} of {points}{each} {mistaken}"
    if len(ceilings) > _LISTED:
        least, most = ceiling(min(rates)), ceiling(max(rates))
        return f"at most {least} to {most} of {points} {mistaken}, depending on their kind (see below)"
    texts: list[str] = []
    for kind, rate in ceilings.items():
        what = "all kinds together" if kind is None else f"kind {quoted(kind, LONGEST_NAME)}"
        texts.append(f"{ceiling(rate)} of {points} of {what}" if not texts else f"{ceiling(rate)} of {what}")
    listed = " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
    return f"at most {listed} {mistaken}"


def notes(certificate: Certificate) -> Iterator[str]:
    """Yield explanations of the promise: its confidence, undecided points, and raised ceilings."""
    sides = sides_of(certificate)
    kept = [side for side in sides if side.kept]
    if kept and certificate.confidence and certificate.overlap.proved:
        share = sure(certificate.confidence) if len(kept) == 2 else confidence(kept[0].delta)
        yield (
            f"Confidence {share} means: if the calibration were repeated with fresh labelled points,"
            f" in the long run at least {share} of the certificates made in this way would be true."
        )
        if len(kept) == 2:
            alone = [f"{side.mistakes} {sure(certificate.confidences[side.name])}" for side in kept]
            yield f"Each ceiling by itself holds with more confidence: {alone[0]}, {alone[1]}."
    if ranges(certificate.rule).get(Verdict.ABSTAIN, (None, None)) != (None, None):
        yield "Undecided points do not count as errors; someone has to look at them."
    changes = []
    for side in sides if any(side.ceiling is not None for side in sides) else ():
        if side.raised:
            now = "no ceiling" if side.ceiling is None else ceiling(side.ceiling)
            changes.append(f"the ceiling of {side.mistakes} rose from {ceiling(side.wanted or 1.0)} to {now}")
        if side.less_confident:
            before, now = confidence(side.asked_delta), confidence(side.delta)
            changes.append(f"the confidence in {side.mistakes} fell from {before} to {now}")
    if changes:
        why = "One threshold could not keep the promise that was asked for"
        if certificate.separable:
            why = "The lowest ceilings that raise tries are above those that one threshold keeps here"
        yield f"{why}: {'; '.join(changes)}."


def warnings_of(report: Report) -> Iterator[str]:
    """Yield reasons not to rely on the promise yet."""
    certificate = report.certificate
    if certificate.by_kind:
        for one in certificate.clauses:
            if one.vacuous:
                label = one.of.label
                lost = Verdict.ANOMALY if label == "normal" else Verdict.NORMAL
                yield (
                    f"Too few {label} points of {called(one)} are labelled: {one.n:,}, and"
                    f" {one.n + one.missing:,} are needed. So {CONSEQUENCES[frozenset(Verdict) - {lost}]}."
                )
        return
    sides = sides_of(certificate, report.metrics)
    if not certificate.overlap.proved and any(side.ceiling is not None for side in sides):
        yield (
            "The confidence is not guaranteed: the promise was chosen on the points that certify it, and"
            ' delta was not corrected for that. Use correction="exact", or hold one ceiling.'
        )
    if certificate.overstated:
        held_out = any(fact.name == "held out" for fact in report.in_time)
        yield (
            "Every confidence on this page counts each point as an independent draw, but these points depend"
            f" on each other.{' The results on held-out series stand below.' if held_out else ''}"
        )
    for side in sides:
        if side.exceeded and side.measured is not None:
            yield (
                f"On held-out points the {side.name} was {percent(side.measured.value)}, significantly above"
                f" its ceiling of {ceiling(side.ceiling or 1.0)}. Do not rely on the promise before the"
                " reason is known."
            )
            if side.asked is not None and side.asked.label_noise is not None:
                yield sentence(NEW_LABELS)
    normal, anomalous = report.normal, report.anomalous
    if normal is None or anomalous is None or not (normal.size and anomalous.size):
        return
    if is_upside_down(rough_auc(normal, anomalous), normal.size, anomalous.size):
        yield (
            "Anomalies score lower than normal points. If low scores mean anomalous, negate the scores and"
            " calibrate again."
        )
