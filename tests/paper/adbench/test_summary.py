"""What is summed up of the outcomes, the leaderboard by hand, and the study on two small tables."""

import re
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from pac_wrap.tails.bounds import error_budget
from pac_wrap_paper.adbench import methods, scoring
from pac_wrap_paper.adbench import study as adbench
from pac_wrap_paper.adbench.chance import fixed_chance, of_others
from pac_wrap_paper.adbench.methods import FIELDS, METHODS, Outcomes
from pac_wrap_paper.adbench.scoring import DETECTORS, Scored
from pac_wrap_paper.adbench.study import SET_UP, share, small_tables
from pac_wrap_paper.adbench.summary import Board, Standing, Summary, boards, equal_error
from pac_wrap_paper.data.dataset import Dataset
from pac_wrap_paper.data.registry import TABLES
from pac_wrap_paper.studies.study import Spread, Study
from support.datafolder import empty_cache

RANDOM = np.random.default_rng(3)
SMALL = {"cardio": 1.0, "letter": 2.5}


def outcomes(table: str, detector: str, **fields: list[float]) -> Outcomes:
    """Return outcomes in which every method has these fields, and NaN elsewhere."""
    divisions = len(next(iter(fields.values())))
    values = np.full((divisions, len(FIELDS)), np.nan)
    for name, numbers in fields.items():
        values[:, FIELDS.index(name.replace("_", " "))] = numbers
    scored = Scored(table, detector, np.zeros(3), np.arange(100.0), np.arange(60.0, 160.0))
    return Outcomes(scored, (200, 100), (200, 100), dict.fromkeys(METHODS, values))


def test_every_table_counts_once() -> None:
    found = Summary(
        (
            outcomes("cardio", "KNN", decided=[0.2, 0.4]),
            outcomes("cardio", "LOF", decided=[0.5, 0.5]),
            outcomes("letter", "KNN", decided=[1.0, 1.0]),
        ),
        0,
    )
    assert found.mean_of("abstain", "decided") == Spread(0.7, 0.4, 1.0)
    assert found.mean_of("abstain", "FPR") is None


def test_the_first_division_of_one_detector_per_table_is_judged() -> None:
    made = tuple(
        outcomes(table, detector, FPR=[0.2, 0.0], max_FPR=[0.05, 0.05])
        for table in ("cardio", "letter", "Pima")
        for detector in ("KNN", "LOF")
    )
    judged = Summary(made, 0).judged("abstain", "FPR")
    assert judged is not None
    budget = error_budget(200, 0.05, 0.05)
    assert budget is not None
    chance = fixed_chance(200, 400, of_others({budget: 0.05}, 200))
    assert (judged.count, judged.n) == (3, 3)
    assert judged.expected == pytest.approx(3 * chance)
    assert judged.p_value == pytest.approx(chance**3)
    everyone = Summary(made, 0).judged("abstain", "FPR", everyone=True)
    assert everyone is not None
    assert (everyone.count, everyone.n) == (6, 6)
    # the FNR might have been promised, and was not broken
    other = Summary(made, 0).judged("abstain", "FNR")
    assert other is not None
    assert (other.count, other.p_value) == (0, 1.0)
    assert Summary(made, 0).judged("greatest F1", "FPR") is None


def test_the_equal_error_by_hand() -> None:
    assert equal_error(np.array([0.0, 1.0]), np.array([2.0, 3.0])) == 0.0
    assert equal_error(np.array([0.0, 3.0]), np.array([1.0, 2.0])) == 0.5
    # upside down, a threshold beyond all scores misses everything, and one below all flags everything
    assert equal_error(np.array([5.0, 6.0]), np.array([1.0, 2.0])) == 1.0


def standing(detector: str, auc: float, ceiling: float, decided: float) -> Standing:
    return Standing("cardio", detector, auc, ceiling, decided, ceiling, decided / 2.0, decided / 2.0)


def test_a_board_has_three_orders() -> None:
    board = Board((standing("a", 0.9, 0.2, 0.3), standing("b", 0.8, 0.1, 0.9), standing("c", 0.7, 0.4, 0.1)))
    assert (board.best("auc").detector, board.best("ceiling").detector, board.best("decided").detector) == (
        "a",
        "b",
        "b",
    )
    assert board.agreement("ceiling") == board.agreement("decided") == 0.5
    assert board.agreement("ends", "decided") == 1.0
    assert [one.detector for one in board.inversion] == ["a", "b"]
    assert [board.rank(one, "ceiling") for one in board.standings] == [2, 1, 3]


