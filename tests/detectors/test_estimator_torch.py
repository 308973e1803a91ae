"""torch modules as detectors: asked in evaluation mode, without gradients, and left as they were."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from pac_wrap import InputError, PACWrap, anomaly_scores
from pac_wrap.ranks.memory import auc

torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]


class Distance(torch.nn.Module):  # type: ignore[name-defined]  # untyped base
    """The distance from a centre, through layers that behave differently in training."""

    def __init__(self) -> None:
        super().__init__()
        self.centre = torch.nn.Parameter(torch.zeros(3))
        self.dropout = torch.nn.Dropout(0.9)
        self.norm = torch.nn.BatchNorm1d(3)
        self.modes: list[bool] = []
        self.dtypes: list[Any] = []
        self.gradients: list[bool] = []

    def forward(self, rows: Any) -> Any:
        self.modes.append(self.training)
        self.dtypes.append(rows.dtype)
        self.gradients.append(torch.is_grad_enabled())
        return self.norm(self.dropout(rows - self.centre)).norm(dim=1)


def sums(columns: int = 1) -> Any:
    layer = torch.nn.Linear(3, columns)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.zero_()
    return layer


@pytest.mark.parametrize("training", [True, False])
def test_a_module_is_asked_in_evaluation_mode_which_is_then_undone(training: bool) -> None:
    module = Distance().train(training)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    scores = anomaly_scores(module, X)
    assert module.modes == [False]
    assert module.training is training
    assert module.dropout.training is training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    np.testing.assert_array_equal(scores, anomaly_scores(module, X))
    assert scores.dtype == np.float64
    assert auc(scores[:400], scores[400:]) > 0.9


def test_layers_that_were_frozen_stay_frozen() -> None:
    module = Distance().train()
    module.norm.eval()
    anomaly_scores(module, X)
    assert (module.training, module.dropout.training, module.norm.training) == (True, True, False)


def test_no_gradients_are_computed_or_kept() -> None:
    module = Distance()
    anomaly_scores(module, X)
    assert module.gradients == [False]
    assert module.centre.grad is None
    assert torch.is_grad_enabled()
    with torch.no_grad():
        anomaly_scores(module, X)
        assert not torch.is_grad_enabled()


def test_one_column_is_one_score_per_row_and_two_are_refused() -> None:
    np.testing.assert_allclose(anomaly_scores(sums(), X), X.sum(axis=1), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match=r"scores of Linear must be one-dimensional.*\(600, 2\)"):
        anomaly_scores(sums(2), X)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_rows_are_given_in_the_precision_of_the_module(dtype: str) -> None:
    module = Distance().to(getattr(torch, dtype))
    scores = anomaly_scores(module, X)
    assert module.dtypes == [getattr(torch, dtype)]
    assert scores.dtype == np.float64
    assert auc(scores[:400], scores[400:]) > 0.9


def test_single_precision_scores_are_widened_and_not_rounded_again() -> None:
    module = sums()
    with torch.no_grad():
        expected = module(torch.as_tensor(X, dtype=torch.float32))[:, 0].numpy()
    np.testing.assert_array_equal(anomaly_scores(module, X), expected.astype(np.float64))


@pytest.mark.parametrize("rows", [X.tolist(), X.astype(np.float32), torch.as_tensor(X, dtype=torch.float32)])
def test_lists_arrays_and_tensors_are_rows(rows: Any) -> None:
    np.testing.assert_allclose(anomaly_scores(sums(), rows), X.sum(axis=1), rtol=1e-4, atol=1e-4)


def test_modules_without_parameters_or_with_whole_numbers_only_are_asked_in_the_default_precision() -> None:
    class Plain(torch.nn.Module):  # type: ignore[name-defined]  # untyped base
        def forward(self, rows: Any) -> Any:
            assert rows.dtype == torch.get_default_dtype()
            return rows.sum(dim=1)

    plain = Plain()
    scores = anomaly_scores(plain, X)
    plain.register_parameter(
        "count", torch.nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False)
    )
    np.testing.assert_array_equal(anomaly_scores(plain, X), scores)


def test_the_mode_is_restored_after_a_failure() -> None:
    module = Distance().train()
    with pytest.raises(RuntimeError):
        anomaly_scores(module, X[:, :2])
    assert module.training


@pytest.mark.parametrize("polarity", ["auto", "higher"])
def test_a_module_is_wrapped_as_it_is(polarity: Any) -> None:
    module = Distance()
    wrap = PACWrap(module, polarity=polarity).fit(X, Y)
    assert wrap.detector_ is module
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (400, 200)
    assert wrap.score(X, Y) > 0.7
    again = clone(wrap).fit(X, Y)
    assert again.detector is not module
    assert again.certificate_ == wrap.certificate_


def test_a_score_is_the_same_alone_and_among_others() -> None:
    scores = anomaly_scores(Distance(), X)
    alone = [anomaly_scores(Distance(), X[row : row + 1])[0] for row in range(5)]
    np.testing.assert_allclose(scores[:5], alone, rtol=1e-6)
