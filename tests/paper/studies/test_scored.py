"""Scores of trained detectors: kept under a name that tells them apart, read again, whole or not there."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest

from pac_wrap.errors import OutputError, PACWrapError
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import VARIABLE, cache_folder, locate, results_of
from pac_wrap_paper.studies import scored
from pac_wrap_paper.studies.scored import Training
from support.datafolder import empty_cache, needs
from support.strategies import Floats

WARM_UP, TRAIN, TEST = 3, 40, 25


class Distance(BaseEstimator):
    """The distance from the mean of the training series, after a warm-up; it remembers what it was given."""

    def __init__(self, power: float = 2.0, random_state: int = 0) -> None:
        self.power = power
        self.random_state = random_state

    def fit(self, X: Floats) -> "Distance":
        self.seen_ = [*getattr(self, "seen_", []), X.copy()]
        self.mean_ = X.mean(axis=0) + self.random_state
        return self

    def decision_function(self, X: Floats) -> Floats:
        found = (np.abs(X - self.mean_) ** self.power).sum(axis=1)
        found[:WARM_UP] = np.nan
        return np.asarray(found)


@dataclass
class Series:
    """What the experiments need of a data set."""

    X: Floats
    n_train: int

    @property
    def y(self) -> Floats:
        return np.zeros(len(self.X))


def made(seed: int = 0) -> Series:
    return Series(np.random.default_rng(seed).normal(size=(TRAIN + TEST, 2)), TRAIN)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of a user whose only data set is `made()`."""
    folder = empty_cache(tmp_path, monkeypatch)
    monkeypatch.setattr(scored, "load", lambda name, part: made())
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def silent(share: float, text: str) -> None:
    pass


def test_scores_are_those_of_the_test_part_after_training_on_the_training_part(cache: Path) -> None:
    detector, series = Distance(), made()
    found = Training("nasa", "S-1", detector).result()
    assert [x.tolist() for x in detector.seen_] == [series.X[:TRAIN].tolist()]
    expected = Distance().fit(series.X[:TRAIN]).decision_function(series.X[TRAIN:])
    np.testing.assert_array_equal(found, expected)
    assert np.isnan(found[:WARM_UP]).all()
    assert not np.isnan(found[WARM_UP:]).any()
    assert files(cache) == [Training("nasa", "S-1", Distance()).files[0]]


def test_a_second_call_reads_the_file_and_trains_nothing(cache: Path) -> None:
    first = Training("nasa", "S-1", Distance()).result()
    (path,) = files(cache)
    before = path.stat().st_mtime_ns
    detector = Distance()
    np.testing.assert_array_equal(Training("nasa", "S-1", detector).result(), first)
    shares: list[float] = []
    job = Training("nasa", "S-1", detector)
    (again,) = results_of([job], lambda share, _: shares.append(share), "training")
    np.testing.assert_array_equal(again, first)
    assert not hasattr(detector, "seen_")
    assert shares == []
    assert path.stat().st_mtime_ns == before


def test_the_name_changes_with_everything_the_scores_hang_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = [
        Training("nasa", "S-1", Distance()),
        Training("nasa", "S-1", Distance(random_state=1)),
        Training("nasa", "S-1", Distance(power=1.0)),
        Training("nasa", "S-1", Distance(), normalise=True),
        Training("nasa", "S-2", Distance()),
        Training("smd", "S-1", Distance()),
        Training("nasa", "S-1", type("Other", (Distance,), {})()),
    ]
    names = [training.files[0].name for training in trainings]
    entry = ENTRIES["nasa"]
    changed = replace(entry.files[0], sha256=hashlib.sha256(b"other data").hexdigest())
    with monkeypatch.context() as patch:
        patch.setattr(scored, "ENTRIES", {"nasa": replace(entry, files=(changed, *entry.files[1:]))})
        names.append(trainings[0].files[0].name)
    with monkeypatch.context() as patch:
        patch.setattr(scored, "_METHOD", scored._METHOD + 1)
        names.append(trainings[0].files[0].name)
    assert len(set(names)) == len(names)
    assert all(training.files[0].parent == cache / "scores" for training in trainings)
    assert names[0].startswith("nasa-S-1-")
    assert Training("nasa", "S-1", Distance()).files[0].name == names[0]


def test_training_does_not_change_the_name(cache: Path) -> None:
    training = Training("nasa", "S-1", Distance())
    before = training.files[0]
    training.result()
    assert training.files[0] == before


