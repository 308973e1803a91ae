"""Detectors of the study: scores that depend on their own row, cut tables, and scores that are kept."""

from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from pac_wrap.errors import MissingExtraError
from pac_wrap_paper.adbench import scoring
from pac_wrap_paper.adbench.scoring import (
    DETECTORS,
    MOST,
    ColumnTails,
    Scored,
    Scoring,
    check_packages,
    kept_rows,
    large_enough,
)
from pac_wrap_paper.data.dataset import Dataset
from pac_wrap_paper.data.registry import TABLES
from pac_wrap_paper.data.store import results_of
from support.datafolder import empty_cache

RANDOM = np.random.default_rng(5)
X = np.r_[RANDOM.normal(0, 1, (300, 3)), RANDOM.normal(4, 1, (40, 3))].astype(np.float32)
Y = np.repeat(np.array([0, 1], np.int8), [300, 40])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have one small table stand for all, and an empty cache."""
    monkeypatch.setattr(scoring, "load", lambda name, part: Dataset(X, Y, part, "", "", ""))
    return empty_cache(tmp_path, monkeypatch)


def test_there_are_a_dozen_detectors_of_three_kinds() -> None:
    assert len(DETECTORS) >= 12
    assert {how.labels for how in DETECTORS.values()} == {"none", "few", "all"}


@pytest.mark.parametrize("kind", ["ecod", "copod"])
def test_column_tails_are_pyods_scores_of_rows_that_come_one_at_a_time(kind: str) -> None:
    pytest.importorskip("pyod")
    from pyod.models.copod import COPOD
    from pyod.models.ecod import ECOD

    # far from symmetric, so that one row more does not turn the sign of a skewness
    train, rows = np.exp(X[:200].astype(float)), np.exp(X[200:300].astype(float))
    theirs = (ECOD if kind == "ecod" else COPOD)().fit(train)
    ours = ColumnTails("ecod" if kind == "ecod" else "copod").fit(train)
    alone = np.concatenate([theirs.decision_function(rows[i : i + 1]) for i in range(len(rows))])
    assert ours.decision_function(rows) == pytest.approx(alone, rel=1e-12)
    # in company their scores change, which is why they are not used
    assert theirs.decision_function(rows) != pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_score_depends_on_its_own_row_alone(detector: str, cache: Path) -> None:
    pytest.importorskip("pyod")
    together = Scoring("cardio", detector, 0).result()
    assert together.failure == ""
    assert (together.normal.size, together.anomalous.size, together.train.size) == (210, 28, 102)
    assert np.array_equal(together.normal, np.sort(together.normal))
    how = DETECTORS[detector].make(0)
    told = () if DETECTORS[detector].labels == "none" else (Y[::2],)
    how.fit(X[::2].astype(float), *told)
    rows = X[1:20:2].astype(float)
    alone = np.concatenate([how.decision_function(rows[i : i + 1]) for i in range(len(rows))])
    assert how.decision_function(rows) == pytest.approx(alone, rel=1e-6, abs=1e-9)


def test_scores_are_kept_and_read_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Scoring("cardio", name, 3) for name in ("ECOD", "logistic")]
    done: list[str] = []
    with parallel_config("sequential"):  # another process would not know the small table
        first = results_of(wanted, lambda share, text: done.append(text), "scoring")
    assert done == [
        "scoring: 2 to do",
        "scoring: cardio with ECOD is done",
        "scoring: cardio with logistic is done",
    ]
    assert len(list((cache / "scores").iterdir())) == 2
    monkeypatch.setattr(Scoring, "_trained", lambda self: pytest.fail("trained again"))
    for one, again in zip(first, results_of(wanted, lambda share, text: None, "scoring"), strict=True):
        assert (one.table, one.detector, one.failure) == (again.table, again.detector, again.failure)
        assert np.array_equal(one.normal, again.normal)
        assert np.array_equal(one.anomalous, again.anomalous)
    assert first[1].auc > 0.95


def test_a_damaged_file_is_made_anew(cache: Path) -> None:
    one = Scoring("cardio", "COPOD", 0)
    first = one.result()
    one.files[0].write_bytes(b"damaged")
    assert np.array_equal(one.result().normal, first.normal)


def test_another_seed_trains_on_other_rows(cache: Path) -> None:
    first, second = (Scoring("cardio", "ECOD", seed) for seed in (0, 1))
    assert first.files[0] != second.files[0]
    assert not np.array_equal(first.result().normal, second.result().normal)


@pytest.mark.parametrize(("value", "reason"), [(np.nan, "NaN"), (np.inf, "must be finite")])
def test_a_detector_that_gives_no_scores_says_why(
    value: float, reason: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(self: ColumnTails, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), value)

    monkeypatch.setattr(ColumnTails, "decision_function", missing)
    made = Scoring("cardio", "ECOD", 0).result()
    assert isinstance(made, Scored)
    assert reason in made.failure
    assert made.normal.size == made.anomalous.size == 0


@pytest.mark.parametrize(
    ("normal", "anomalous", "kept"),
    [
        (300, 40, (300, 40)),
        (19_000, 1_000, (9_500, 500)),
        (99_800, 200, (9_800, 200)),
        (99_900, 100, (9_900, 100)),
    ],
)
def test_a_large_table_is_cut_by_class(normal: int, anomalous: int, kept: tuple[int, int]) -> None:
    y = np.repeat(np.array([0, 1], np.int8), [normal, anomalous])
    rows = kept_rows(y, np.random.default_rng(1))
    assert (rows[0].size, rows[1].size) == kept
    assert sum(kept) <= MOST
    assert not y[rows[0]].any()
    assert y[rows[1]].all()
    assert len(set(rows[0]) | set(rows[1])) == sum(kept)
    again = kept_rows(y, np.random.default_rng(1))
    assert all(np.array_equal(one, other) for one, other in zip(rows, again, strict=True))


def test_tables_with_a_hundred_anomalies_take_part() -> None:
    assert {name for name, table in TABLES.items() if table.anomalies < 100}.isdisjoint(large_enough())
    assert {"letter", "Waveform", "http"} <= set(large_enough())


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "find_spec", lambda name: None if name == "crepes" else name)
    with pytest.raises(
        MissingExtraError, match=r"compares with crepes, which is not .* \"pac-wrap-ad\[bench\]\"$"
    ):
        check_packages()
