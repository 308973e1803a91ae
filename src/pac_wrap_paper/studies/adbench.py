"""ADBench: what thresholds are worth on the field's own tables, beside what can be promised."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from pac_wrap_paper.adbench import rows
from pac_wrap_paper.adbench.chance import LEVEL
from pac_wrap_paper.adbench.detectors import DETECTORS, KNOWN, check_packages
from pac_wrap_paper.adbench.findings import findings
from pac_wrap_paper.adbench.leaderboard import Board, boards
from pac_wrap_paper.adbench.measure import Measuring, measure_all
from pac_wrap_paper.adbench.methods import FEWER
from pac_wrap_paper.adbench.scoring import ENOUGH, KEPT, MOST, TRAIN, Scoring, large_enough, score_all
from pac_wrap_paper.adbench.summary import SIDES, Summary, mean, middle
from pac_wrap_paper.data.adbench import TABLES
from pac_wrap_paper.studies.study import Marks, Panel, PanelChart, Progress, Study, StudyTable

TRIALS: Final = 50
_QUICK_TRIALS: Final = 5
_QUICK_TABLES: Final = ("breastw", "cardio", "Cardiotocography", "Pima")
_QUICK_DETECTORS: Final = ("IForest", "KNN", "HBOS", "ECOD", "boosting", "logistic")
_SCORING: Final = 0.3  # share of the work


def run(
    *,
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = lambda share, text: None,
) -> Study:
    """Return what every threshold does on `trials` divisions of each table, 50 by default."""
    check_packages()
    names = _QUICK_TABLES if quick else large_enough()
    detectors = _QUICK_DETECTORS if quick else tuple(DETECTORS)
    count = trials if trials is not None else _QUICK_TRIALS if quick else TRIALS
    scorings = [Scoring(table, detector, seed) for table in names for detector in detectors]
    scored = score_all(scorings, lambda share, text: progress(_SCORING * share, text))
    measurings = [
        Measuring(scoring, count) for scoring, one in zip(scorings, scored, strict=True) if not one.failure
    ]
    outcomes = measure_all(measurings, lambda share, text: progress(_SCORING + (1 - _SCORING) * share, text))
    summary, failures = Summary(tuple(outcomes), seed), [one for one in scored if one.failure]
    ranked = boards(outcomes)
    return Study(
        question="adbench",
        title="ADBench. What a threshold is worth",
        setting=_setting(len(names), len(detectors), count, quick),
        tables=(
            StudyTable(
                "exceeded",
                "How often a rate is above what the threshold was set up for (mean and range over tables)",
                tuple(rows.exceeded(summary, count)),
            ),
            StudyTable("kept", "Ours, beside the chance that is allowed", tuple(rows.kept(summary))),
            StudyTable(
                "price",
                "What is decided, what ceiling is certified, and what the rates are where there is one"
                " (means)",
                tuple(rows.price(summary)),
            ),
            StudyTable(
                "tables",
                "Table by table: abstain at .05/.05 over all detectors, and the range that detectors span",
                tuple(rows.by_table(summary, ranked)),
            ),
            StudyTable(
                "leaders",
                "Who leads: by AUC, by the ceiling, by the decided share",
                tuple(rows.leaders(ranked)),
            ),
            StudyTable(
                "detectors", "Detectors: means, and mean places", tuple(rows.detectors(ranked, failures))
            ),
            StudyTable(
                "small",
                f"Tables with fewer than {ENOUGH} anomalies: what their labels could promise at best",
                tuple(rows.small_tables()),
            ),
            StudyTable("pairs", "Every pair", tuple(rows.pairs(summary, ranked)), detail=True),
        ),
        findings=tuple(findings(summary, ranked, failures)),
        charts=(_tables_chart(summary, ranked), _detectors_chart(ranked)),
    )


def _setting(tables: int, detectors: int, trials: int, quick: bool) -> tuple[str, ...]:
    fewer = {name: min(trials, number) for name, number in FEWER.items()}
    return (
        f"{tables} of the {len(TABLES)} tables of ADBench that could be had, those with at least {ENOUGH}"
        f" anomalies; larger ones are cut to {MOST:,} rows, each class by its share, but no fewer than"
        f" {KEPT} anomalies are kept. {detectors} detectors with their default settings on standardised"
        f" columns: of either class, {TRAIN:.0%} of the rows train, once, and the rest is scored, once."
        " Detectors without labels see the training rows as they are, anomalies among them; DevNet knows"
        f" {KNOWN} anomalies at most; gradient boosting and logistic regression see all labels of the"
        " training rows.",
        f"The held-out rows are divided {trials} times at random: half of either class calibrates, the other"
        " half is what a rate is counted on. Each detector has divisions of its own. Every number is the"
        " mean over divisions, then detectors, then tables, so that every table counts once; ranges are"
        " those of the tables. Slow packages get fewer divisions:"
        f" {', '.join(f'{name} {number}' for name, number in fewer.items())}.",
        "A threshold *is above what it was set up for* if the rate on the other half exceeds it: 5 % where"
        " it was asked for, what it certifies, the share of alarms, or, for thresholds that are tuned, the"
        " rate that they show on the rows they were tuned with. *Chance at most* is by Theorem 28"
        " (docs/theory.md, section 17). It is exact for hold_fnr and hold_fpr: of the rate that is held, by"
        " (20), without ties, and of the other rate with or without. Else it is an upper bound: over all"
        " orders of the other class for raise, over all thresholds for the curve, and for abstain because it"
        " may use one threshold between its two. *On all rows* counts the rate of all held-out rows, the"
        " population that a division draws from; for the curve, and for raise and the class that does not"
        " pay, only that is known. The p-value is one-sided and judges one division per table, of a detector"
        " that is drawn beforehand; where the chance is an upper bound, so is the p-value.",
        "ECOD and COPOD of PyOD rank a row among the rows that come with it, so a score is no function of"
        " its row and nothing can be promised. Here a row is ranked among the training rows and itself, as"
        " PyOD would if rows came one at a time. Contamination is PyOD's, and counted for the detectors that"
        " train without labels. MAPIE takes probabilities: those of the classifiers, and"
        " for other scores the share of training scores up to them. The curve's threshold is chosen after"
        " looking, once where the larger of both bounds is least, and once where F1 is greatest."
        + (" This is a quick run on few tables, detectors and divisions." if quick else ""),
    )


def _tables_chart(summary: Summary, ranked: Sequence[Board]) -> PanelChart:
    alone = [Summary(tuple(group), summary.seed) for group in summary.by_table.values()]

    def marks(method: str, rate: str) -> tuple[float, ...]:
        return tuple(middle(one.reached(method, rate)) for one in alone)

    def both(method: str, *, chance: bool = False) -> tuple[float, ...]:
        return tuple(
            mean([middle(one.chance(method, rate) if chance else one.above(method, rate)) for rate in SIDES])
            for one in alone
        )

    reached = Panel(
        "error rate on other rows (%), abstain",
        (
            Marks("FPR reached", "ours", marks("abstain", "FPR")),
            Marks("FNR reached, if promised", "second", marks("abstain", "FNR")),
        ),
        LEVEL,
        "promised: at most 5 %",
    )
    broken = Panel(
        "divisions above the ceiling (%), both rates averaged",
        (
            Marks("abstain", "ours", both("abstain")),
            Marks("allowed to abstain, at most", "exact", both("abstain", chance=True)),
            Marks("conformal (crepes)", "other", both("conformal (crepes)")),
            Marks("95th percentile, FPR only", "another", both("95th percentile of normals")),
        ),
    )
    spans = [[one.decided for one in board.standings] for board in ranked]
    decided = Panel(
        "points decided (%): mean, worst to best detector",
        (Marks("abstain", "ours", tuple(map(mean, spans)), tuple(map(min, spans)), tuple(map(max, spans))),),
    )
    return PanelChart(
        "tables",
        "ADBench, table by table: promised, reached, broken, and the price",
        tuple(summary.by_table),
        (reached, broken, decided),
    )


def _detectors_chart(ranked: Sequence[Board]) -> PanelChart:
    names = [name for name in DETECTORS if any(one.detector == name for one in ranked[0].standings)]

    def values(name: str, field: str) -> list[float]:
        return sorted(
            getattr(one, field) for board in ranked for one in board.standings if one.detector == name
        )

    names.sort(key=lambda name: np.median(values(name, "ceiling")))

    def marks(label: str, field: str) -> tuple[Marks, ...]:
        found = [values(name, field) for name in names]
        low, middle, high = (
            tuple(float(np.quantile(one, share)) for one in found) for share in (0.25, 0.5, 0.75)
        )
        return (Marks(label, "ours", middle, low, high),)

    label = "median table, and the middle half of the tables"
    return PanelChart(
        "detectors",
        "ADBench, detector by detector: the AUC, and what can be certified",
        tuple(names),
        (
            Panel("AUC (%)", marks(label, "auc")),
            Panel("ceiling of both rates that raise certifies (%), 100 if none", marks(label, "ceiling")),
            Panel("points that abstain decides at .05/.05 (%)", marks(label, "decided")),
        ),
    )
