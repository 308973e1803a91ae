import pickle
from collections.abc import Callable
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pac_wrap import PACWrap, anomaly_scores
from pac_wrap.errors import InputError, LabelWarning
from pac_wrap_paper.detectors import DevNet
from pac_wrap_paper.detectors.devnet import (
    Objective,
    clip_norm,
    forward,
    initial_parameters,
    loss_and_gradient,
    rmsprop_step,
    unpack,
)

Table = NDArray[np.float64]
Labels = NDArray[np.int_]
OBJECTIVE = Objective(mean=0.02, std=0.97, margin=5.0, l2=0.01)


def planted(normal: int = 1000, anomalous: int = 60, hidden: int = 0, seed: int = 0) -> tuple[Table, Labels]:
    """Return normal rows, known anomalies shifted in 3 of 8 features, and `hidden` unlabelled ones."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(normal + anomalous + hidden, 8))
    X[normal:, :3] += 2.0
    y = np.zeros(len(X), dtype=int)
    y[normal : normal + anomalous] = 1
    return X, y


def small_problem(seed: int = 0) -> tuple[Table, Table, NDArray[np.bool_]]:
    random = np.random.default_rng(seed)
    flat = initial_parameters(6, 4, random)
    flat += random.normal(scale=0.1, size=flat.size)
    X = random.normal(size=(32, 6))
    X[16:] *= 8.0  # some anomalies beyond the margin, so that both branches of their loss are met
    return flat, X, np.arange(32) >= 16


@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_that_of_the_loss(seed: int) -> None:
    flat, X, anomalous = small_problem(seed)

    def loss(values: Table) -> float:
        return loss_and_gradient(unpack(values, 4), X, anomalous, OBJECTIVE)[0]

    gradient = loss_and_gradient(unpack(flat, 4), X, anomalous, OBJECTIVE)[1]
    np.testing.assert_allclose(gradient, approx_fprime(flat, loss, 1e-7), atol=1e-5)


def test_loss_follows_its_definition() -> None:
    flat, X, anomalous = small_problem()
    parameters = unpack(flat, 4)
    hidden = np.maximum(X @ parameters.hidden_weights + parameters.hidden_biases, 0)
    scores = hidden @ parameters.output_weights + parameters.output_bias
    deviations = (scores - 0.02) / 0.97
    expected = np.mean([max(5 - d, 0) if a else abs(d) for d, a in zip(deviations, anomalous, strict=True)])
    expected += 0.01 * np.sum(parameters.hidden_weights**2)
    assert {bool(d > 5) for d in deviations[anomalous]} == {True, False}
    np.testing.assert_allclose(forward(parameters, X)[0], scores)
    assert loss_and_gradient(parameters, X, anomalous, OBJECTIVE)[0] == pytest.approx(expected)


@pytest.mark.parametrize("length", [1e-9, 0.5, 1.0, 1.5, 1e6])
def test_a_clipped_gradient_keeps_its_direction_and_is_at_most_1_long(length: float) -> None:
    gradient = np.random.default_rng(0).normal(size=50)
    gradient *= length / np.linalg.norm(gradient)
    clipped = clip_norm(gradient)
    assert np.linalg.norm(clipped) == pytest.approx(min(length, 1.0))
    np.testing.assert_allclose(clipped / np.linalg.norm(clipped), gradient / length)


def test_initial_weights_are_glorot_uniform_and_biases_zero() -> None:
    parameters = unpack(initial_parameters(180, 20, np.random.default_rng(0)), 20)
    limit = np.sqrt(6 / 200)
    assert parameters.hidden_weights.shape == (180, 20)
    assert limit * 0.99 < np.abs(parameters.hidden_weights).max() <= limit
    assert np.abs(parameters.output_weights).max() <= np.sqrt(6 / 21)
    assert not parameters.hidden_biases.any()
    assert not parameters.output_bias.any()


def test_steps_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    random = np.random.default_rng(0)
    flat = initial_parameters(6, 4, random)
    squares, start = np.zeros_like(flat), unpack(flat.copy(), 4)
    tensors = [torch.tensor(np.array(part), requires_grad=True) for part in start]
    optimiser = torch.optim.RMSprop(tensors, lr=0.001, alpha=0.9, eps=1e-7)
    anomalous = np.arange(32) < 16
    target = torch.tensor(anomalous, dtype=torch.float64)
    lengths = []
    for _ in range(30):
        X = random.normal(size=(32, 6)) * 3.0
        gradient = loss_and_gradient(unpack(flat, 4), X, anomalous, OBJECTIVE)[1]
        lengths.append(np.linalg.norm(gradient))
        rmsprop_step(flat, clip_norm(gradient), squares, learning_rate=0.001)

        weights, biases, output, bias = tensors
        scores = torch.relu(torch.tensor(X) @ weights + biases) @ output + bias
        deviation = (scores - OBJECTIVE.mean) / OBJECTIVE.std
        loss = (1 - target) * deviation.abs() + target * torch.clamp(OBJECTIVE.margin - deviation, min=0)
        optimiser.zero_grad()
        (loss.mean() + OBJECTIVE.l2 * (weights**2).sum()).backward()
        torch.nn.utils.clip_grad_norm_(tensors, 1.0)
        optimiser.step()
    assert max(lengths) > 1.0  # clipping took part
    theirs = np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors])
    np.testing.assert_allclose(flat, theirs, atol=1e-5)


@pytest.mark.parametrize("hidden", [0, 50])
def test_finds_what_was_planted_even_if_some_of_it_is_unlabelled(hidden: int) -> None:
    X, y = planted(hidden=hidden)
    detector = DevNet(random_state=0).fit(X, y)
    new, truth = planted(seed=1)
    assert roc_auc_score(truth, detector.decision_function(new)) > 0.95
    assert len(detector.loss_curve_) == 50
    assert detector.loss_curve_[-1] < 0.5 * detector.loss_curve_[0]


def test_half_of_every_batch_are_known_anomalies(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = planted()
    X[:, 0] = y  # so that a row tells what it is
    shares = []

    def spy(
        parameters: Any, rows: Table, anomalous: NDArray[np.bool_], objective: Any
    ) -> tuple[float, Table]:
        np.testing.assert_array_equal(rows[:, 0] == 1, anomalous)
        shares.append((anomalous.sum(), len(rows)))
        return loss_and_gradient(parameters, rows, anomalous, objective)

    monkeypatch.setattr("pac_wrap_paper.detectors.devnet.loss_and_gradient", spy)
    DevNet(epochs=3, batches=4, batch_size=11).fit(X, y)
    assert shares == [(5, 11)] * 12


def test_a_seed_fixes_the_scores_and_the_global_state_is_left_alone() -> None:
    X, y = planted()
    runs = []
    for global_seed in (1, 2):
        np.random.seed(global_seed)  # noqa: NPY002  (the global state is what is tested)
        before = str(np.random.get_state())  # noqa: NPY002  (the same)
        runs.append(DevNet(epochs=2, random_state=3).fit(X, y).decision_function(X))
        DevNet(epochs=1).fit(X, y)
        assert str(np.random.get_state()) == before  # noqa: NPY002  (the same)
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], DevNet(epochs=2, random_state=4).fit(X, y).decision_function(X))
    for make in (np.random.RandomState, np.random.default_rng):
        first, again = (DevNet(epochs=1, random_state=make(5)).fit(X, y).loss_curve_ for _ in range(2))
        assert first == again


def test_progress_is_told_of_every_epoch_and_survives_clone() -> None:
    X, y = planted()
    told: list[tuple[int, int, float]] = []
    detector = DevNet(epochs=3, random_state=0, progress=lambda *now: told.append(now)).fit(X, y)
    assert [(done, of) for done, of, _ in told] == [(1, 3), (2, 3), (3, 3)]
    assert [loss for *_, loss in told] == detector.loss_curve_
    copy = clone(detector)
    assert not hasattr(copy, "parameters_")
    assert copy.fit(X, y).loss_curve_ == detector.loss_curve_
    assert len(told) == 6


def test_float32_and_sparse_rows_score_like_float64() -> None:
    X, y = planted()
    X[np.abs(X) < 0.5] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    plain = DevNet(epochs=3, random_state=0).fit(X, y).decision_function(X)
    for other in (X.astype(np.float32), csr_array(X)):
        scores = DevNet(epochs=3, random_state=0).fit(other, y).decision_function(other)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, plain, rtol=1e-12, atol=1e-12)


def test_a_score_hangs_on_its_own_row_only_and_survives_pickling() -> None:
    X, y = planted(normal=9000)  # more rows than are scored at a time
    detector = DevNet(epochs=1, random_state=0).fit(X, y)
    scores = detector.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(detector)).decision_function(X), scores)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(detector.decision_function(X[order]), scores[order], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(detector.decision_function(X[:1]), scores[:1], rtol=1e-12, atol=1e-12)


def test_scores_need_no_polarity() -> None:
    X, y = planted()
    detector = DevNet(epochs=2, random_state=0).fit(X, y)
    expected = detector.decision_function(X)
    np.testing.assert_array_equal(anomaly_scores(detector, X), expected)
    np.testing.assert_array_equal(anomaly_scores(FrozenEstimator(detector), X), expected)
    piped = make_pipeline(StandardScaler(), DevNet(epochs=2, random_state=0)).fit(X, y)
    np.testing.assert_array_equal(anomaly_scores(piped, X), piped.decision_function(X))


def test_works_inside_pacwrap() -> None:
    X, y = planted(normal=1500, anomalous=400)
    wrap = PACWrap(DevNet(random_state=0), max_fpr=0.1, max_fnr=0.1, random_state=0).fit(X, y)
    new, truth = planted(normal=1500, anomalous=400, seed=1)
    verdicts = wrap.predict(new)
    assert np.mean(verdicts[truth == 0] == 1) <= 0.1
    assert np.mean(verdicts[truth == 1] == 0) <= 0.1
    assert np.mean(verdicts == truth) > 0.8


@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        ("hidden", 0, "hidden must be at least 1, got 0"),
        ("epochs", 2.5, "epochs must be a whole number, 0 or more, got 2.5"),
        ("batches", 0, "batches must be at least 1, got 0"),
        ("batch_size", 1, "batch_size must be at least 2, got 1"),
        ("references", 1, "references must be at least 2, got 1"),
        ("l2", -0.1, "l2 must be a finite number, 0 or more, got -0.1"),
        ("margin", 0, "margin must be a finite number, more than 0, got 0"),
        ("learning_rate", float("inf"), "learning_rate must be a finite number, more than 0, got inf"),
        ("learning_rate", "fast", "learning_rate must be a finite number, more than 0, got 'fast'"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(parameter: str, value: Any, text: str) -> None:
    with pytest.raises(InputError) as refusal:
        DevNet(**{parameter: value}).fit(*planted())
    assert str(refusal.value) == text


def test_labels_of_one_kind_or_of_another_kind_are_refused_or_read_with_a_warning() -> None:
    X = np.random.default_rng(0).normal(size=(4, 2))
    for label in (0, 1):
        with pytest.raises(
            InputError, match=rf"n_samples = 4, {4 * label} of them known anomalies; add rows"
        ):
            DevNet().fit(X, np.full(4, label))
    with pytest.raises(
        InputError, match=r"y must be 1 for known anomalies and 0 .* got \[-1, 1\]; recode it"
    ):
        DevNet().fit(X, [-1, -1, 1, 1])
    with pytest.warns(LabelWarning, match="3 is taken for the anomalies") as caught:
        DevNet(epochs=1, batch_size=7).fit(X, [2, 2, 3, 3])  # an odd batch, larger than the data
    assert caught[0].filename == __file__


def test_bad_rows_are_refused() -> None:
    X, y = planted()
    detector = DevNet(epochs=1)
    with pytest.raises(NotFittedError):
        detector.decision_function(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        detector.fit(X, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        detector.fit(X, y[:-1])
    detector.fit(X, y)
    with pytest.raises(ValueError, match="expecting 8 features"):
        detector.decision_function(X[:, :5])
    X[3, 2] = np.nan
    for call in (lambda: detector.fit(X, y), lambda: detector.decision_function(X)):
        with pytest.raises(ValueError, match="contains NaN"):
            call()


@pytest.mark.parametrize("scale", [1e160, 1e304])
def test_features_beyond_all_scale_are_named_as_the_cause(scale: float) -> None:
    X, y = planted()
    with pytest.raises(InputError, match=r"loss must stay finite, got (inf|nan) in epoch 1; scale the feat"):
        DevNet().fit(X * scale, y)


@parametrize_with_checks([DevNet(epochs=2)])  # type: ignore[untyped-decorator]  # untyped library
def test_scikit_learn_accepts_it(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def campaign(seed: int, table: Table) -> tuple[Table, Labels, Table, Labels]:
    """Return rows to train on (30 known anomalies, 2 % of the others hidden) and to test, with labels."""
    random = np.random.default_rng(seed)
    normal, anomalous = (random.permutation(np.flatnonzero(table[:, -1] == label)) for label in (0, 1))
    tests = [rows[: round(0.2 * rows.size)] for rows in (normal, anomalous)]
    normal, anomalous = normal[tests[0].size :], anomalous[tests[1].size :]
    hidden = int(normal.size * 0.02 / 0.98)
    train, test = np.concatenate([normal, anomalous[: 30 + hidden]]), np.concatenate(tests)
    known = np.isin(train, anomalous[:30]).astype(int)
    return table[train, :-1], known, table[test, :-1], table[test, -1].astype(int)


@pytest.mark.skipif("PAC_WRAP_DATA" not in environ, reason="PAC_WRAP_DATA names no folder with data")
def test_ranks_the_anomalies_of_campaign() -> None:
    path = Path(environ["PAC_WRAP_DATA"]) / "bank-additional-full_normalised.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the data folder")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert table.shape == (41188, 63)
    areas = []
    for seed in range(3):
        X, y, X_test, y_test = campaign(seed, table)
        scores = DevNet(random_state=seed).fit(X, y).decision_function(X_test)
        areas.append(roc_auc_score(y_test, scores))
    assert np.mean(areas) > 0.72
