"""A score must depend on its row alone: what does not is refused at calibration, and nothing else is."""

import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyod.models.cof import COF
from pyod.models.copod import COPOD
from pyod.models.ecod import ECOD
from pyod.models.sod import SOD
from scipy import sparse
from scipy.stats import rankdata
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from pac_wrap import InputError, PACWrap
from pac_wrap.detectors.safety import MOST_ROWS, WITNESSES, Tolerance

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 5)), RNG.normal(2, 1, (200, 5))]
Y = np.repeat([0, 1], [400, 200])


def distance(X: Any) -> Any:
    return np.linalg.norm(np.asarray(X), axis=1)


def softmax(scores: Any) -> Any:
    return np.exp(scores) / np.exp(scores).sum()


DEPENDENT: dict[str, Callable[[Any], Any]] = {
    "minus the mean": lambda X: distance(X) - distance(X).mean(),
    "minus the median": lambda X: distance(X) - np.median(distance(X)),
    "by the spread": lambda X: distance(X) / distance(X).std(),
    "by the largest": lambda X: distance(X) / distance(X).max(),
    "from least to largest": lambda X: (distance(X) - distance(X).min()) / np.ptp(distance(X)),
    "of whitened rows": lambda X: distance((X - X.mean(axis=0)) / X.std(axis=0)),
    "ranks": lambda X: rankdata(distance(X)),
    "quantiles": lambda X: rankdata(distance(X)) / len(X),
    "softmax": lambda X: softmax(distance(X)),
    "from the nearest other": lambda X: np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1],
    "from the row before": lambda X: np.linalg.norm(np.diff(X, axis=0, prepend=0.0), axis=1),
    "a little": lambda X: distance(X) + 1e-2 * X.mean(),
    "chunks of 64": lambda X: np.concatenate(
        [distance(X[i : i + 64]) - distance(X[i : i + 64]).mean() for i in range(0, len(X), 64)]
    ),
}


