"""Detectors whose scores depend on their rows alone are never refused, however they round or tie."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyod.models.pca
import pytest
from numpy.typing import NDArray
from pyod.models.abod import ABOD
from pyod.models.ecod import ECOD
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
from pac_wrap_paper.data.registry import TABLES

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
    "MLPClassifier": MLPClassifier((16, 16), max_iter=2000, tol=0.01, random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "RandomForest": RandomForestClassifier(20, random_state=0),
    "DecisionTree": DecisionTreeClassifier(random_state=0),
    "KNeighborsClassifier": KNeighborsClassifier(),
    "SVC": SVC(),
    "LogisticRegression": LogisticRegression(),
    "ABOD": ABOD(),
    "GMM": GMM(random_state=0),
    "HBOS": HBOS(),
    "IForest": IForest(n_estimators=20, random_state=0),
    "INNE": INNE(n_estimators=20, random_state=0),
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


ADBENCH: dict[str, Callable[[], Any]] = {
    "IsolationForest": lambda: IsolationForest(n_estimators=20, random_state=0),
    "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
    "KNN": KNN,
    "HBOS": HBOS,
}
MOST_ROWS, MOST_COLUMNS = 600, 100  # of a table
ECOD_ROWS, ECOD_COLUMNS = 60, 8  # it takes its rows one by one, and counts them in a loop


def by_itself(detector: Any, reference: Any) -> Callable[[Any], Any]:
    """Return the scores of a trained detector, each row beside rows that stay the same."""
    return lambda X: np.array([detector.decision_function(np.vstack([reference, row]))[-1] for row in X])


# too few anomalies, detectors that are worse than chance, fewer rows than neighbours: no part of this
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning", "ignore:n_neighbors")
@pytest.mark.filterwarnings("ignore:.*Precision loss occurred in moment calculation:RuntimeWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
# the anomalies of skin do break off at a score, as if they had been reviewed alarms
@pytest.mark.filterwarnings("ignore:no anomaly scores below:pac_wrap.LabelWarning")
def test_honest_detectors_are_refused_on_no_table_of_adbench(name: str) -> None:
    file = Path(os.environ.get("PAC_WRAP_DATA", "")) / "adbench" / TABLES[name].file
    if not file.is_file():
        pytest.skip(f"PAC_WRAP_DATA does not point at a folder with adbench/{file.name}")
    with np.load(file, allow_pickle=False) as table:
        drawn = np.random.default_rng(0).permutation(len(table["y"]))[:MOST_ROWS]
        rows, labels = table["X"][drawn, :MOST_COLUMNS], table["y"][drawn]
    for make in ADBENCH.values():
        wrap = PACWrap(make(), random_state=0).fit(rows, labels)
        for size in (1, 50, len(rows)):
            again = pickle.loads(pickle.dumps(wrap))  # its witnesses are asked first
            assert again.predict(rows[:size]).shape == (size,)
    rows, labels = rows[:ECOD_ROWS, :ECOD_COLUMNS], labels[:ECOD_ROWS]
    train = np.flatnonzero(labels == 0)[::3]
    rest = np.delete(np.arange(len(rows)), train)
    ecod = ECOD().fit(rows[train])
    wrap = PACWrap(by_itself(ecod, rows[:0])).fit(rows[rest], labels[rest])
    assert wrap.predict(rows[:9]).shape == (9,)


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
