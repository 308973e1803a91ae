"""How often calibration breaks its promise on a population that is known; lives in `paper/`."""

from pac_wrap.method.metrics import ExactViolation, ViolationRate
from pac_wrap.paper.validation import exact_violation, violation_rate

__all__ = ["ExactViolation", "ViolationRate", "exact_violation", "violation_rate"]
