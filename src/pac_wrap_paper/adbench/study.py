"""The study of ADBench: how often thresholds exceed what they were set up for, and ours beside them."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan
from typing import Final

import numpy as np

from pac_wrap.tails import upper_bound
from pac_wrap_paper.adbench.chance import LEVEL
from pac_wrap_paper.adbench.methods import FEWER, OURS, THEIRS, Measuring, Outcomes
from pac_wrap_paper.adbench.scoring import (
    DETECTORS,
    ENOUGH,
    KEPT,
    KNOWN,
    MOST,
    TRAIN,
    Scored,
    Scoring,
    check_packages,
    large_enough,
)
from pac_wrap_paper.adbench.summary import SIDES, Board, Standing, Summary, boards, mean, middle, undecided
from pac_wrap_paper.data.registry import TABLES
from pac_wrap_paper.data.store import results_of
from pac_wrap_paper.studies.charts import Marks, Panel, PanelChart
from pac_wrap_paper.studies.study import Progress, Row, Spread, Study, StudyTable, silent

TRIALS: Final = 50
_QUICK_TRIALS: Final = 5
_QUICK_TABLES: Final = ("breastw", "cardio", "Cardiotocography", "Pima")
_QUICK_DETECTORS: Final = ("IForest", "KNN", "HBOS", "ECOD", "boosting", "logistic")
_SCORING: Final = 0.3  # share of the work


def run(seed: int = 0, trials: int | None = None, quick: bool = False, progress: Progress = silent) -> Study:
    """Return the outcomes of every threshold on `trials` divisions of each table, 50 by default."""
    check_packages()
    names = _QUICK_TABLES if quick else large_enough()
    detectors = _QUICK_DETECTORS if quick else tuple(DETECTORS)
    count = trials if trials is not None else _QUICK_TRIALS if quick else TRIALS
    scorings = [Scoring(table, detector, seed) for table in names for detector in detectors]
    scored: list[Scored] = results_of(
        scorings, lambda share, text: progress(_SCORING * share, text), "scoring"
    )
    measurings = [
        Measuring(scoring, count) for scoring, one in zip(scorings, scored, strict=True) if not one.failure
    ]
    outcomes: list[Outcomes] = results_of(
        measurings, lambda share, text: progress(_SCORING + (1 - _SCORING) * share, text), "dividing"
    )
    summary, failures = Summary(tuple(outcomes), seed), [one for one in scored if one.failure]
    ranked = boards(outcomes)
    return Study(
        question="adbench",
        title="ADBench. Thresholds compared",
        setting=_setting(len(names), len(detectors), count, quick),
        tables=(
            StudyTable(
                "exceeded",
                "How often a rate is above what the threshold was set up for (mean and range over tables)",
                tuple(exceeded(summary, count)),
            ),
            StudyTable("kept", "Our thresholds, beside the chance that is allowed", tuple(kept(summary))),
            StudyTable(
                "price",
                "Points decided, ceilings certified, and the rates where a ceiling is certified (means)",
                tuple(price(summary)),
            ),
            StudyTable(
                "tables",
                "Table by table: abstain at 0.05/0.05 over all detectors, and the range that detectors span",
                tuple(by_table(summary, ranked)),
            ),
            StudyTable(
                "leaders",
                "The best detector of each table: by AUC, by the ceiling, by the decided share",
                tuple(leaders(ranked)),
            ),
            StudyTable(
                "detectors", "Detectors: means, and mean places", tuple(detector_rows(ranked, failures))
            ),
            StudyTable(
                "small",
                f"Tables with fewer than {ENOUGH} anomalies: what their labels could promise at best",
                tuple(small_tables()),
            ),
            StudyTable("pairs", "Every pair", tuple(pairs(summary, ranked)), detail=True),
        ),
        findings=tuple(findings(summary, ranked, failures)),
        charts=(_tables_chart(summary, ranked), _detectors_chart(ranked)),
    )


def _setting(tables: int, detectors: int, trials: int, quick: bool) -> tuple[str, ...]:
    fewer = {name: min(trials, number) for name, number in FEWER.items()}
    return (
        f"The study uses {tables} of the {len(TABLES)} tables of ADBench that can be had: those with at least"
        f" {ENOUGH} anomalies. Larger tables are cut to {MOST:,} rows, each class by its share, but at least"
        f" {KEPT} anomalies are kept. {detectors} detectors have their default settings and get standardised"
        f" columns. {100 * TRAIN:.0f} % of the rows of each class train, once, and the rest is scored, once."
        " Detectors without labels see the training rows as they are, including the anomalies."
        f" DevNet knows at most {KNOWN} anomalies. Gradient boosting and logistic regression see all"
        " labels of the training rows.",
        f"The held-out rows are divided {trials} times at random: half of each class calibrates, and the"
        " rates are counted on the other half. Each detector has its own divisions. Every number is the mean"
        " over divisions, then detectors, then tables, so every table counts once. Ranges are those of the"
        " tables. Slow packages get fewer divisions:"
        f" {', '.join(f'{name} {number}' for name, number in fewer.items())}.",
        "A threshold *is above what it was set up for* if the rate on the other half exceeds the value that"
        " the threshold was set up for. This value is 5 % if 5 % was asked for, the certified ceiling, or the"
        " share of alarms. For tuned thresholds it is the rate that they show on the rows they were tuned"
        " with. *Chance at most* follows from Theorem 28 (docs/theory.md, section 17). It is exact for"
        " hold_fnr and hold_fpr: for the held rate by (20), without ties, and for the other rate with ties or"
        " without. Otherwise it is an upper bound: for raise over all orders of the other class, for the"
        " curve over all thresholds, and for abstain because it may use one threshold between its two. *On"
        " all rows* counts the rate of all held-out rows, the population that a division draws from. For the"
        " curve, and for the class that does not pay under raise, only this chance is known. The p-value is"
        " one-sided. It judges one division per table, of a detector that is drawn beforehand. If the chance"
        " is an upper bound, so is the p-value.",
        "ECOD and COPOD of PyOD rank a row among the rows of its batch, so a score is not a function of its"
        " row, and nothing can be promised. Here, a row is ranked among the training rows and itself, as PyOD"
        " would do if rows came one at a time. Contamination is PyOD's; it is counted for the detectors that"
        " train without labels. MAPIE takes probabilities. Classifiers give their own; for other detectors,"
        " the probability of a row is the share of training scores up to its score. The curve's threshold is"
        " chosen after looking, once where the larger of the two bounds is lowest, and once where F1 is"
        " greatest." + (" This is a quick run on few tables, detectors and divisions." if quick else ""),
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
            Panel("points that abstain decides at 0.05/0.05 (%)", marks(label, "decided")),
        ),
    )


_DIGITS: Final = 5  # of a mean in the file of all pairs
SET_UP: Final = {
    "contamination 0.1": ("none", {"alarms": "10 % alarms"}),
    "contamination, true share": ("their share", {"alarms": "the true share of alarms"}),
    "95th percentile of normals": ("normal", {"FPR": "5 %"}),
    "greatest F1": ("both", {"FPR": "as shown", "FNR": "as shown"}),
    "TunedThresholdClassifierCV": ("both", {"FPR": "as shown", "FNR": "as shown"}),
    "conformal (crepes)": ("both", {"FPR": "5 % on average", "FNR": "5 % on average"}),
    "MAPIE, FPR": ("both", {"FPR": "5 %, confidence 95 %"}),
    "MAPIE, recall": ("both", {"FNR": "5 %, confidence 95 %"}),
}
"""Which labels a threshold that people use takes, and what it is set up for."""


def exceeded(summary: Summary, trials: int) -> Iterator[Row]:
    """Yield how often each threshold exceeds what it was set up for; ours come last."""
    for method, (labels, rates) in SET_UP.items():
        for rate, promise in rates.items():
            yield _exceeded(summary, method, rate, promise, labels, min(trials, FEWER.get(method, trials)))
    for method in OURS:
        for rate in SIDES:
            promise = "5 %" if _asked(method, rate) else "certified"
            yield _exceeded(summary, method, rate, f"{promise}, confidence 95 %", "both", trials)


def _asked(method: str, rate: str) -> bool:
    """Return whether a ceiling was requested, and not found from the calibration points."""
    return method == "abstain" or method == f"hold_{rate.lower()}"


def _exceeded(summary: Summary, method: str, rate: str, promise: str, labels: str, divisions: int) -> Row:
    return {
        "threshold": method,
        "labels": labels,
        "set up for": f"{'share' if rate == 'alarms' else rate}: {promise}",
        "divisions above it": summary.above(method, rate),
        "chance at most": _mean(summary.chance(method, rate)),
        "divisions": divisions,
    }


def kept(summary: Summary) -> Iterator[Row]:
    """Yield how often our promises are broken, beside the allowed chance; one division per table counts."""
    for method in OURS:
        for rate in SIDES:
            rest, whole = summary.judged(method, rate), summary.judged(method, rate, whole=True)
            yield {
                "threshold": method,
                "rate": rate,
                "broken on the other rows": _mean(summary.above(method, rate)),
                "chance at most": _mean(summary.chance(method, rate)),
                "one per table": None if rest is None else f"{rest.count} of {rest.n}",
                "p-value": None if rest is None else rest.p_value,
                "broken on all rows": _mean(summary.above(method, rate, whole=True)),
                "chance at most, all rows": _mean(summary.chance(method, rate, whole=True)),
                "one per table, all rows": None if whole is None else f"{whole.count} of {whole.n}",
                "its p-value": None if whole is None else whole.p_value,
            }


def price(summary: Summary) -> Iterator[Row]:
    """Yield for every threshold the points decided, the ceilings certified and the rates reached."""
    for method in (*THEIRS, *OURS):
        ours = method in OURS
        yield {
            "threshold": method,
            "decided": summary.mean_of(method, "decided"),
            "ceiling of the FPR": _mean(summary.mean_of(method, "max FPR")) if ours else None,
            "ceiling of the FNR": _mean(summary.mean_of(method, "max FNR")) if ours else None,
            "FPR": _mean(summary.over_tables(partial(_rate, method=method, rate="FPR"))),
            "FNR": _mean(summary.over_tables(partial(_rate, method=method, rate="FNR"))),
            "no threshold": _mean(summary.over_tables(partial(undecided, method=method))),
        }


def _rate(one: Outcomes, method: str, rate: str) -> float:
    """Return the mean of a rate over the divisions in which it has a ceiling, or for others a threshold."""
    counted = ~np.isnan(one.of(method, f"max {rate}")) if method in OURS else one.of(method, "decided") > 0.0
    return mean(one.of(method, rate)[counted])


def by_table(summary: Summary, boards: Sequence[Board]) -> Iterator[Row]:
    """Yield one row per table: promised, reached, broken, decided, averaged over detectors."""
    for (table, group), board in zip(summary.by_table.items(), boards, strict=True):
        only = Summary(tuple(group), summary.seed)
        anomalies = group[0].sizes[1] + group[0].others[1]
        yield {
            "table": table,
            "rows": TABLES[table].rows,
            "anomalies": TABLES[table].anomalies,
            "held out": sum(group[0].sizes) + sum(group[0].others),
            "anomalies held out": anomalies,
            "labels, normal": group[0].sizes[0],
            "labels, anomalous": group[0].sizes[1],
            "FPR": _mean(only.mean_of("abstain", "FPR")),
            "FNR": _mean(only.reached("abstain", "FNR")),
            "FPR broken": _mean(only.above("abstain", "FPR")),
            "by (20)": _mean(only.chance("abstain", "FPR")),
            "FNR broken": _mean(only.above("abstain", "FNR")),
            "FNR by (20)": _mean(only.chance("abstain", "FNR")),
            "conformal, FPR broken": _mean(only.above("conformal (crepes)", "FPR")),
            "percentile, FPR broken": _mean(only.above("95th percentile of normals", "FPR")),
            "decided": Spread.over([one.decided for one in board.standings]),
            "ceiling": Spread.over([one.ceiling for one in board.standings]),
        }


def leaders(boards: Sequence[Board]) -> Iterator[Row]:
    """Yield the best detector of each table by AUC, by the certified ceiling and by the decided share."""
    for board in boards:
        auc, ceiling, decided = map(board.best, ("auc", "ceiling", "decided"))
        yield {
            "table": board.table,
            "best AUC": auc.detector,
            "AUC": auc.auc,
            "its ceiling": auc.ceiling,
            "its decided": auc.decided,
            "best ceiling": ceiling.detector,
            "ceiling": ceiling.ceiling,
            "most decided": decided.detector,
            "decided": decided.decided,
            "orders, AUC and ceiling": board.agreement("ceiling"),
            "orders, AUC and decided": board.agreement("decided"),
        }


def detector_rows(boards: Sequence[Board], failures: Sequence[Scored]) -> Iterator[Row]:
    """Yield each detector's mean place by three orders, and its means."""
    for name, how in DETECTORS.items():
        places = [(board, one) for board in boards for one in board.standings if one.detector == name]
        if not places:
            continue
        row: Row = {"detector": name, "labels in training": how.labels, "tables": len(places)}
        for title, field in (("AUC", "auc"), ("ceiling", "ceiling"), ("decided", "decided")):
            row[title] = mean([getattr(one, field) for _, one in places])
            row[f"place by {title}"] = mean([float(board.rank(one, field)) for board, one in places])
        row["without scores"] = sum(one.detector == name for one in failures)
        yield row


