"""What to do next: fewer undecided points, more labels, other ceilings; and the labels that these need."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.promise import Budget
from pac_wrap.method.rule import Verdict
from pac_wrap.method.tails.bounds import achievable_rate, min_samples
from pac_wrap.method.tails.budget import LEAST_CEILING
from pac_wrap.method.thresholds import Regime
from pac_wrap.report.subject import ErrorRate, Report, error_rates, range_words, ranges, verdict_rows
from pac_wrap.report.words.numbers import ceiling, confidence, percent

_TIGHTER: Final = (1, 2, 5, 10)
TOLERATED: Final = 10
# theory.md, section 9: what is chosen after these labels were seen has another chance to fail
_AGAIN: Final = (
    "A second strategy or ceiling on the same labels would not keep its promise, because these labels led to"
    " it."
)
# as Python spells them, and as a shell does
_HOLD: Final = "overlap hold_fnr or hold_fpr; --overlap hold-fnr or hold-fpr"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Labels that one ceiling needs: if none of them may be an error, and if `TOLERATED` of them may."""

    side: str
    kind: str
    ceiling: float
    delta: float
    none_tolerated: int
    some_tolerated: int
    at_hand: int

    @property
    def promise(self) -> str:
        """The promise in short."""
        return f"{self.side} \N{LESS-THAN OR EQUAL TO} {ceiling(self.ceiling)}"

    @property
    def state(self) -> str:
        """How the labels at hand compare."""
        missing = self.none_tolerated - self.at_hand
        return f"{self.at_hand:,} {self.kind}, {'enough' if missing <= 0 else f'{missing:,} missing'}"


def plan(certificate: Certificate) -> tuple[PlanRow, ...]:
    """Return the labels that the ceilings asked for need, and those of tighter ones: eq. (4).

    >>> from pac_wrap import calibrate
    >>> [(row.ceiling, row.none_tolerated) for row in plan(calibrate(range(100), range(200, 300)))[:2]]
    [(0.05, 59), (0.025, 119)]
    """
    return tuple(
        PlanRow(
            rate.name,
            rate.kind,
            lower,
            rate.asked_delta,
            none,
            _labels(rate, lower, TOLERATED) or none,
            rate.at_hand,
        )
        for rate in error_rates(certificate)
        if rate.asked is not None
        for lower in (rate.asked / divisor for divisor in _TIGHTER)
        if (none := _labels(rate, lower)) is not None
    )


def plan_caption(certificate: Certificate) -> str:
    """Return what the numbers of the plan are for."""
    asked = [rate for rate in error_rates(certificate) if rate.asked is not None]
    listed = ", ".join(f"{rate.name} {confidence(rate.asked_delta)}" for rate in asked)
    text = (
        "Labels needed for the ceilings that were asked for and for lower ones, at the confidence asked for"
        f" ({listed}): if none of the labelled points may be misjudged, and if {TOLERATED} may."
    )
    if any(rate.effective is not None for rate in asked):
        text += " At hand: the number of independent points that those of the series are worth."
    more = certificate.overlap.needs_more_labels
    return text if more is None else f"{text} {more}"


def next_steps(report: Report) -> tuple[str, ...]:
    """Return what to do next, most urgent first."""
    certificate = report.certificate
    both = error_rates(certificate, report.metrics)
    steps = [
        f"Find out why held-out points exceed the {rate.name} ceiling (see what would break the promise), and"
        " calibrate again on fresh points."
        for rate in both
        if rate.exceeded
    ]
    steps += [step for rate in both for step in _space_out(rate)]
    steps += [step for rate in both for step in _label_more(rate)]
    steps += _decide(report)
    steps += [step for rate, other in (both, both[::-1]) for step in _tighten(certificate, rate, other)]
    if report.metrics is None and not any(heading == "held out" for heading, _ in report.in_time):
        steps.append("As a check, measure the rates on labelled points that were not used here.")
    steps.append("Calibrate again, on fresh points, when the detector is retrained or the data change.")
    return tuple(steps)


def _space_out(rate: ErrorRate) -> Iterator[str]:
    """Return what helps where points of a series are worth too few for what is promised."""
    if rate.overstated and rate.asked is not None:
        yield (
            f"Do not rely on the {rate.name} yet: {rate.evidence.n:,} {rate.kind} points are worth"
            f" {_worth(rate)}. Label points of more series, or points farther apart (--every)."
        )


def _worth(rate: ErrorRate) -> str:
    """Return what points of a series are worth, and why that is too little for what is promised."""
    budget = rate.evidence.budget
    if rate.effective is None or budget is None:
        return "nobody knows how many independent ones"
    fewer = Budget.of(rate.at_hand, budget.rate, budget.delta)
    why = f"{rate.at_hand + fewer.missing:,} are needed"
    if fewer.errors is not None:
        wrong = budget.errors if rate.misjudged is None else rate.misjudged
        share = percent((wrong or 0) / budget.n)
        why = f"{fewer.errors:,} of those may be errors, while the rule misjudges {share}"
    return f"about {rate.at_hand:,} independent ones, and {why}"


