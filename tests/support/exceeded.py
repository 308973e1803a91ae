"""Which measured rates are significantly above their ceilings: one looked at alone, and both of a promise."""

from math import nan

from pac_wrap import Guarantee, calibrate
from pac_wrap.method.metrics import Metrics, all_exceeded
from pac_wrap.report.sentences import sides_of
from pac_wrap.tails import Rate


def is_exceeded(ceiling: float | None, measured: Rate) -> bool:
    """Return whether one rate, looked at alone, is significantly above its ceiling."""
    return all_exceeded([measured.count], [measured.n], [nan if ceiling is None else ceiling]) == [0]


def exceeded(metrics: Metrics, asked: Guarantee) -> tuple[str, ...]:
    """Return the names of the rates that are significantly above what is promised."""
    certificate = calibrate(range(2000), range(3000, 5000), asked)
    return tuple(side.name for side in sides_of(certificate, metrics) if side.exceeded)
