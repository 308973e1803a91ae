"""What the explorer of a page should say."""

from decimal import Decimal
from math import inf

from pac_wrap.base.floats import between
from pac_wrap.method.curves.curve import Curve
from pac_wrap.report.numbers import ceiling, least


def told(
    curve: Curve, below: float, start: float, low: float, high: float, points: int = 1000
) -> dict[str, str]:
    """Return what the page should say of two thresholds: the formulas of the theory, in decimals."""

    def exact(share: float) -> Decimal:
        return Decimal(repr(share))

    alarms, lost, missed = curve.fpr(start), curve.fnr(start), curve.fnr(below)
    undecided = (0.0, 0.0) if below == start else (curve.fpr(below), lost)
    waiting = [(1 - exact(p)) * exact(undecided[0]) + exact(p) * exact(undecided[1]) for p in (low, high)]
    words = {
        "fpr": f"at most {ceiling(alarms)}" if alarms < 1 else "not bounded",
        "fnr": f"at most {ceiling(missed)}" if missed < 1 else "not bounded",
        "undecided": between(0.0, float(points * min(max(waiting), Decimal(1)))),
    }
    if start == inf or 1.0 in (alarms, lost, missed):
        return words | dict.fromkeys(("alarms", "right", "missed", "precision"), "not bounded")
    sure = float(points * exact(low) * exact(1.0 - lost))
    right, wrong = low * (1.0 - lost), (1.0 - low) * alarms
    return words | {
        "alarms": between(sure, float(points * ((1 - exact(high)) * exact(alarms) + exact(high)))),
        "right": between(sure, float(points * exact(high))),
        "missed": between(0.0, float(points * exact(high) * exact(missed))),
        "precision": f"at least {least(right / (right + wrong))}",
    }