def small_tables() -> Iterator[Row]:
    """Yield the tables with too few anomalies: the least ceilings that their labels could keep."""
    for name, table in TABLES.items():
        if table.anomalies < ENOUGH:
            yield {
                "table": name,
                "rows": table.rows,
                "anomalies": table.anomalies,
                "FNR at best, all calibrate": upper_bound(0, table.anomalies, LEVEL),
                "FNR at best, half": upper_bound(0, table.anomalies // 2, LEVEL),
                "FPR at best, all calibrate": upper_bound(0, table.rows - table.anomalies, LEVEL),
            }


def pairs(summary: Summary, boards: Sequence[Board]) -> Iterator[Row]:
    """Yield one row per table and detector with everything, for the file."""
    standings = {(one.table, one.detector): one for board in boards for one in board.standings}
    for one in summary.outcomes:
        standing = standings[one.scored.table, one.scored.detector]
        row: Row = {"table": standing.table, "detector": standing.detector, "AUC": standing.auc}
        row |= {"ceiling": standing.ceiling, "decided": standing.decided, "equal error": standing.crossing}
        row |= {"cleared by the budget": standing.cleared, "alarmed by the budget": standing.alarmed}
        for method in (*THEIRS, *OURS):
            for field in ("FPR", "FNR", "alarms", "decided", "max FPR", "max FNR"):
                row[f"{method}: {field}"] = _number(mean(one.of(method, field)))
            for rate in ("FPR", "FNR", "alarms"):
                row[f"{method}: {rate} above"] = _number(mean(one.above(method, rate)))
        yield row


def _mean(spread: Spread | None) -> float | None:
    return None if spread is None else spread.mean


def _number(value: float) -> float | None:
    return None if isnan(value) else round(value, _DIGITS)


def share(found: Spread | float | None, digits: int = 0) -> str:
    """Return a share as a percentage for a sentence.

    >>> share(0.0512), share(0.0512, 1), share(0.004)
    ('5 %', '5.1 %', '0.4 %')
    """
    value = found.mean if isinstance(found, Spread) else found
    if value is None:
        return "no"
    return f"{100 * value:.{max(digits, int(0 < value < 0.0095))}f} %"


def findings(summary: Summary, boards: Sequence[Board], failures: Sequence[Scored]) -> Iterator[str]:
    """Yield the findings: usual thresholds, ours, their cost, and the leaderboard."""
    yield from _theirs(summary)
    yield from _ours(summary)
    yield from _costs(summary, boards)
    yield from _orders(boards)
    if failures:
        names = ", ".join(sorted({f"{one.detector} on {one.table}" for one in failures}))
        yield f"Without scores, because training or scoring failed with the default settings: {names}."


def _theirs(summary: Summary) -> Iterator[str]:
    percentile, conformal = (
        summary.above(method, "FPR") for method in ("95th percentile of normals", "conformal (crepes)")
    )
    misses = summary.above("conformal (crepes)", "FNR")
    yield (
        "A 95th percentile of normal scores is set up for an FPR of 5 %; it is above 5 % in"
        f" {share(percentile)} of the divisions. Conformal prediction keeps 5 % on average over calibrations,"
        f" and on a given one it does not in {share(conformal)} (FPR) and {share(misses)} (FNR): an average"
        " is not a confidence."
    )
    f1 = [summary.above("greatest F1", rate) for rate in SIDES]
    tuned = [summary.above("TunedThresholdClassifierCV", rate) for rate in SIDES]
    yield (
        "The rates that a tuned threshold shows on its own rows are no ceilings. With the greatest F1 the FPR"
        f" on other rows is above the one shown in {share(f1[0])} of the divisions and the FNR in"
        f" {share(f1[1])}, with TunedThresholdClassifierCV in {share(tuned[0])} and {share(tuned[1])};"
        " without any tuning, half would be above."
    )
    default, true = (summary.above(f"contamination{name}", "alarms") for name in (" 0.1", ", true share"))
    alarms = summary.mean_of("contamination, true share", "FNR")
    yield (
        "Contamination sets a share of alarms, not an error rate: with PyOD's default of 0.1 more than 10 %"
        f" of the other rows are alarms in {share(default)} of the divisions, with the true share more than"
        f" that share in {share(true)}, and {share(alarms)} of the anomalies are missed then."
    )
    mapie = summary.above("MAPIE, FPR", "FPR"), summary.above("MAPIE, recall", "FNR")
    nothing = [summary.over_tables(partial(undecided, method=f"MAPIE, {name}")) for name in ("FPR", "recall")]
    missed = [summary.over_tables(partial(_missed, method=method)) for method in ("MAPIE, FPR", "hold_fpr")]
    yield (
        "MAPIE's controller makes the promise that hold_fpr and hold_fnr make for the held rate, and keeps"
        f" it: it is above in {share(mapie[0])} (FPR) and {share(mapie[1])} (FNR) of the divisions. It tries"
        f" 100 thresholds, and finds none in {share(nothing[0])} and {share(nothing[1])}. Where it finds one"
        f" for the FPR it misses {share(missed[0])} of the anomalies, and hold_fpr {share(missed[1])} on the"
        " same divisions; hold_fpr also certifies the FNR."
    )


def _missed(one: Outcomes, method: str) -> float:
    """Return the FNR of a method on the divisions in which MAPIE found a threshold for the FPR."""
    found = np.flatnonzero(one.of("MAPIE, FPR", "decided") > 0.0)
    return mean(one.of(method, "FNR")[found])


def _ours(summary: Summary) -> Iterator[str]:
    above = [summary.above("abstain", rate) for rate in SIDES]
    chance = [summary.chance("abstain", rate) for rate in SIDES]
    whole = [summary.above("abstain", rate, whole=True) for rate in SIDES]
    yield (
        f"Abstain at 0.05/0.05: on the other rows the FPR is above 5 % in {share(above[0], 1)} of the"
        f" divisions, where (20) allows {share(chance[0], 1)}, and the FNR in {share(above[1], 1)}, where it"
        f" allows {share(chance[1], 1)}; the other rows vary, too. On all held-out rows, the population that"
        f" a division draws from, it is {share(whole[0], 1)} and {share(whole[1], 1)}, where 5 % are"
        " promised."
    )
    everyone = [summary.judged("abstain", rate, everyone=True) for rate in SIDES]
    text = [
        f"{rate} {found.count} of {found.n} above, {found.expected:.1f} expected at most (p-value"
        f" {found.p_value:.2f})"
        for rate, found in zip(SIDES, everyone, strict=True)
        if found is not None
    ]
    yield (
        "Given the scores, divisions are independent draws, so the first one of every table and detector"
        f" can be judged together: {'; '.join(text)}."
    )
    free = (("hold_fnr", "FPR"), ("hold_fpr", "FNR"))
    found, expected = ([of(*one) for one in free] for of in (summary.above, summary.chance))
    yield (
        "Ceilings that are found from the rows are kept as well, and no more cautiously: the FPR that"
        f" hold_fnr certifies is exceeded in {share(found[0], 1)} of the divisions, the FNR that hold_fpr"
        f" certifies in {share(found[1], 1)}; given the thresholds, {share(expected[0], 1)} and"
        f" {share(expected[1], 1)} had to be expected, exactly."
    )
    others = [(method, rate) for method in OURS for rate in SIDES]
    worst = max(others, key=lambda one: middle(summary.above(*one, whole=True)))
    yield (
        f"On all held-out rows none of the {len(others)} promises is broken in more than"
        f" {share(middle(summary.above(*worst, whole=True)), 1)} of the divisions ({worst[0]}, {worst[1]},"
        f" where at most {share(summary.chance(*worst, whole=True), 1)} is allowed): half of a table"
        " resembles the whole more than independent draws would."
    )


def _costs(summary: Summary, boards: Sequence[Board]) -> Iterator[str]:
    decided, conformal = (summary.mean_of(one, "decided") for one in ("abstain", "conformal (crepes)"))
    low = [board for board in boards if mean([one.decided for one in board.standings]) < 0.5]
    best = mean([board.best("decided").decided for board in boards])
    yield (
        f"The price: abstain decides {share(decided)} of the points on average over detectors, and less than"
        f" half on {len(low)} of {len(boards)} tables; with the best detector of each table {share(best)}."
        f" Conformal prediction, which promises less, decides {share(conformal)}."
    )
    few = [group[0].sizes[1] for group in summary.by_table.values()]
    lacking = sum(count < 59 for count in few)
    yield (
        f"On {lacking} of {len(few)} tables fewer than 59 anomalies calibrate: no FNR of 5 % can be promised"
        " there, and abstain calls nothing normal. Raise certifies what the labels can keep instead."
    )
    ceilings = [
        summary.over_tables(partial(_ceiling, method=method)) for method in ("raise", "curve", "curve at F1")
    ]
    missing = mean([float(np.isnan(one.of("raise", "max FPR")).mean() > 0.5) for one in summary.outcomes])
    yield (
        "Choosing after looking costs something, too: where raise certifies a ceiling of both rates, it is"
        f" {middle(ceilings[0]):.3f} on average, and {middle(ceilings[1]):.3f} at the best threshold of the"
        " curve, which holds for every other one as well; at the threshold of greatest F1 it is"
        f" {middle(ceilings[2]):.3f}. For {share(missing)} of the pairs of table and detector raise finds no"
        " ceiling up to 0.5 in most divisions."
    )


def _ceiling(one: Outcomes, method: str) -> float:
    """Return the larger ceiling of a method on the divisions in which raise certifies one."""
    found = ~np.isnan(one.of("raise", "max FPR"))
    larger = np.fmax(one.of(method, "max FPR"), one.of(method, "max FNR"))
    return mean(np.where(np.isnan(larger), 1.0, larger)[found])


def _orders(boards: Sequence[Board]) -> Iterator[str]:
    ceiling, decided = (
        mean([board.agreement(field) for board in boards]) for field in ("ceiling", "decided")
    )
    same = [
        sum(board.best("auc") == board.best(field) for board in boards) for field in ("ceiling", "decided")
    ]
    why = [
        mean([board.agreement(*fields) for board in boards])
        for fields in (("crossing", "ceiling"), ("ends", "decided"))
    ]
    yield (
        "Orders of detectors: by AUC and by the ceiling that raise certifies they agree with a mean rank"
        f" correlation of {ceiling:.2f}, and the same detector leads on {same[0]} of {len(boards)} tables;"
        f" by AUC and by the decided share with {decided:.2f} and {same[1]}."
    )
    yield (
        "Why they differ: the AUC averages over all thresholds. A balanced ceiling needs one point of the"
        f" curve, the equal error rate: the two orders agree at {why[0]:.2f}. The decided share needs the"
        " ends of both classes: what lies below the few lowest anomalies, and above the few highest"
        f" normals, that the error budgets leave. Its order agrees at {why[1]:.2f} with that of these"
        " shares."
    )
    for board in sorted(boards, key=lambda one: one.agreement("decided"))[:3]:
        first, other = board.inversion
        if other.decided > first.decided:
            yield (
                f"{board.table} (agreement {board.agreement('decided'):.2f}): {first.detector} has an AUC of"
                f" {first.auc:.3f} and decides {share(first.decided)}, {other.detector} has {other.auc:.3f}"
                f" and decides {share(other.decided)}. {_reason(first, other)}"
            )


def _reason(first: Standing, other: Standing) -> str:
    """Return which end of the scores makes one detector decide less, or that labels are few."""
    low, high = other.cleared - first.cleared, other.alarmed - first.alarmed
    if max(low, high) <= 0.0:
        return "Neither end of all scores explains it: with few labels the ends vary between divisions."
    if low >= high:
        return (
            f"Below the lowest anomalies, where they may be cleared, lie {share(first.cleared)} of the rows"
            f" with the one and {share(other.cleared)} with the other."
        )
    return (
        f"Above the highest normals, where they may be flagged, lie {share(first.alarmed)} of the rows with"
        f" the one and {share(other.alarmed)} with the other."
    )