def test_where_nothing_is_certified_the_ceiling_is_one() -> None:
    (board,) = boards([outcomes("cardio", "KNN", max_FPR=[0.3, nan], max_FNR=[0.4, nan], decided=[0.5, 0.7])])
    (one,) = board.standings
    assert (one.ceiling, one.decided) == (0.7, 0.6)
    # of 100 labels one may be an error, so it is the second lowest of them, about the lowest anomaly
    assert one.cleared == 60 / 200
    # of 200 labels four may be: the fifth highest of them, about the second highest normal
    assert one.alarmed == (1 + 61) / 200


def test_small_tables_are_listed_with_what_their_labels_could_promise() -> None:
    rows = {str(row["table"]): row for row in small_tables()}
    assert set(rows) == {name for name, table in TABLES.items() if table.anomalies < 100}
    assert rows["Lymphography"]["FNR at best, all calibrate"] == pytest.approx(1 - 0.05 ** (1 / 6))


def test_shares_in_sentences() -> None:
    assert (share(0.5), share(0.051, 1), share(0.002), share(None)) == ("50 %", "5.1 %", "0.2 %", "no")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Run the whole study on two small tables with three detectors."""
    for package in ("pyod", "crepes", "mapie"):
        pytest.importorskip(package)

    def load(name: str, part: str) -> Dataset:
        random = np.random.default_rng(len(part))
        X = np.r_[random.normal(0, 1, (400, 3)), random.normal(SMALL[part], 1, (240, 3))]
        return Dataset(
            X.astype(np.float32), np.repeat(np.array([0, 1], np.int8), [400, 240]), part, "", "", ""
        )

    with pytest.MonkeyPatch.context() as patch, parallel_config("sequential"):
        empty_cache(tmp_path_factory.mktemp("cache"), patch)
        patch.setattr(scoring, "load", load)
        patch.setattr(adbench, "large_enough", lambda: tuple(SMALL))
        few = {name: DETECTORS[name] for name in ("ECOD", "COPOD", "logistic")}
        patch.setattr(adbench, "DETECTORS", few)
        patch.setattr(methods, "FEWER", dict.fromkeys(methods.FEWER, 1))
        return adbench.run(trials=2)


def test_the_study_has_one_table_per_question(study: Study) -> None:
    tables = {table.name: table.rows for table in study.tables}
    assert [len(tables[name]) for name in ("tables", "leaders", "detectors", "pairs")] == [2, 2, 3, 6]
    thresholds = {row["threshold"] for row in tables["exceeded"]}
    assert thresholds == set(METHODS)
    assert {row["threshold"] for row in tables["price"]} == set(METHODS)
    assert len(tables["kept"]) == 12
    # DevNet and classifiers have no contamination, so only the others count
    assert {"contamination 0.1", "greatest F1"} <= set(SET_UP)


def test_its_sentences_are_whole(study: Study) -> None:
    for sentence in (*study.setting, *study.findings):
        assert sentence.endswith("."), sentence
        assert not re.search(r"\b(nan|inf|None)\b", sentence), sentence


def test_its_pictures_have_a_row_for_each_table_and_detector(study: Study) -> None:
    tables, detectors = study.charts
    assert getattr(tables, "rows", ()) == tuple(SMALL)
    assert set(getattr(detectors, "rows", ())) == {"ECOD", "COPOD", "logistic"}
    for chart in study.charts:
        for panel in getattr(chart, "panels", ()):
            for marks in panel.marks:
                assert not all(map(isnan, marks.values)), (panel.axis, marks.label)


def test_a_better_separated_table_is_decided_more(study: Study) -> None:
    (table,) = (table for table in study.tables if table.name == "tables")
    decided = {str(row["table"]): row["decided"] for row in table.rows}
    assert isinstance(decided["letter"], Spread)
    assert isinstance(decided["cardio"], Spread)
    assert decided["letter"].mean > decided["cardio"].mean


def test_two_runs_write_the_same(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from pac_wrap_paper.rendering import write_study

    written = write_study(study, tmp_path, {"command": "pac-wrap reproduce adbench"})
    assert {path.name for path in written} >= {"adbench.md", "adbench-tables.svg", "adbench-detectors.svg"}
