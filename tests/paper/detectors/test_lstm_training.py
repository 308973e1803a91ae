"""How the recurrent detectors are trained: seeds, early stopping, progress, and torch left as it was."""

from typing import Any

import numpy as np
import pytest

from pac_wrap import InputError

torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

from pac_wrap_paper.detectors import LSTMEncoderDecoder, LSTMForecaster  # noqa: E402  # they need torch
from pac_wrap_paper.detectors.lstm import gather, mean_loss, split_starts, target_columns  # noqa: E402  # they too

BOTH: list[Any] = [LSTMEncoderDecoder, LSTMForecaster]
SMALL: dict[str, Any] = {"length": 10, "hidden": 6, "layers": 1, "epochs": 2}
SERIES = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0)


@pytest.mark.parametrize("kind", BOTH)
def test_a_seed_repeats_the_scores_and_another_does_not(kind: Any) -> None:
    scores = [kind(**SMALL, random_state=seed).fit(SERIES).decision_function(SERIES) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2], equal_nan=True)
    states = [
        kind(**SMALL, random_state=state(5)).fit(SERIES).decision_function(SERIES)
        for state in (np.random.RandomState, np.random.RandomState, np.random.default_rng)
    ]
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[2], scores[0])


@pytest.mark.parametrize("kind", BOTH)
def test_the_global_state_of_torch_is_neither_used_nor_changed(kind: Any) -> None:
    expected = kind(**SMALL, random_state=0).fit(SERIES).decision_function(SERIES)
    threads = torch.get_num_threads()
    try:
        torch.manual_seed(123)
        torch.set_num_threads(2)
        torch.set_default_dtype(torch.float64)
        before = torch.random.get_rng_state()
        with torch.no_grad():
            scores = kind(**SMALL, random_state=0).fit(SERIES).decision_function(SERIES)
            assert not torch.is_grad_enabled()
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() == torch.float64
        with pytest.raises(InputError):
            kind(**SMALL, learning_rate=1e30, scale=False).fit(SERIES * 1e30)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("kind", BOTH)
def test_early_stopping_restores_the_best_weights(kind: Any) -> None:
    detector = kind(**SMALL | {"epochs": 40}, patience=2, learning_rate=0.05, random_state=0).fit(SERIES)
    curve = detector.validation_curve_
    assert len(curve) == len(detector.loss_curve_) == detector.best_epoch_ + 2 < 40
    assert min(curve) == curve[detector.best_epoch_ - 1] < curve[-1]
    window, targets = detector.length + detector._ahead, target_columns(detector.target, 2)
    values = torch.as_tensor(detector.scaling_.apply(SERIES))
    _, held_out = split_starts(len(SERIES), window, 1, 0.2)
    loss = mean_loss(
        lambda starts: detector._loss(detector.network_, gather(values, starts, window), targets),
        held_out,
        detector.batch_size,
    )
    assert loss == pytest.approx(min(curve), rel=1e-6)


@pytest.mark.parametrize("kind", BOTH)
def test_progress_is_told_after_each_epoch(kind: Any) -> None:
    calls: list[tuple[int, int, float, float | None]] = []
    detector = kind(**SMALL, progress=lambda *call: calls.append(call)).fit(SERIES)
    assert calls == [
        (epoch, 2, loss, held_out)
        for epoch, loss, held_out in zip(
            (1, 2), detector.loss_curve_, detector.validation_curve_, strict=True
        )
    ]


def test_without_validation_all_epochs_run_and_the_last_weights_stay() -> None:
    calls: list[Any] = []
    detector = LSTMForecaster(
        **SMALL | {"epochs": 5}, patience=1, validation=0, progress=lambda *call: calls.append(call)
    ).fit(SERIES[:11])
    assert len(detector.loss_curve_) == detector.best_epoch_ == 5
    assert detector.validation_curve_ == []
    assert [call[3] for call in calls] == [None] * 5


def test_an_epoch_learns_from_so_many_windows_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    loss = LSTMEncoderDecoder._loss

    def counting(self: Any, network: Any, windows: Any, targets: list[int]) -> Any:
        if torch.is_grad_enabled():
            seen.append(windows.shape[1])
        return loss(self, network, windows, targets)

    monkeypatch.setattr(LSTMEncoderDecoder, "_loss", counting)
    LSTMEncoderDecoder(**SMALL, windows_per_epoch=70, batch_size=32).fit(SERIES)
    assert seen == [32, 32, 6] * 2
    seen.clear()
    LSTMEncoderDecoder(**SMALL, stride=100, batch_size=32).fit(SERIES)
    assert seen == [3] * 2


def test_a_loss_that_overflows_is_named_as_the_cause() -> None:
    with pytest.raises(InputError, match=r"loss must stay finite, got (inf|nan) in epoch \d; lower learning"):
        LSTMEncoderDecoder(**SMALL, learning_rate=1e30).fit(SERIES)


@pytest.mark.parametrize("kind", BOTH)
def test_the_loss_goes_down(kind: Any) -> None:
    series = np.sin(np.arange(600) / 5.0)
    curve = kind(**SMALL | {"epochs": 10}, learning_rate=0.01, random_state=0).fit(series).loss_curve_
    assert curve[-1] < 0.3 * curve[0]
