"""What the recurrent detectors refuse, each with one sentence."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from pac_wrap import InputError

torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

from pac_wrap_paper.detectors import LSTMEncoderDecoder, LSTMForecaster  # noqa: E402  # they need torch

BOTH: list[Any] = [LSTMEncoderDecoder, LSTMForecaster]
SMALL: dict[str, Any] = {"length": 12, "hidden": 4, "layers": 1, "epochs": 1}
SERIES = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)


@pytest.fixture(scope="module", params=BOTH, ids=lambda kind: kind.__name__)
def fitted(request: pytest.FixtureRequest) -> Any:
    return request.param(**SMALL).fit(SERIES)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        ("length", 0, "length must be at least 1, got 0"),
        ("hidden", 2.5, "hidden must be a whole number, 0 or more, got 2.5"),
        ("windows_per_epoch", 0, "windows_per_epoch must be at least 1, got 0"),
        ("threads", 0, "threads must be at least 1, got 0"),
        ("scale", "yes", "scale must be one of True, False; got 'yes'"),
        ("learning_rate", 0, "learning_rate must be a finite number, more than 0, got 0"),
        ("device", 3, 'device must be a name such as "auto", "cpu" or "cuda:0", got 3'),
        (
            "validation",
            1.0,
            "validation must be a share from 0 to less than 1, got 1.0; write a fifth as 0.2, or 0 to"
            " train on the whole series",
        ),
    ],
)
def test_a_bad_parameter_is_refused_by_name(kind: Any, parameter: str, value: Any, text: str) -> None:
    with pytest.raises(InputError) as refusal:
        kind(**(SMALL | {parameter: value})).fit(SERIES)
    assert str(refusal.value) == text


@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        ("horizon", 0, "horizon must be at least 1, got 0"),
        ("smoothing", 0.5, "smoothing must be a finite number of steps, 1 or more, got 0.5"),
    ],
)
def test_the_forecaster_refuses_its_own_bad_parameters(parameter: str, value: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        LSTMForecaster(**SMALL, **{parameter: value}).fit(SERIES)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("target", "text"),
    [
        (3, "target must name columns of X, 0 to 2, got 3; count them from 0"),
        ("a", "target must be a column number or a list of them, counted from 0, got 'a'; None stands for"),
        ([], r"counted from 0, got \[\]"),
        ([0, -1], r"counted from 0, got \[0, -1\]"),
    ],
)
def test_a_target_that_is_no_column_is_refused(kind: Any, target: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        kind(**SMALL, target=target).fit(SERIES)


@pytest.mark.parametrize(
    ("recent", "text"),
    [(0, "recent must be at least 1, got 0"), (13, "recent must be at most length = 12, got 13")],
)
def test_the_encoder_decoder_refuses_its_own_bad_parameters(recent: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        LSTMEncoderDecoder(**SMALL, recent=recent).fit(SERIES)


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    with pytest.raises(InputError, match=f'device torch can use here, got {device!r} .*; try device="cpu"'):
        LSTMEncoderDecoder(**SMALL, device=device).fit(SERIES)


def test_bad_series_are_refused(fitted: Any) -> None:
    series = SERIES.copy()
    with pytest.raises(InputError, match=r"as many columns as in fit, 3, got 2; pass the same columns"):
        fitted.decision_function(series[:, :2])
    w = fitted.warm_up_
    with pytest.raises(InputError, match=rf"X must have more than {w} steps .* got {w}; put earlier steps"):
        fitted.decision_function(series[:w])
    with pytest.raises(
        InputError, match=r"fit needs at least \d+ steps for windows of 1[23] and valid.* 40;"
    ):
        clone(fitted).fit(series[:40])
    series[7, 2] = np.nan
    for call in (fitted.decision_function, clone(fitted).fit):
        with pytest.raises(InputError, match=r"got 1 NaN or infinite of 900, the first \(NaN\) at step 7"):
            call(series)
