"""How a certificate was reached: counts, budgets, thresholds, regime and strategy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pac_wrap.certificate import Certificate
from pac_wrap.guarantee import rounded_up
from pac_wrap.report.promise import proved
from pac_wrap.report.sides import Side, sides
from pac_wrap.report.wording import ceiling, confidence, exact, floored

_NOTHING: Final = "not promised"


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """One fact, for each side."""

    name: str
    normal: str
    anomalous: str


def reached_rows(certificate: Certificate) -> tuple[ReachedRow, ...]:
    """Return the numbers behind a certificate, one column for each side.

    >>> from pac_wrap import calibrate
    >>> reached_rows(calibrate(range(100), range(200, 300)))[4]
    ReachedRow(name='Error budget k*', normal='1', anomalous='1')
    """
    columns = [_column(side) for side in sides(certificate)]
    rows = [ReachedRow(name, columns[0][name], columns[1][name]) for name in columns[0]]
    if certificate.strategy is not None:
        tau = exact(certificate.tau)
        rows.append(ReachedRow("Single threshold", tau, tau))
    return tuple(rows)


def explanations(certificate: Certificate) -> Iterator[str]:
    """Return sentences on regime, diagnosis and strategy."""
    regime = certificate.regime
    yield f"Regime {regime.value}: {regime.explanation}."
    yield from (f"{sentence}." for sentence in certificate.diagnosis)
    yield from _strategy(certificate)


def _column(side: Side) -> dict[str, str]:
    budget = side.evidence.budget
    kept = side.certified is not None and not side.short
    none = "none yet, too few points" if side.short else _NOTHING
    return {
        "Ceiling asked for": _NOTHING if side.asked is None else ceiling(side.asked),
        "Ceiling certified": ceiling(side.certified or 1.0) if kept else none,
        "Confidence promised": confidence(side.delta) if kept else none,
        "Labelled points n": f"{side.evidence.n:,}",
        "Error budget k*": _NOTHING if budget is None else _errors(budget.errors),
        "Delta of that budget": _NOTHING if budget is None else rounded_up(budget.delta),
        "Exact confidence of that budget": none
        if budget is None or side.short
        else floored(budget.confidence),
        "Points beyond the other threshold": _crossing(side.evidence.crossing),
        "Threshold": f"{'alarm_from' if side.rate == 'FPR' else 'clear_below'} = {exact(side.threshold)}",
    }


def _errors(errors: int | None) -> str:
    return "none yet, too few points" if errors is None else f"{errors:,}"


def _crossing(crossing: int | None) -> str:
    return "not counted" if crossing is None else f"{crossing:,}"


def _strategy(certificate: Certificate) -> Iterator[str]:
    strategy = certificate.strategy
    if strategy is None:
        if certificate.thresholds.single:
            yield "Only one side is promised, so its threshold decides alone and nothing is left undecided."
        else:
            yield "Two thresholds: what lies between them is left undecided."
        return
    if strategy.name != "relax":
        held, other = ("FNR", "FPR") if strategy.name == "hold_fnr" else ("FPR", "FNR")
        counted = certificate.normal if other == "FPR" else certificate.anomalous
        errors = counted.n if counted.budget is None else counted.crossing
        yield (
            f"Strategy {strategy.name}: one threshold, set by the {held} ceiling alone. It misjudges"
            f" {errors:,} of the {counted.n:,} points of the other class; the ceiling of the {other} is the"
            " exact upper bound of that count."
        )
        return
    raised = {"both": "both sides", "fpr": "the FPR", "fnr": "the FNR"}[strategy.ceilings]
    what = "deltas" if strategy.relax_delta else "ceilings"
    which = "none could be kept"
    if certificate.level is not None:
        which = f"number {certificate.level + 1:,} was the first that one threshold can keep"
    yield (
        f"Strategy relax: {certificate.levels or 1:,} promises with rising {what} of {raised} were fixed"
        f" beforehand and tried in order; {which}."
    )
    if certificate.level is None:
        return
    if proved(certificate):
        yield (
            "On a raised side, delta is shared equally among these promises, so the confidence survives the"
            " choice; the exact confidence above is that of a single one."
        )
    else:
        yield "Delta was not corrected for the choice, so the confidence is not guaranteed."
