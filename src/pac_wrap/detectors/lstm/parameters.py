"""The rules that the parameters of both recurrent detectors obey."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from pac_wrap.detectors.lstm.target import check_target
from pac_wrap.errors import InputError
from pac_wrap.inputs import check_choice, check_count, is_number

COUNTS = (
    *("length", "hidden", "layers", "epochs", "patience", "batch_size"),
    *("windows_per_epoch", "stride", "threads"),
)


def check_parameters(detector: Any, counts: Iterable[str]) -> None:
    """Refuse a detector whose parameters break a rule; `counts` names its own whole numbers."""
    for name in (*COUNTS, *counts):
        if check_count(name, getattr(detector, name)) < 1:
            raise InputError(f"{name} must be at least 1, got {getattr(detector, name)}")
    check_target(detector.target)
    check_choice("scale", detector.scale, (True, False))
    if not isinstance(detector.device, str):
        raise InputError(f'device must be a name such as "auto", "cpu" or "cuda:0", got {detector.device!r}')
    if not is_number(detector.validation) or not 0.0 <= detector.validation < 1.0:
        raise InputError(
            f"validation must be a share from 0 to less than 1, got {detector.validation!r};"
            " write a fifth as 0.2, or 0 to train on the whole series"
        )
    rate = detector.learning_rate
    if not is_number(rate) or not isfinite(rate) or rate <= 0:
        raise InputError(f"learning_rate must be a finite number, more than 0, got {rate!r}")
