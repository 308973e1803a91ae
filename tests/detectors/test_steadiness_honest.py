"""Detectors whose scores depend on their rows alone are never refused, however they round or tie."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyod.models.pca
import pytest
from numpy.typing import NDArray
from pyod.models.abod import ABOD
from pyod.models.gmm import GMM
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.inne import INNE
from pyod.models.kde import KDE
from pyod.models.knn import KNN
from pyod.models.loda import LODA
from pyod.models.lof import LOF
from pyod.models.mcd import MCD
from pyod.models.ocsvm import OCSVM
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDOneClassSVM
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from pac_wrap import InputError, PACWrap

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 5)), RNG.normal(2, 1, (200, 5))]
Y = np.repeat([0, 1], [400, 200])


HONEST: dict[str, Any] = {
    "IsolationForest": IsolationForest(n_estimators=20, random_state=0),
    "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
    "OneClassSVM": OneClassSVM(),
    "SGDOneClassSVM": SGDOneClassSVM(random_state=0),
    "EllipticEnvelope": EllipticEnvelope(random_state=0),
    "GaussianMixture": GaussianMixture(3, random_state=0),
    "KernelDensity": KernelDensity(),
    "pipeline": make_pipeline(StandardScaler(), PCA(2), OneClassSVM()),
    "PCA and KernelDensity": make_pipeline(PCA(3, whiten=True), KernelDensity()),
    "MLPClassifier": MLPClassifier((16, 16), max_iter=2000, random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "RandomForest": RandomForestClassifier(20, random_state=0),
    "DecisionTree": DecisionTreeClassifier(random_state=0),
    "KNeighborsClassifier": KNeighborsClassifier(),
    "SVC": SVC(),
    "LogisticRegression": LogisticRegression(),
    "ABOD": ABOD(),
    "GMM": GMM(random_state=0),
    "HBOS": HBOS(),
    "IForest": IForest(n_estimators=20, random_state=0),
    "INNE": INNE(random_state=0),
    "KDE": KDE(),
    "KNN": KNN(),
    "LODA": LODA(),
    "LOF": LOF(),
    "MCD": MCD(random_state=0),
    "OCSVM": OCSVM(),
    "PCA of PyOD": pyod.models.pca.PCA(),
}


def wide(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows in so many dimensions that neighbours are found by matrix products."""
    return rows @ np.random.default_rng(1).normal(size=(5, 40)) + 1e-3 * RNG.normal(size=(len(rows), 40))


# the coarsest scores tie, as those of a tree or of a grid do
ROWS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "plain": lambda rows: rows,
    "far off": lambda rows: 1e4 + rows,
    "grid": lambda rows: rows.round(),
    "wide": wide,
}


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.OverlapWarning", "ignore:.*covariance.*")
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning", "ignore:.*divide.*:RuntimeWarning")
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", HONEST)
def test_honest_detectors_are_never_refused(name: str, kind: str) -> None:
    if (name, kind) in (("MLPClassifier", "far off"), ("ABOD", "grid")):
        pytest.skip("it cannot be trained: the rows are not scaled, or repeat")
    rows = ROWS[kind](X)
    detector = HONEST[name]
    wrap = PACWrap(detector, random_state=0).fit(rows, Y)
    assert wrap.predict(rows[:3]).shape == (3,)


def test_networks_in_single_precision_are_never_refused() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (make deep)")

    class Rebuilding(torch.nn.Module):  # type: ignore[name-defined]  # untyped base
        """An autoencoder, whose scores of anomalies are thousands of times those of normal rows."""

        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.Linear
            self.inner = torch.nn.Sequential(
                layer(5, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Dropout(), layer(64, 5)
            )

        def forward(self, rows: Any) -> Any:
            return (rows - self.inner(rows)).square().sum(dim=1)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Rebuilding()
    rows = np.where(Y[:, None] == 1, 100.0, 1.0) * X
    for copies in (1, 5):
        wrap = PACWrap(module).fit(np.tile(rows, (copies, 1)), np.tile(Y, copies))
        assert wrap.score(rows, Y) > 0.5

    def in_training(rows: Any) -> Any:
        with torch.no_grad():
            return module.train()(torch.as_tensor(rows, dtype=torch.float32)).numpy()

    with pytest.raises(InputError, match="the scores of in_training depend on the other rows"):
        PACWrap(in_training).fit(rows, Y)