def test_normalised_scores_are_centred_and_scaled_by_the_training_part_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = made()
    detector = Distance().fit(series.X[:TRAIN])
    usual = np.log(detector.decision_function(series.X[:TRAIN])[WARM_UP:])
    raw = detector.decision_function(series.X[TRAIN:])
    found = Training("nasa", "S-1", Distance(), normalise=True).result()
    np.testing.assert_allclose(found, (np.log(raw) - usual.mean()) / usual.std(), rtol=1e-12)
    assert np.isnan(found[:WARM_UP]).all()

    # another test part changes its own scores, and neither centre nor spread
    other = made()
    other.X[TRAIN:-5] *= 100.0
    monkeypatch.setattr(scored, "load", lambda name, part: other)
    changed = Training("nasa", "S-2", Distance(), normalise=True).result()
    np.testing.assert_array_equal(changed[-5:], found[-5:])
    assert (changed[WARM_UP:-5] > found[WARM_UP:-5]).any()
    # another training part does
    other.X[:TRAIN] *= 2.0
    assert not np.allclose(Training("nasa", "S-3", Distance(), normalise=True).result()[-5:], found[-5:])


def test_a_score_of_zero_stays_finite() -> None:
    found = scored._normalised(np.array([np.nan, 0.0, 1.0]), np.array([np.nan, 0.5, 2.0]))
    assert np.isnan(found[0])
    assert np.isfinite(found[1:]).all()
    assert found[2] == pytest.approx(0.0)


def test_a_detector_that_is_perfect_on_its_training_part_gives_finite_scores() -> None:
    found = scored._normalised(np.array([0.1, 0.3, 1.0]), np.zeros(5))
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()


DAMAGE: dict[str, Any] = {
    "empty": lambda content: b"",
    "other": lambda content: b"something else",
    "cut": lambda content: content[:-5],
    "head": lambda content: content[:40],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_made_again_or_refused_in_a_sentence(cache: Path, kind: str) -> None:
    first = Training("nasa", "S-1", Distance()).result()
    (path,) = files(cache)
    path.write_bytes(DAMAGE[kind](path.read_bytes()))
    try:
        again = Training("nasa", "S-1", Distance()).result()
    except PACWrapError as error:
        assert str(path) in str(error)  # noqa: PT017  # either way is right
    else:
        np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def broken(stream: Any, *_: Any, **__: Any) -> None:
        stream.write(b"half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", broken)
        with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
            Training("nasa", "S-1", Distance()).result()
    assert files(cache) == []
    assert Training("nasa", "S-1", Distance()).result().size == TEST


def test_a_detector_that_fails_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Distance, X: Floats) -> Floats:
        raise ValueError("no")

    monkeypatch.setattr(Distance, "decision_function", failing)
    with pytest.raises(ValueError, match="no"):
        Training("nasa", "S-1", Distance()).result()
    assert files(cache) == []


def test_a_cache_that_cannot_be_made_is_refused_before_training(cache: Path) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("a file where the folder should be", encoding="utf-8")
    detector = Distance()
    with pytest.raises(PACWrapError):
        results_of([Training("nasa", "S-1", detector)], silent, "training")
    assert not hasattr(detector, "seen_")


@pytest.fixture
def workers() -> Iterator[None]:
    """Start with no worker processes: they keep the environment that they were born with."""
    get_reusable_executor().shutdown(wait=True)
    yield
    get_reusable_executor().shutdown(wait=True)


def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Training]:
    """Return trainings on real data with a cache of their own; workers see no patch but the environment."""
    needs("nasa")
    located = locate(ENTRIES["nasa"].files[0])
    assert located is not None
    empty_cache(tmp_path, monkeypatch)
    monkeypatch.setenv(VARIABLE, str(located.parent))
    return [
        Training("nasa", part, IsolationForest(n_estimators=3, random_state=seed))
        for part in ("S-1", "F-7")
        for seed in (0, 1)
    ]


@pytest.mark.slow
def test_in_parallel_the_scores_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: None
) -> None:
    trainings = real(tmp_path / "parallel", monkeypatch)
    shares: list[float] = []
    texts: list[str] = []

    def progress(share: float, text: str) -> None:
        shares.append(share)
        texts.append(text)

    together = results_of(trainings, progress, "training")
    # the workers wrote into the folder that this process names
    assert files(cache_folder()) == sorted(training.files[0] for training in trainings)
    assert shares == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert texts == [
        "training: 4 to do",
        *(f"training: {part} is done" for part in ("S-1", "S-1", "F-7", "F-7")),
    ]
    # half of them are missing: only those are trained
    for training in trainings[:2]:
        training.files[0].unlink()
    shares.clear()
    again = results_of(trainings, progress, "training")
    assert shares == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]
    serial = [training.result() for training in real(tmp_path / "serial", monkeypatch)]
    for scores, second, one in zip(together, again, serial, strict=True):
        np.testing.assert_array_equal(scores, one)
        np.testing.assert_array_equal(second, one)


@pytest.mark.slow
def test_a_cache_folder_that_changes_reaches_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: None
) -> None:
    trainings = real(tmp_path / "first", monkeypatch)
    results_of(trainings, silent, "training")
    first = cache_folder()
    for path in files(first):
        path.unlink()
    real(tmp_path / "second", monkeypatch)
    results_of(trainings, silent, "training")
    assert files(first) == []
