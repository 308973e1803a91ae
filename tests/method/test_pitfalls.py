"""What goes wrong in silence unless it is said: missing labels, useless strategies, resealed promises."""

from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    Abstain,
    Algorithm1,
    Certificate,
    CertificateError,
    Hold,
    InputError,
    calibrate,
    calibrate_labelled,
    evaluate,
)
from pac_wrap.method.calibrate import Request

RANDOM = np.random.default_rng(0)
NORMAL, ANOMALOUS = RANDOM.normal(0, 1, 500), RANDOM.normal(3, 1, 500)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_label_is_no_normal_point(missing: Any) -> None:
    with pytest.raises(InputError, match=r"got (None|nan)"):
        calibrate_labelled(np.arange(4.0), ["bad", "bad", missing, missing], anomaly_label="bad")


def test_a_strategy_without_effect_is_refused() -> None:
    with pytest.raises(InputError, match="a Request has its own overlap and anomaly_label; remove"):
        calibrate(NORMAL, ANOMALOUS, Request(), overlap="hold_fnr")
    with pytest.raises(InputError, match=r"overlap must be one of 'abstain', .*; got 'no'"):
        calibrate(NORMAL, ANOMALOUS, overlap="no")  # what a shell script might pass
    for slip in (False, Hold, 0.05):
        with pytest.raises(
            InputError,
            match="overlap must be one of 'abstain', 'abstain_always', 'raise', 'hold_fnr', 'hold_fpr', ",
        ):
            calibrate(NORMAL, ANOMALOUS, overlap=slip)  # type: ignore[arg-type]  # a likely slip
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_fpr'"):
        calibrate(NORMAL, ANOMALOUS, max_fpr=0.1, overlap="algorithm1")  # type: ignore[call-arg]  # a likely slip
    with pytest.raises(InputError, match="write Guarantee"):
        calibrate(NORMAL, ANOMALOUS, 0.05)  # type: ignore[arg-type]  # a likely slip


def test_a_strategy_object_is_as_good_as_its_name() -> None:
    objects = {
        "abstain": Abstain(),
        "hold_fnr": Hold("fnr"),
        "hold_fpr": Hold("fpr"),
        "algorithm1": Algorithm1(step=0.1),
    }
    for name, one in objects.items():
        by_name = calibrate(NORMAL, ANOMALOUS, overlap=name)
        assert by_name.overlap == one
        assert calibrate(NORMAL, ANOMALOUS, overlap=one) == by_name
        assert calibrate(NORMAL, ANOMALOUS, Request(overlap=one)) == by_name


def test_an_asked_ceiling_that_is_lost_makes_a_certificate_empty() -> None:
    certificate = calibrate(NORMAL, [], overlap="hold_fpr")
    assert certificate.empty
    assert "Nothing is promised about missed anomalies." in str(certificate)
    assert "no labels, so no bound below 1 at this threshold" in str(certificate.shortfall)
    assert not calibrate(NORMAL, ANOMALOUS, overlap="hold_fpr").empty


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # fewer levels, or another one of them: the budgets are not theirs
        ('"step": 0.1', '"step": 0.2'),
        ('"rate": 0.25', '"rate": 0.15'),
        ('"ceiling": 0.25', '"ceiling": 0.15'),
        ('"delta": 0.05', '"delta": 0.000001'),
    ],
)
def test_a_resealed_promise_that_does_not_follow_is_refused(old: str, new: str) -> None:
    import json

    from pac_wrap.base.codec import checksum

    rng = np.random.default_rng(1)
    text = calibrate(rng.normal(0, 1, 2000), rng.normal(2, 1, 2000), overlap="algorithm1").to_json()
    assert old in text
    content = json.loads(text.replace(old, new))
    del content["checksum"]
    with pytest.raises(CertificateError, match="contradicts itself: "):
        Certificate.from_json(json.dumps(content | {"checksum": checksum(content)}))


def test_metrics_print_a_line_each() -> None:
    text = str(evaluate([0, 1, -1, 1], [0, 0, 0, 1]))
    assert [line.split()[0] for line in text.splitlines()][:3] == ["fpr", "fnr", "err"]
    assert "0.3333" in text
