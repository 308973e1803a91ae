"""NASA and SMD: tables against the points they were made from, sentences against the tables, seeds again."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy.stats import hypergeom

from pac_wrap.series import Points, dependence, window_points
from pac_wrap.series.points import SeriesSplit
from pac_wrap.tails import Rate
from pac_wrap_paper.data import load, series_names
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import VARIABLE, cache_folder, locate
from pac_wrap_paper.studies.printed import COLUMNS, NASA, SMD
from pac_wrap_paper.studies.series_runs import SeriesRun, rate_rows, wrap_series
from pac_wrap_paper.studies.study import Spread, Study
from statistical.claims import assert_rate
from support.datafolder import needs
from support.strategies import exact_budget

pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

from pac_wrap_paper.studies import (
    nasa,
    reproduce,  # nasa and smd need torch
    series_runs,
    smd,
)

pytestmark = pytest.mark.slow  # both data sets are studied, and their detectors trained
EPS, NEEDED = 0.1, 22
PAPER = {"nasa": NASA, "smd": SMD}
MODULES: dict[str, Any] = {"nasa": nasa, "smd": smd}
BOTH = pytest.mark.parametrize("name", ["nasa", "smd"])


@dataclass
class Watched:
    """A quick study, all divisions it was made from, and what it told about its progress."""

    study: Study
    divisions: list[tuple[Points, SeriesSplit, SeriesRun]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [dict(row) for table in self.study.tables if table.name == name for row in table.rows]


def _told(shares: list[float], share: float, text: str) -> None:
    shares.append(share)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Watched]]:
    needs("nasa", "smd")
    located = locate(ENTRIES["nasa"].files[0])
    assert located is not None
    found: dict[str, Watched] = {}
    # workers keep the environment they were born with, so they are born here and end here
    get_reusable_executor().shutdown(wait=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, os.environ.get(VARIABLE) or str(located.parent))
        for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
            patch.setenv(variable, str(tmp_path_factory.getbasetemp() / "cache of series"))
        for name in MODULES:
            divisions: list[tuple[Points, SeriesSplit, SeriesRun]] = []
            shares: list[float] = []

            def watch(
                title: str, points: Points, parts: SeriesSplit, *rest: Any, kept: Any = divisions
            ) -> SeriesRun:
                one = wrap_series(title, points, parts, *rest)
                if title:
                    kept.append((points, parts, one))
                return one

            with patch.context() as spied:
                spied.setattr(series_runs, "wrap_series", watch)
                study = reproduce(name, quick=True, progress=partial(_told, shares))
            found[name] = Watched(study, divisions, shares)
        yield found
    get_reusable_executor().shutdown(wait=True)


def files() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (cache_folder() / "scores").iterdir()}


@BOTH
def test_rates_have_the_printed_columns_and_a_row_for_each_split(
    watched: dict[str, Watched], name: str
) -> None:
    rows, printed = watched[name].rows("rates"), PAPER[name]
    titles = ["S-1"] if name == "nasa" else list(printed)
    assert list(dict.fromkeys(row["series"] for row in rows)) == titles
    assert {tuple(row) for row in rows} == {
        ("series", "source", *COLUMNS, "eps, proved", "eps, raise", "no ceiling kept")
    }
    for title in titles:
        sources = [row["source"] for row in rows if row["series"] == title]
        assert sources[:3] == ["printed", "random split", "blocks"]
        assert all(re.fullmatch(r"random split, \d\d % calibrate", source) for source in sources[3:])
        (row,) = (row for row in rows if (row["series"], row["source"]) == (title, "printed"))
        # FNR and FPR of or and th stand interchanged in print, those of tt do not
        assert [row[column] for column in COLUMNS] == [printed[title][i] for i in (1, 0, 2, 3, 5, 4, 6, 7)]
    sizes = watched[name].rows("sizes")
    assert [(row["series"], row["source"]) for row in sizes] == [
        (row["series"], row["source"]) for row in rows if row["source"] != "printed"
    ]
    assert {"AUC", "normal", "k*, normal", "effective, normal", "anomalous", "regimes"} <= set(sizes[0])
    assert len(watched[name].rows("seeds")) == len(sizes)


@BOTH
def test_two_thresholds_err_on_the_test_part_as_counted_here(watched: dict[str, Watched], name: str) -> None:
    for (points, parts, one), seed, size in zip(
        watched[name].divisions, watched[name].rows("seeds"), watched[name].rows("sizes"), strict=True
    ):
        assert np.intersect1d(parts.calibration, parts.test).size == 0
        drawn, labels = points.scores[parts.calibration], points.labels[parts.calibration]
        normal, anomalous = np.sort(drawn[labels == 0]), np.sort(drawn[labels == 1])
        budgets = [exact_budget(side.size, EPS, EPS) for side in (normal, anomalous)]
        # alarms lie above the one, cleared points below the other; without a budget there are none
        above = inf if budgets[0] is None else normal[-1 - budgets[0]]
        below = -inf if budgets[1] is None else anomalous[budgets[1]]
        tested, truth = points.scores[parts.test], points.labels[parts.test]
        alarm, clear = (tested > above) & (tested >= below), (tested <= above) & (tested < below)
        assert (seed["FPR_tt"].count, seed["FPR_tt"].n) == (alarm[truth == 0].sum(), (truth == 0).sum())
        assert (seed["FNR_tt"].count, seed["FNR_tt"].n) == (clear[truth == 1].sum(), (truth == 1).sum())
        assert (seed["normal"], seed["anomalous"]) == (normal.size, anomalous.size) == one.sizes
        assert (size["normal"], size["anomalous"]) == one.sizes
        assert [size["k*, normal"], size["k*, anomalous"]] == budgets
        assert (seed["regime"] == "vacuous") == (None in budgets)
        assert size["regimes"] == f"1 {seed['regime']}"
        assert size["tt above"] == sum(seed[rate].value > EPS for rate in ("FPR_tt", "FNR_tt"))
        for kind, flagged in ((0, drawn > above), (1, drawn < below)):
            units = points.positions[parts.calibration][labels == kind] // points.every
            name_of, errors = (
                ("effective, anomalous" if kind else "effective, normal"),
                flagged[labels == kind],
            )
            if errors.all() or not errors.any():
                assert (seed[name_of], size[name_of]) == (None, None)
                continue
            effective = dependence(errors, units, max_lag=points.longest).effective
            assert seed[name_of] == pytest.approx(effective)
            assert size[name_of] == round(effective)
        if parts.kind == "blocks":
            steps = points.positions[parts.calibration]
            distance = np.abs(np.subtract.outer(points.positions[parts.test], steps)).min()
            assert distance - points.length + 1 >= parts.gap == MODULES[name].GAP


@BOTH
def test_means_and_ceilings_are_those_of_the_seeds(watched: dict[str, Watched], name: str) -> None:
    ours = [row for row in watched[name].rows("rates") if row["source"] != "printed"]
    for row, seed in zip(ours, watched[name].rows("seeds"), strict=True):
        for column in COLUMNS[:-1]:
            assert isinstance(seed[column], Rate)
            assert row[column].mean == pytest.approx(seed[column].value, abs=1e-11)
            assert row[column].low == row[column].high == seed[column].value
        assert row["eps"].mean == seed["eps"] <= seed["eps, proved"]
        for column in ("eps, proved", "eps, raise"):
            kept = seed[column] < 1.0
            assert row[column] == (Spread.over([seed[column]]) if kept else None)
            assert EPS <= seed[column] <= 1.0
        assert round(10 * seed["eps"], 9) in range(1, 11)


def test_rows_with_a_larger_share_stand_where_the_usual_one_is_too_small(watched: dict[str, Watched]) -> None:
    seen = set()
    for points, parts, one in watched["smd"].divisions:
        there = int(points.labels.sum())
        if one.share == smd.SHARE:
            assert (one.wrapped.certificate.regime.value == "vacuous") == (one.sizes[1] < NEEDED)
            continue
        seen.add(one.title)
        assert round(smd.SHARE * there) < NEEDED < there
        assert one.sizes[1] >= NEEDED
        assert (one.wrapped.certificate.regime.value == "vacuous", parts.kind) == (False, "random")
    short = {one.title for points, _, one in watched["smd"].divisions if points.labels.sum() > NEEDED}
    assert seen == short == {"15-60", "30-60"}


def drawn_points(there: int, every: int = 240) -> Points:
    random = np.random.default_rng(there)
    labels = np.zeros(600 * every, dtype=int)
    labels[random.choice(600, there, replace=False) * every] = 1
    return window_points(random.normal(labels), labels, length=15, every=every)


@pytest.mark.parametrize("there", [23, 43, 50, 66, 88, 90, 107])
def test_the_larger_share_is_the_smallest_whole_percentage_that_suffices(there: int) -> None:
    points = drawn_points(there)
    (share,) = (one.share for one in smd._runs(points, seed=0) if one.share != smd.SHARE)
    sizes = [
        points.divided(np.random.default_rng(0), calibration=tried).calibration
        for tried in (share, round(share - 0.01, 2))
    ]
    assert points.labels[sizes[0]].sum() >= NEEDED
    assert points.labels[sizes[1]].sum() < NEEDED


@BOTH
def test_sentences_count_what_the_tables_hold(watched: dict[str, Watched], name: str) -> None:
    found, seeds = " ".join(watched[name].study.findings), watched[name].rows("seeds")
    for told, split in (("Random split", "random"), ("Blocks", "blocks")):
        group = [row for row in seeds if row["split"] == split and row["share"] == 0.2]
        reached = sum(row["eps"] <= PAPER[name][row["series"]][-1] for row in group)
        above = sum(row[rate].value > EPS for row in group for rate in ("FPR_tt", "FNR_tt"))
        assert re.search(rf"{told}: [^:]* reached in {reached} of {len(group)} runs", found)
        assert re.search(rf"{told}: [^:]*two thresholds {above} of {2 * len(group)} test rates", found)


@BOTH
def test_no_sentence_holds_a_number_that_is_none(watched: dict[str, Watched], name: str) -> None:
    study = watched[name].study
    for text in (*study.setting, *study.findings, *(table.title for table in study.tables)):
        assert not re.search(r"\b(nan|None|inf|True|False)\b|[{}]", text), text
        assert not re.search(r"\b(\w+) \1\b|  ", text), text
    assert "conditional on mixing" in study.findings[0]


def test_windows_that_are_said_to_have_a_row_with_a_larger_share_have_one(
    watched: dict[str, Watched],
) -> None:
    (text,) = (text for text in watched["smd"].study.findings if "too few anomalous windows" in text)
    rows = {row["series"] for row in watched["smd"].rows("seeds") if row["share"] != smd.SHARE}
    assert set(re.findall(r"\d+-\d+", text)) <= rows


def test_the_check_of_nasa_agrees_with_what_independent_points_do(watched: dict[str, Watched]) -> None:
    (row,) = watched["nasa"].rows("check")
    points = watched["nasa"].divisions[0][0]
    for label, rate in enumerate(("FPR", "FNR")):
        total = int((points.labels == label).sum())
        n = round(0.2 * total)
        budget, allowed = exact_budget(n, EPS, EPS), int((total - n) * EPS)
        assert budget is not None
        exact = float(hypergeom.cdf(budget, total, allowed + budget + 1, n))
        assert row[f"{rate}, if independent"] == pytest.approx(exact, rel=1e-9)
        # false alarm 1e-6; a hundred trials catch what is grossly wrong, tests/statistical the rest
        assert row[f"{rate}, random"].n == row[f"{rate}, blocks"].n == 100
        assert_rate(row[f"{rate}, random"].count, 100, exact)


def test_the_spacing_of_smd_counts_its_windows(watched: dict[str, Watched]) -> None:
    rows = watched["smd"].rows("spacing")
    assert [row["every"] for row in rows] == [15, 30, 60, 120, 240]
    sizes = {one.title: points.labels for points, _, one in watched["smd"].divisions}
    for row in rows:
        assert row["windows"] == row["normal"] + row["anomalous"]
        if f"15-{row['every']}" in sizes:
            labels = sizes[f"15-{row['every']}"]
            assert (row["windows"], row["anomalous"]) == (labels.size, labels.sum())
        for kind in ("normal", "anomalous"):
            if row[f"effective, {kind}"] is not None:
                assert 0 < row[f"effective, {kind}"] <= row[kind]
                assert row[f"spacing, {kind}"] % row["every"] == 0
        assert row["FPR exceeded"].n == row["FNR exceeded"].n == 50


@BOTH
def test_progress_grows_and_stays_below_the_end(watched: dict[str, Watched], name: str) -> None:
    shares = watched[name].shares
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] < 1.0
    assert len(shares) == len([kept for kept in files() if kept.startswith(name)]) + 1


def test_usable_channels_have_22_anomalous_steps_to_calibrate_with() -> None:
    needs("nasa")
    steps = {name: int(load("nasa", name).y.sum()) for name in series_names("nasa")}
    usable = nasa.usable_channels()
    assert usable == tuple(name for name, count in steps.items() if count >= NEEDED / 0.2)
    assert set(NASA) <= set(usable) < set(steps)


def test_a_run_that_certifies_nothing_shows_no_error_rates() -> None:
    # the scores of T-1 lie upside down: no single threshold is certified, so every point is abstained
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], [3000, 1500])
    points = window_points(random.normal(-6.0 * labels), labels)
    parts = points.divided(random)
    (row,) = rate_rows([wrap_series("upside down", points, parts, 0)], {})
    assert (row["eps"], row["ERR"], row["FNR_th"], row["no ceiling kept"]) == (None, None, None, 1)


def test_whole_numbers_that_differ_between_seeds_are_told_by_their_range() -> None:
    assert series_runs._whole([107, 97, 101]) == "97 to 107"
    assert series_runs._whole([1200, 9]) == "9 to 1,200"
    assert series_runs._whole([5, None, 1]) == "none to 5"
    assert (series_runs._whole([3, 3]), series_runs._whole([None, None])) == (3, None)


@BOTH
def test_the_same_seed_gives_the_same_study_from_the_cache_and_after_training_again(
    watched: dict[str, Watched], name: str
) -> None:
    study, before = watched[name].study, files()
    cached = reproduce(name, quick=True)
    assert files() == before
    trained = next(kept for kept in before if kept.startswith(name))  # one of them is trained again
    (cache_folder() / "scores" / trained).unlink()
    anew = reproduce(name, quick=True)
    assert set(files()) == set(before)
    assert files()[trained] > before[trained]
    assert cached == study
    assert anew == study
