"""Q2: rates on data that neither trained nor calibrated, summaries of their splits, certified ceilings."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binom
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import precision_recall_curve
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from pac_wrap.detectors.scores import anomaly_scores
from pac_wrap_paper.data import load
from pac_wrap_paper.data.dataset import Dataset, Split, semi_supervised_split
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.detectors import DevNet
from pac_wrap_paper.studies import q2, reproduce
from pac_wrap_paper.studies.charts import ScoreChart
from pac_wrap_paper.studies.printed import COLUMNS, Q2
from pac_wrap_paper.studies.q2 import training_rows
from pac_wrap_paper.studies.scored import STRATEGIES, Wrapped, wrap
from pac_wrap_paper.studies.study import Spread, Study
from support.datafolder import needs

EPS = 0.05
RATES = {"or": "original", "tt": "two"}
Fitted = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Wrapping:
    """One detector on one split: what went in, what it was trained on, and what came out."""

    data: Dataset
    split: Split
    detector: Any
    trained_on: Fitted
    wrapped: Wrapped


@dataclass
class Watched:
    """A study with all that it was made from, and what it told about its progress."""

    fitted: list[Fitted] = field(default_factory=list)
    wrappings: list[Wrapping] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    study: Study | None = None

    def rows(self, name: str) -> list[dict[str, Any]]:
        assert self.study is not None
        return [dict(row) for table in self.study.tables if table.name == name for row in table.rows]


def every_fourth(data: Dataset) -> Dataset:
    return replace(data, X=np.ascontiguousarray(data.X[::4]), y=data.y[::4])


@pytest.fixture(scope="module")
def watched() -> Watched:
    needs("campaign", "celeba")
    found = Watched()

    class Boosting(HistGradientBoostingClassifier):
        def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
            found.fitted.append((X, y))
            return super().fit(X, y)

    class Deviation(DevNet):
        def fit(self, X: Any, y: Any) -> Any:
            found.fitted.append((X, y))
            return super().fit(X, y)

    def watch(data: Dataset, split: Split, name: str, seed: int, detector: Any) -> Wrapped:
        wrapped = wrap(data, split, name, seed, detector)
        found.wrappings.append(Wrapping(data, split, detector, found.fitted[-1], wrapped))
        return wrapped

    # threads of two test processes would wait for each other on few cores
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(q2, "HistGradientBoostingClassifier", Boosting)
        patch.setattr(q2, "DevNet", Deviation)
        patch.setattr(q2, "wrap", watch)
        patch.setattr(q2, "load", lambda name: every_fourth(load(name)))
        found.study = reproduce("q2", quick=True, progress=lambda share, _: found.shares.append(share))
    return found


def test_the_three_parts_of_every_split_share_no_row(watched: Watched) -> None:
    assert len(watched.wrappings) == len(watched.fitted) == 8
    for one in watched.wrappings:
        parts = [set(part.tolist()) for part in (one.split.train, one.split.calibration, one.split.test)]
        assert len(set.union(*parts)) == sum(map(len, parts))


def test_devnet_is_trained_on_the_training_part_with_its_few_labels(watched: Watched) -> None:
    for one in watched.wrappings:
        if one.wrapped.detector == "DevNet":
            X, labels = one.trained_on
            assert np.array_equal(X, one.data.X[one.split.train])
            assert int(np.sum(labels)) == 30
            hidden = one.data.y[one.split.train][labels == 0].mean()
            assert 0.019 < hidden <= 0.02


def test_the_supervised_detector_is_trained_on_rows_outside_calibration_and_test(watched: Watched) -> None:
    for one in watched.wrappings:
        if one.wrapped.detector == "gradient boosting":
            held_out = np.union1d(one.split.calibration, one.split.test)
            rows = np.setdiff1d(np.arange(one.data.y.size), held_out)
            X, labels = one.trained_on
            assert np.array_equal(X, one.data.X[rows])
            assert np.array_equal(labels, one.data.y[rows])
            assert rows.size > 0.79 * one.data.y.size


def test_training_rows_are_all_that_is_not_held_out() -> None:
    y = np.repeat([0, 1], [900, 100])
    split = semi_supervised_split(y, np.random.default_rng(0), known=10)
    rows = training_rows(split, y.size)
    assert np.array_equal(np.sort(np.r_[rows, split.calibration, split.test]), np.arange(1000))
    assert np.isin(split.train, rows).all()


def test_both_detectors_meet_the_same_splits_and_another_number_is_another_split(watched: Watched) -> None:
    for data in ("campaign", "celeba"):
        splits = [one.split for one in watched.wrappings if one.wrapped.data == data]
        assert splits[0] is splits[1]
        assert splits[2] is splits[3]
        assert not np.array_equal(splits[0].test, splits[2].test)


def test_two_thresholds_and_their_rates_by_hand(watched: Watched) -> None:
    for one in watched.wrappings:
        X, y = one.data.X, one.data.y
        calibration, test = one.split.calibration, one.split.test
        scores, labels = anomaly_scores(one.detector, X[calibration]), y[calibration]
        normal, anomalous = np.sort(scores[labels == 0])[::-1], np.sort(scores[labels == 1])
        flag_above, miss_below = (part[budget(part.size)] for part in (normal, anomalous))
        fresh, truth = anomaly_scores(one.detector, X[test]), y[test]
        flagged = (fresh > flag_above) & (fresh >= miss_below)
        missed = (fresh <= flag_above) & (fresh < miss_below)
        rates = one.wrapped.two
        assert (rates.fpr.count, rates.fpr.n) == (flagged[truth == 0].sum(), (truth == 0).sum())
        assert (rates.fnr.count, rates.fnr.n) == (missed[truth == 1].sum(), (truth == 1).sum())
        assert rates.ambiguity.count == test.size - flagged.sum() - missed.sum()


def budget(n: int) -> int:
    return int(np.flatnonzero(binom.cdf(np.arange(n), n, EPS) <= EPS)[-1])


def test_the_original_threshold_has_the_greatest_f1_on_the_calibration_part(watched: Watched) -> None:
    for one in watched.wrappings:
        scores = anomaly_scores(one.detector, one.data.X[one.split.calibration])
        precision, recall, cuts = precision_recall_curve(one.data.y[one.split.calibration], scores)
        with np.errstate(invalid="ignore"):
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))[:-1]
        fresh, truth = anomaly_scores(one.detector, one.data.X[one.split.test]), one.data.y[one.split.test]
        best = cuts[np.flatnonzero(f1 >= f1.max() - 1e-12)]
        assert one.wrapped.original.fnr.count in [int((fresh[truth == 1] < cut).sum()) for cut in best]
        assert one.wrapped.original.ambiguity.count == 0


def test_a_held_fnr_is_exactly_its_ceiling_and_the_fpr_a_clopper_pearson_bound(watched: Watched) -> None:
    for row in watched.rows("certified"):
        if row["strategy"] == "hold_fnr":
            assert row["certified FNR"] == Spread(EPS, EPS, EPS)
        if row["strategy"] == "hold_fpr":
            assert row["certified FPR"] == Spread(EPS, EPS, EPS)
    for one in watched.wrappings:
        normal, anomalous = one.wrapped.normal, np.sort(one.wrapped.anomalous)
        errors = int((normal >= anomalous[budget(anomalous.size)]).sum())
        bound = beta.ppf(1 - EPS, errors + 1, normal.size - errors)
        assert one.wrapped.singles["hold_fnr"].max_fpr == pytest.approx(bound, rel=1e-9)


def test_relaxed_ceilings_lie_on_their_grid_and_proving_never_tightens_them(watched: Watched) -> None:
    for one in watched.wrappings:
        singles = one.wrapped.singles
        assert list(singles) == list(STRATEGIES)
        for title, step in (("relax, as printed", 10), ("relax", 10), ("relax, step 0.01", 100)):
            assert (singles[title].max_fpr - EPS) * step == pytest.approx(
                round((singles[title].max_fpr - EPS) * step), abs=1e-6
            )
            assert singles[title].max_fpr == singles[title].max_fnr
        assert singles["relax"].max_fpr >= singles["relax, as printed"].max_fpr
        # each of the two is rounded up to twelve digits
        assert singles["raise"].max_fpr == pytest.approx(singles["raise"].max_fnr, rel=1e-11)
        assert EPS <= singles["raise"].max_fpr <= singles["relax"].max_fpr


def test_the_summaries_are_those_of_the_splits(watched: Watched) -> None:
    splits = watched.rows("splits")
    assert len(splits) == 8
    for row in watched.rows("rates"):
        if row["source"] == "printed":
            continue
        mine = [one for one in splits if (one["data"], one["detector"]) == (row["data"], "DevNet")]
        sources = {"Algorithm 1": "relax, as printed", "proved": "relax", "raise": "raise"}
        single = sources[row["source"]]
        for rate in ("FNR", "FPR"):
            for name in RATES:
                assert row[f"{rate}_{name}"] == spread([one[f"{rate}_{name}"].value for one in mine])
            assert row[f"{rate}_th"] == spread([one[f"{single}: {rate}"].value for one in mine])
        assert row["eps"] == spread([one[f"{single}: max FPR"] for one in mine])
        assert row["ambiguity"] == spread([one["ambiguity_tt"].value for one in mine])
        wrong = [one[f"{single}: FNR"].count + one[f"{single}: FPR"].count for one in mine]
        points = [one[f"{single}: FNR"].n + one[f"{single}: FPR"].n for one in mine]
        assert row["ERR"] == spread([count / n for count, n in zip(wrong, points, strict=True)])


def test_the_certified_ceilings_are_those_of_the_splits(watched: Watched) -> None:
    splits = watched.rows("splits")
    for row in watched.rows("certified"):
        mine = [one for one in splits if (one["data"], one["detector"]) == (row["data"], row["detector"])]
        for rate in ("FPR", "FNR"):
            assert row[f"certified {rate}"] == spread([one[f"{row['strategy']}: max {rate}"] for one in mine])
            assert row[f"measured {rate}"] == spread(
                [one[f"{row['strategy']}: {rate}"].value for one in mine]
            )


def spread(values: list[float]) -> Any:
    """Return what equals a spread over these values up to rounding."""
    return Near(float(np.mean(values)), min(values), max(values))


@dataclass(frozen=True, eq=False)
class Near:
    """A spread that equals another one whose three numbers are the same up to 1e-9."""

    mean: float
    low: float
    high: float

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Spread)
        return np.allclose((self.mean, self.low, self.high), (other.mean, other.low, other.high), 0.0, 1e-9)


def test_the_counts_above_a_ceiling_are_those_of_the_splits(watched: Watched) -> None:
    splits = watched.rows("splits")
    for row in watched.rows("kept"):
        mine = [one for one in splits if (one["data"], one["detector"]) == (row["data"], row["detector"])]
        assert row["splits"] == len(mine) == 2
        for rate in ("FPR", "FNR"):
            assert row[f"{rate}_tt above"] == sum(one[f"{rate}_tt"].value > EPS for one in mine)


@pytest.mark.parametrize("data", Q2)
def test_only_interchanged_do_the_printed_rates_give_the_printed_err(data: str) -> None:
    entry, row = ENTRIES[data], dict(zip(COLUMNS, Q2[data], strict=True))
    share = entry.anomalies / entry.rows
    as_printed = share * row["FNR_th"] + (1 - share) * row["FPR_th"]
    interchanged = share * row["FPR_th"] + (1 - share) * row["FNR_th"]
    # two rates and a result, each rounded to three digits
    assert abs(interchanged - row["ERR"]) < 0.001
    assert abs(as_printed - row["ERR"]) > 0.005


def test_the_table_of_errors_shows_both_and_the_rates_are_shown_interchanged(watched: Watched) -> None:
    for row in watched.rows("errors"):
        assert abs(row["ERR from them interchanged"] - row["printed ERR"]) < 0.001
        assert abs(row["ERR from the columns as printed"] - row["printed ERR"]) > 0.005
    for row in watched.rows("rates"):
        if row["source"] == "printed":
            printed = dict(zip(COLUMNS, Q2[row["data"]], strict=True))
            for name in ("or", "th"):
                swapped = (row[f"FNR_{name}"], row[f"FPR_{name}"])
                assert swapped == (printed[f"FPR_{name}"], printed[f"FNR_{name}"])
            for name in ("FNR_tt", "FPR_tt", "ERR", "eps"):
                assert row[name] == printed[name]


def test_the_scores_are_those_of_the_first_split_of_celeba(watched: Watched) -> None:
    assert watched.study is not None
    scores = watched.study.charts[0]
    assert isinstance(scores, ScoreChart)
    first = next(one.wrapped for one in watched.wrappings if one.wrapped.data == "celeba")
    assert scores.normal is first.normal
    assert scores.certificate == first.certificate


def test_progress_never_falls_and_stays_a_share(watched: Watched) -> None:
    assert watched.shares[0] == 0.0
    assert all(0.0 <= first <= second <= 1.0 for first, second in pairwise(watched.shares))
