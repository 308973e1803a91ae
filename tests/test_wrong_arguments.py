"""Arguments of a wrong kind, found by generating them: one short sentence that names what is expected."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import pac_wrap
from pac_wrap import PACWrapError, tails, validation
from pac_wrap import series as timeseries
from pac_wrap.method.calibrate import Request

# of no type, so that arguments may be of any
PUBLIC: Any = pac_wrap
SERIES: Any = timeseries
TAILS: Any = tails
REQUEST: Any = Request
SCORES, LABELS = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
RAGGED: Any = [[1.0], [2.0, 3.0]]
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "from_json": (lambda: PUBLIC.Certificate.from_json(np.int8(1)), "read from a text, got int8"),
    "from_json of a dict": (lambda: PUBLIC.Certificate.from_json({}), "read from a text, got dict"),
    "calibrate_points": (lambda: SERIES.calibrate_points(None), "points must come from window_points"),
    "anomaly_label": (
        lambda: PUBLIC.calibrate_labelled(SCORES, LABELS, anomaly_label=RAGGED),
        "anomaly_label must be one value",
    ),
    "anomaly_label that is a range": (
        lambda: PUBLIC.evaluate(LABELS, LABELS, anomaly_label=range(3)),
        "anomaly_label must be one value",
    ),
    "a huge position": (lambda: PUBLIC.Algorithm1(position=10**400), "position must lie between 0"),
    "overlap": (lambda: PUBLIC.calibrate(SCORES, SCORES, overlap=RAGGED), "overlap must be one of"),
    "overlap that is a class": (lambda: REQUEST(overlap=PUBLIC.Abstain), "overlap must be one of"),
    "a long word": (lambda: REQUEST.of(overlap="x" * 5000), "got 'x{200}'\\.\\.\\."),
    "a rate to hold": (lambda: PUBLIC.Hold("FNR"), "rate must be one of 'fnr', 'fpr'; got 'FNR'"),
    "guarantee": (lambda: REQUEST(guarantee=0.05), "guarantee must be a Guarantee, got 0.05"),
    "confidence": (lambda: PUBLIC.Guarantee(confidence=Decimal("NaN")), "confidence must lie strictly"),
    "a rate that cannot be looked up": (lambda: TAILS.Budget.of(100, RAGGED, 0.1), "rate must lie strictly"),
    "normal_below": (lambda: PUBLIC.Rule("0.1", 0.2), "normal_below must be a number, inf or -inf, got '0.1"),
    "a huge threshold": (lambda: PUBLIC.Rule(0.1, 10**400), "anomaly_from must be a number, inf or -inf"),
    "anomaly_from": (lambda: PUBLIC.Rule(0.1, float("nan")), "anomaly_from must be a number, .* nan"),
    "a rule upside down": (lambda: PUBLIC.Rule(0.7, 0.3), "normal_below must not exceed anomaly_from"),
    "chunks": (lambda: PUBLIC.calibrate_chunks(int), "chunks\\(\\) must return an iterable of pairs"),
    "position": (lambda: PUBLIC.Algorithm1(position=Decimal("NaN")), "position must lie between 0"),
    "verdicts": (
        lambda: PUBLIC.evaluate(np.zeros(6, dtype="f8,i4"), LABELS),
        "verdicts must be a list of 1, 0 and -1",
    ),
    "y": (lambda: PUBLIC.PACWrap("precomputed").fit(SCORES, Decimal(1)), "do not fit together"),
    "trials": (
        lambda: validation.violation_rate(
            SCORES, SCORES, (3, 3), trials=2**53, random=np.random.default_rng(0)
        ),
        "trials must be at most 100,000,000",
    ),
    "a long text": (lambda: TAILS.error_budget(100, "1" * 5000, 0.1), "got '1{200}'\\.\\.\\.;"),
    "an array": (lambda: TAILS.error_budget(np.arange(9000.0).astype(str), 0.1, 0.1), "a whole number"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_in_one_short_sentence(name: str) -> None:
    call, expected = CALLS[name]
    with pytest.raises(PACWrapError, match=expected) as caught:
        call()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