@pytest.mark.parametrize("copies", [1, 5], ids=["600 rows", "3,000 rows"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_scores_that_depend_on_their_batch_are_refused(name: str, copies: int) -> None:
    if name == "from the nearest other" and copies > 1:
        pytest.skip("a table of all pairs of 3,000 rows takes half a gigabyte")
    rows = np.concatenate([X + 0.1 * RNG.normal(size=X.shape) for _ in range(copies)])
    with pytest.raises(
        InputError, match=r"^the scores of <lambda> depend on the other rows of their batch, .*voids"
    ):
        PACWrap(DEPENDENT[name]).fit(rows, np.tile(Y, copies))


def test_scores_that_are_others_in_a_batch_of_another_size_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"depend on the size of their batch, which voids the promise for any"
    ):
        PACWrap(lambda X: distance(X) / len(X)).fit(X, Y)


def test_the_size_of_a_batch_is_noted_where_the_other_rows_have_no_part() -> None:
    # most distances between rows of zeros and ones tie, and the batch decides which neighbours are taken
    ones = (np.random.default_rng(0).random((1200, 400)) < 0.02).astype(float)
    labels = np.repeat([0, 1], [1100, 100])
    wrap = PACWrap(LocalOutlierFactor(novelty=True), random_state=0).fit(ones, labels)
    scores = wrap.decision_function(ones)
    parts = np.concatenate([wrap.decision_function(part) for part in np.split(ones, 100)])
    if np.allclose(scores, parts, rtol=1e-6):
        pytest.skip("on this machine scikit-learn breaks ties alike in batches of every size")
    first, second = wrap.certificate_.provenance.notes
    assert re.fullmatch(
        r"scores depend on the size of their batch, though not on the other rows in it: in smaller batches"
        r" \d+ of 650 scores differ, by at most [\d.]+, with a spread of all scores of [\d.]+",
        first,
    )
    assert second.endswith("scores computed in batches of the calibration's size, 650 rows")
    assert f" notes {first} " in " ".join(str(wrap.certificate_).split())
    assert pickle.loads(pickle.dumps(wrap)).predict(ones).size == 1200  # its witnesses are asked again


def test_witnesses_forgive_what_the_size_of_a_batch_does_and_no_more() -> None:
    moves = {"by": 0.0}

    def sized(X: Any) -> Any:  # one row in 50 is scored otherwise in a small batch
        return distance(X) + np.where((len(X) < 500) & (X[:, 0] * 1e6 % 50 < 1), 0.1, 0.0) + moves["by"]

    wrap = PACWrap(sized).fit(X, Y)
    notes = wrap.certificate_.provenance.notes
    assert "scores differ, by at most 0.1, with" in notes[0]
    moves["by"] = 0.09
    assert pickle.loads(pickle.dumps(wrap._witness)).scores_of(X, sized, sized).size == 600
    moves["by"] = 0.11
    with pytest.raises(InputError, match="has changed since it was calibrated"):
        pickle.loads(pickle.dumps(wrap._witness)).scores_of(X, sized, sized)


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_little_of_the_other_rows_is_told_from_the_size(name: str) -> None:
    """A hundredth of what depends on the batch is refused for the batch, not noted as its size."""

    def mixed(X: Any) -> Any:
        return distance(X) + 1e-2 * DEPENDENT[name](X)

    with pytest.raises(InputError, match=r"^the scores of mixed depend on the other rows of their batch"):
        PACWrap(mixed).fit(X, Y)


def test_what_cannot_be_scored_beside_copies_is_refused() -> None:
    def fussy(X: Any) -> Any:
        if len(X) > 1 and len(np.unique(X[:, 0])) < len(X):
            raise ValueError("rows repeat")
        return distance(X) + (len(X) < 100)

    with pytest.raises(InputError, match=r"beside other rows they cannot be scored .*rows repeat"):
        PACWrap(fussy).fit(X, Y)


# PyOD's COF calls them, and SciPy 1.18 warns of that
@pytest.mark.filterwarnings(
    "ignore:`(distance_matrix|minkowski_distance(_p)?)` is deprecated:DeprecationWarning"
)
@pytest.mark.parametrize(
    "detector",
    [pytest.param(SOD(), marks=pytest.mark.slow), COF(), ECOD(), COPOD()],
    ids=lambda d: type(d).__name__,
)
def test_pyods_that_look_at_the_batch_are_refused(detector: Any) -> None:
    with pytest.raises(
        InputError, match=rf"the scores of {type(detector).__name__} depend on the other rows"
    ):
        PACWrap(detector, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="depend on the other rows"):
        PACWrap(detector.fit(X[:200])).calibrate(X[200:], Y[200:])


@pytest.mark.filterwarnings(
    "ignore:`(distance_matrix|minkowski_distance(_p)?)` is deprecated:DeprecationWarning",
    "ignore::pac_wrap.errors.UpsideDownWarning",
)
@pytest.mark.parametrize("make", [pytest.param(SOD, marks=pytest.mark.slow), COF, ECOD, COPOD])
def test_a_batch_dependent_detector_is_accepted_beside_rows_that_stay_the_same(make: Any) -> None:
    trained, reference = make().fit(X[:60]), X[60:85]

    def scores(X: Any) -> Any:
        return np.array([trained.decision_function(np.vstack([reference, row]))[-1] for row in X])

    assert PACWrap(scores, max_fpr=0.2, max_fnr=0.2).fit(X[390:410], Y[390:410]).certificate_.fpr.n == 10


def test_what_small_batches_cannot_do_is_said() -> None:
    def needy(X: Any) -> Any:
        if len(X) < 100:
            raise IndexError("index 99 is out of bounds")
        return distance(X)

    with pytest.raises(
        InputError, match=r"^needy scores 600 calibration rows at once, but not 8 of them .*99 is out"
    ):
        PACWrap(needy).fit(X, Y)
    with pytest.raises(InputError, match="600 scores for 444 rows"):
        PACWrap(lambda rows: distance(X)).fit(X, Y)


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "csr": sparse.csr_array,
    "coo": sparse.coo_array,
    "lists": lambda rows: rows.tolist(),
    "float32": lambda rows: rows.astype(np.float32),
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_in_every_container_are_scored_again(container: str) -> None:
    rows = CONTAINERS[container](X)
    if isinstance(rows, pd.DataFrame):
        rows.index = np.arange(600)[::-1]
    honest = PACWrap(OneClassSVM(), random_state=0).fit(rows, Y)
    assert honest.predict(rows).shape == (600,)
    trained = OneClassSVM().fit(rows)
    with pytest.raises(InputError, match="depend on the other rows"):
        PACWrap(lambda X: trained.score_samples(X) - trained.score_samples(X).mean(), polarity="lower").fit(
            rows, Y
        )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 17])
def test_a_handful_of_rows_is_enough(count: int) -> None:
    rows, labels = X[398 : 398 + count], Y[398 : 398 + count]
    assert PACWrap(distance).fit(rows, labels).predict(rows).shape == (count,)
    if count > 1:
        with pytest.raises(InputError, match="depend on the other rows"):
            PACWrap(DEPENDENT["minus the mean"]).fit(rows, labels)