def _label_more(rate: ErrorRate) -> Iterator[str]:
    """Return which labels are missing for what was asked, where it could not be kept."""
    n = rate.evidence.n
    if rate.asked is None or not (rate.lacks_labels or rate.raised):
        return
    needed = _labels(rate, rate.asked) or 0
    if n >= needed:
        if rate.lacks_labels:  # enough for one promise at one look, but more than that is covered
            yield f"Label more {rate.kind} points (at hand {n:,}, needed at least {rate.needed:,})."
        return
    yield (
        f"Label more {rate.kind} points (at hand {n:,}, needed at least {needed:,}, missing {needed - n:,})."
        f" With fewer, no useful rule can promise an {rate.name} of at most {ceiling(rate.asked)} with"
        f" confidence {confidence(rate.asked_delta)}."
    )
    if n and rate.lacks_labels:
        yield (
            f"Or ask for less: the number of {rate.kind} labels at hand ({n:,}) suffices for {rate.name}"
            f" ceilings down to {ceiling(_least(rate))}."
        )


def _least(rate: ErrorRate) -> float:
    """Return the lowest ceiling that the labels at hand can keep."""
    found = achievable_rate(rate.at_hand, rate.asked_delta)
    return found if rate.promise is None else rate.promise.afterwards(found)


def _labels(rate: ErrorRate, lower: float, errors: int = 0) -> int | None:
    """Return how many labels a ceiling needs if so many are errors; None if no number is enough."""
    found = lower if rate.promise is None else rate.promise.allowing(lower)
    return None if found < LEAST_CEILING else min_samples(found, rate.asked_delta, errors)


def _decide(report: Report) -> Iterator[str]:
    """Return what helps to decide more points, or to get back what was given up for one threshold."""
    certificate, found = report.certificate, ranges(report.certificate.rule)
    if certificate.certified is None:
        yield (
            "Calibrate on fresh labels with overlap abstain (two thresholds keep both ceilings as far as the"
            f" labels suffice, and leave the points between them undecided), or hold one side ({_HOLD}) and"
            f" accept the other rate as it comes. {_AGAIN}"
        )
    elif certificate.regime is Regime.VACUOUS:
        return
    elif certificate.regime is Regime.OVERLAPPING:
        yield f"Decide who looks at the undecided points{_how_many(report)}, and how soon."
        yield (
            "To have fewer of them, improve the detector so that the classes overlap less, or ask for a"
            " higher ceiling on fresh labels; more labels help a little."
        )
        if report.normal is not None and certificate.sampling is None:
            yield "To decide every point now, choose one threshold on the curve (see other thresholds)."
        yield (
            "To decide every point from fresh labels on, calibrate them with overlap hold_fnr_if_needed (one"
            " threshold: it keeps both ceilings if the classes separate, else the FNR's) or raise (both"
            f" ceilings raised as little as can be proved). {_AGAIN}"
        )
    elif Verdict.ABSTAIN in found:
        yield (
            "No point has to be left undecided: any single threshold among the undecided scores"
            f" ({range_words(found)[Verdict.ABSTAIN]}) keeps both ceilings with the same confidence;"
            " overlap abstain sets one."
        )
    elif any(rate.raised or rate.less_confident for rate in error_rates(certificate)):
        yield (
            "To get back what was asked for, improve the detector so that the classes overlap less, or"
            f" calibrate fresh labels with overlap abstain, which may leave points undecided. {_AGAIN}"
        )


def _how_many(report: Report) -> str:
    found = [row for row in verdict_rows(report) if row.verdict is Verdict.ABSTAIN]
    shares = [
        f"{percent(count / n)} of the {kind}"
        for row in found
        for kind, count, n in (
            ("normal", row.normal, row.n_normal),
            ("anomalous", row.anomalous, row.n_anomalous),
        )
        if count is not None and n
    ]
    return f" ({' and '.join(shares)} calibration points)" if shares else ""


def _tighten(certificate: Certificate, rate: ErrorRate, other: ErrorRate) -> Iterator[str]:
    """Return how far a ceiling can be lowered with the labels at hand."""
    n = rate.counted
    if rate.lacks_labels or not rate.at_hand or rate.name not in certificate.overlap.keeps:
        return
    least = ceiling(_least(rate))
    if rate.asked is None:
        yield (
            f"Nothing is promised about {rate.errors}. If they matter, set max_{rate.name.lower()} for fresh"
            f" labels: as many {rate.kind} ones as here ({n}) suffice for ceilings down to {least}."
        )
    else:
        costs = ""
        if certificate.regime is Regime.OVERLAPPING:
            costs = ", at the price of more undecided points"
        elif certificate.rule.single:
            costs = f", at the price of more {other.errors}"
        yield (
            f"For a lower {rate.name} ceiling, use fresh labels: as many {rate.kind} ones as here ({n})"
            f" suffice for ceilings down to {least}{costs}; lower ones need more."
        )
