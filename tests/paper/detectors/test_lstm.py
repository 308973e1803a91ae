"""The recurrent detectors: what they find, and what a score hangs on."""

import doctest
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pac_wrap import InputError, anomaly_scores
from pac_wrap.ranks.memory import auc

torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

from pac_wrap_paper.detectors import LSTMEncoderDecoder, LSTMForecaster  # noqa: E402  # they need torch

Series = NDArray[np.float64]
BOTH: list[Any] = [LSTMEncoderDecoder, LSTMForecaster]
SMALL: dict[str, Any] = {"length": 12, "hidden": 8, "epochs": 2, "batch_size": 64, "random_state": 0}


def telemetry(steps: int, seed: int) -> Series:
    """Return a temperature that follows a heater's command, the command, and a swing of its own."""
    random = np.random.default_rng(seed)
    time = np.arange(steps)
    command = ((time + random.integers(40)) // 20 % 2).astype(float)
    warmth = np.zeros(steps)
    for step in range(1, steps):
        warmth[step] = warmth[step - 1] + 0.3 * (command[step - 1] - warmth[step - 1])
    series: Series = np.c_[warmth, command, np.sin(time / 6.0)]
    series[:, ::2] += random.normal(0.0, 0.03, (steps, 2))
    return series


def with_anomalies(series: Series) -> tuple[Series, NDArray[np.bool_]]:
    """Return a series in which the temperature ignores the command for a while, four times."""
    faulty, anomalous = series.copy(), np.zeros(len(series), dtype=bool)
    for start in (150, 300, 450, 600):
        anomalous[start : start + 15] = True
    faulty[anomalous, 0] = 1.0 - faulty[anomalous, 0]
    return faulty, anomalous


@pytest.fixture(scope="module", params=BOTH, ids=lambda kind: kind.__name__)
def fitted(request: pytest.FixtureRequest) -> Any:
    return request.param(**SMALL).fit(telemetry(300, seed=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector",
    [
        LSTMEncoderDecoder(length=20, hidden=16, epochs=20, random_state=0),
        LSTMEncoderDecoder(length=20, recent=5, hidden=16, epochs=20, random_state=0),
        LSTMForecaster(length=20, hidden=16, layers=1, epochs=15, smoothing=3, random_state=0),
        LSTMForecaster(
            length=20, horizon=4, target=[0, 2], hidden=16, layers=1, epochs=15, smoothing=3, random_state=0
        ),
    ],
    ids=[
        "encoder-decoder",
        "encoder-decoder of five steps",
        "forecaster",
        "forecaster of four steps and two columns",
    ],
)
def test_planted_anomalies_score_higher(detector: Any) -> None:
    detector = clone(detector).fit(telemetry(1500, seed=0))
    series, anomalous = with_anomalies(telemetry(800, seed=1))
    scores = detector.decision_function(series)
    seen = np.arange(len(series)) >= detector.warm_up_
    assert auc(scores[seen & ~anomalous], scores[seen & anomalous]) > 0.9


def test_there_is_one_score_per_step_and_the_warm_up_is_marked(fitted: Any) -> None:
    series = telemetry(700, seed=2)  # more windows than are scored at once
    scores = fitted.decision_function(series)
    assert scores.shape == (700,)
    assert scores.dtype == np.float64
    assert fitted.warm_up_ == (11 if isinstance(fitted, LSTMEncoderDecoder) else 12)
    np.testing.assert_array_equal(np.isnan(scores), np.arange(700) < fitted.warm_up_)
    np.testing.assert_array_equal(fitted.score_samples(series), -scores)
    shortest = fitted.decision_function(series[: fitted.warm_up_ + 1])
    np.testing.assert_allclose(shortest[-1], scores[fitted.warm_up_], rtol=1e-4)


def test_several_horizons_warm_up_longer_and_average_their_predictions() -> None:
    series = telemetry(300, seed=0)
    detector = LSTMForecaster(**SMALL, horizon=3, smoothing=1).fit(series)
    assert detector.warm_up_ == 14
    scores = detector.decision_function(series)
    assert np.isnan(scores[:14]).all()
    scaled = torch.as_tensor(detector.scaling_.apply(series))
    with torch.no_grad():
        for step in (14, 100, 299):
            predicted = 0.0
            for ahead in range(3):
                past = scaled[step - ahead - 12 : step - ahead, None]
                code, _ = detector.network_["encoder"](past)
                predicted += float(detector.network_["output"](code[-1])[0, ahead]) / 3
            np.testing.assert_allclose(scores[step], abs(predicted - float(scaled[step, 0])), rtol=1e-3)


def test_the_encoder_decoder_scores_the_last_steps_of_the_window_that_ends_there() -> None:
    series = telemetry(300, seed=0)
    detector = LSTMEncoderDecoder(**SMALL, layers=2).fit(series)
    last_one, last_three, all_twelve = (
        detector.set_params(recent=recent).decision_function(series)[100] for recent in (1, 3, 12)
    )
    scaled = torch.as_tensor(detector.scaling_.apply(series))
    with torch.no_grad():
        window = scaled[89:101, None]
        code, state = detector.network_["encoder"](window)
        rebuilt, _ = detector.network_["decoder"](code[-1:].repeat(12, 1, 1), state)
        # the latest step comes first
        errors = (detector.network_["output"](rebuilt) - window.flip(0)).square().mean(dim=(1, 2)).numpy()
    np.testing.assert_allclose(
        [last_one, last_three, all_twelve], [errors[0], errors[:3].mean(), errors.mean()], rtol=1e-4
    )


def test_the_future_does_not_change_a_score(fitted: Any) -> None:
    series = telemetry(400, seed=3)
    other = series.copy()
    other[250:] = telemetry(150, seed=4) * 5.0
    before, after = fitted.decision_function(series), fitted.decision_function(other)
    np.testing.assert_array_equal(before[:250], after[:250])
    assert (before[250:] != after[250:]).any()


def test_one_dimension_is_one_column_and_tables_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    series = telemetry(300, seed=0)[:, 0]
    for kind in BOTH:
        scores = kind(**SMALL).fit(series).decision_function(series)
        for same in (series[:, None], series.tolist(), pandas.DataFrame({"a": series})):
            np.testing.assert_array_equal(kind(**SMALL).fit(same).decision_function(same), scores)


def test_columns_of_any_unit_are_standardised_unless_told_otherwise() -> None:
    series = telemetry(300, seed=0)
    units = series * [1e6, 1e-6, 1.0] + [1e7, 0.0, 5.0]
    for kind in BOTH:
        scores = kind(**SMALL).fit(series).decision_function(series)
        np.testing.assert_allclose(kind(**SMALL).fit(units).decision_function(units), scores, rtol=1e-2)
        raw = kind(**SMALL, scale=False).fit(series)
        assert (raw.scaling_.centre == 0.0).all()
        assert (raw.scaling_.spread == 1.0).all()


def test_values_far_beyond_the_training_series_get_high_finite_scores(fitted: Any) -> None:
    series = telemetry(300, seed=0)
    series[200] = 1e200
    scores = fitted.decision_function(series)
    assert np.isfinite(scores[fitted.warm_up_ :]).all()
    assert scores[200] > 1e3 * scores[199]


def test_scores_need_no_polarity_but_the_warm_up_must_go(fitted: Any) -> None:
    series = telemetry(300, seed=1)
    with pytest.raises(InputError, match=rf"must not contain NaN, got {fitted.warm_up_} of 300"):
        anomaly_scores(fitted, series)
    scores = anomaly_scores(lambda X: fitted.decision_function(X)[fitted.warm_up_ :], series)
    assert scores.shape == (300 - fitted.warm_up_,)


@pytest.mark.parametrize("kind", BOTH)
def test_clones_keep_the_parameters_only(kind: Any) -> None:
    detector = kind(**SMALL)
    copy = clone(detector.fit(telemetry(200, seed=0)))
    assert copy.get_params() == detector.get_params()
    assert not hasattr(copy, "network_")
    with pytest.raises(NotFittedError):
        copy.decision_function(telemetry(200, seed=0))
    with pytest.raises(NotFittedError):
        copy.save("never-written.npz")


@pytest.mark.parametrize("kind", BOTH)
def test_columns_that_are_no_target_inform_but_are_not_scored(kind: Any) -> None:
    series = telemetry(300, seed=0)
    every = kind(**SMALL, target=None).fit(series)
    assert every.network_["output"].out_features == 3
    first = kind(**SMALL, target=0).fit(series)
    assert first.network_["output"].out_features == 1
    other = series.copy()
    other[200, 1] += 50.0
    jumps = [d.decision_function(other)[200] - d.decision_function(series)[200] for d in (every, first)]
    assert jumps[0] > 0.0
    assert jumps[0] > 10 * abs(jumps[1])
    assert first.decision_function(other)[202] != first.decision_function(series)[202]


@pytest.mark.parametrize("kind", BOTH)
def test_the_example_runs(kind: Any) -> None:
    # the examples are skipped where doctests are collected, since torch may be missing there
    text = kind.__doc__.replace("# doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {kind.__name__: kind}, kind.__name__, None, 0)
    assert doctest.DocTestRunner().run(example) == doctest.TestResults(0, len(example.examples))