@pytest.mark.parametrize("size", [1, 2, 7, 600, 1000, 1001, 5000])
def test_at_most_a_thousand_rows_are_scored_twice_and_each_once(size: int) -> None:
    asked: list[NDArray[np.float64]] = []

    def listening(X: Any) -> Any:
        asked.append(X[:, 0])
        return X[:, 0]

    rows = np.random.default_rng(1).permutation(size)[:, None].astype(float)
    PACWrap(listening).fit(rows, rows[:, 0] >= size // 2)
    whole, *again = asked
    assert whole.size == size
    together = np.concatenate(again)
    assert together.size == np.unique(together).size == min(size, MOST_ROWS)
    assert len(again) <= 3
    assert all(part.size < size for part in again) or size == 1
    assert again[-1].size == min(WITNESSES, (size + 1) // 2)
    if size > 2:  # the least and the largest bear witness
        assert {together.min(), together.max()} <= set(again[-1].tolist())


def test_the_tolerance_decides_and_is_a_share_of_the_interquartile_range() -> None:
    calls, random = [0], np.random.default_rng(0)

    def jittering(X: Any) -> Any:
        calls[0] += 1
        return X[:, 0] + random.choice([0, 0.003], len(X))  # interquartile range 1, scores of up to 2

    rows = np.linspace(0, 2, 401)[:, None]
    labels = np.arange(401) % 2
    for allowed in (0.0031, 0.1, 7):
        wrap = PACWrap(jittering, score_tolerance=allowed).fit(rows, labels)
        assert [wrap.predict(rows).size for _ in range(5)] == [401] * 5
    for allowed in (0.0014, 1e-5, 0):
        with pytest.raises(
            InputError, match=r"differ, one of them by 0.003 \(.* is allowed\); .* raise score_tolerance"
        ):
            PACWrap(jittering, score_tolerance=allowed).fit(rows, labels)
    calls[0] = 0
    wrap = PACWrap(jittering, score_tolerance=None).fit(rows, labels)
    assert calls == [1]
    wrap.predict(rows)
    assert calls == [2]


def test_precomputed_scores_are_not_asked_for_again() -> None:
    wrap = PACWrap("precomputed").fit(distance(X), Y)
    assert wrap.predict(distance(X)[:3]).size == 3


def test_infinite_scores_equal_themselves_only() -> None:
    def infinite(X: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(X[:, 0], 0.0))

    rows = np.r_[np.zeros((300, 1)), np.full((300, 1), np.inf), np.linspace(1, 2, 100)[:, None]]
    labels = np.arange(700) % 2
    assert PACWrap(infinite).fit(rows, labels).predict(rows).size == 700
    with pytest.raises(InputError, match=r"on the size of their batch.* one of them by inf \("):
        PACWrap(lambda X: np.where(np.isinf(X[:, 0]) & (len(X) < 100), 1e300, infinite(X))).fit(rows, labels)


def test_the_spread_is_the_interquartile_range_of_what_is_finite_or_the_range() -> None:
    def spread(scores: Any) -> float:
        return Tolerance.around(np.array(scores, dtype=float), 1.0).spread

    assert spread(np.arange(101)) == 50.0
    assert spread([*range(101), np.inf, -np.inf]) == 50.0
    assert spread([0.0] * 80 + [5.0] * 20) == 5.0  # the quartiles are tied
    assert spread([3.0, 3.0]) == spread([np.inf, -np.inf]) == spread([1.0]) == 0.0
    assert spread([-1.7e308, -1.7e308, 1.7e308, 1.7e308]) == np.finfo(float).max
    assert spread([0.0, 5e-324, 1e-323, 1.5e-323]) > 0.0


def test_a_large_offset_hides_no_dependence_on_the_batch() -> None:
    def centred(X: Any) -> Any:
        return 1e6 + X[:, 0] - X[:, 0].mean()

    with pytest.raises(InputError, match="depend on the other rows"):
        PACWrap(centred).fit(X, Y)


def test_a_large_offset_in_single_precision_is_forgiven_its_rounding() -> None:
    order = np.random.default_rng(0)

    def single(X: Any) -> Any:  # as a network whose sums come in another order every time
        scores = np.float32(1e6) + X[:, 0].astype(np.float32)
        return np.nextafter(scores, order.choice([-np.inf, np.inf], scores.size).astype(np.float32))

    assert PACWrap(single).fit(X, Y).predict(X).size == len(X)


NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.0, 1.0 + 1e-7, 1.1, -1e300, 1.7e308, -1.7e308, 5e-324, np.inf, -np.inf]
)


@given(
    pairs=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20),
    share=st.sampled_from([0.0, 1e-5, 0.5, 1e300]),
    spread=st.sampled_from([0.0, 5e-324, 1.0, float(np.finfo(float).max)]),
    rounding=st.sampled_from([0.0, 2.0**-36, 2.0**-20]),
)
def test_scores_differ_if_they_are_further_apart_than_is_allowed(
    pairs: list[tuple[float, float]], share: float, spread: float, rounding: float
) -> None:
    before, after = (np.array(side) for side in zip(*pairs, strict=True))
    found = Tolerance(share, spread, rounding).differences(before, after).beyond.tolist()
    for (first, second), beyond in zip(pairs, found, strict=True):
        if first == second:
            assert not beyond
        elif np.isinf([first, second]).any():
            assert beyond
        else:
            # in exact arithmetic, so that nothing overflows
            distance = abs(Fraction(first) - Fraction(second))
            allowed = Fraction(share) * Fraction(spread) + Fraction(rounding) * abs(Fraction(first))
            close = abs(distance - allowed) <= allowed * Fraction(1, 10**12)
            assert close or beyond == (distance > allowed) or distance > np.finfo(float).max
