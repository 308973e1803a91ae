"""The tables of the study, one for each question, as rows."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan
from typing import Final

import numpy as np

from pac_wrap.tails.bounds import upper_bound
from pac_wrap_paper.adbench.chance import LEVEL
from pac_wrap_paper.adbench.detectors import DETECTORS
from pac_wrap_paper.adbench.leaderboard import Board, Standing
from pac_wrap_paper.adbench.measure import Outcomes
from pac_wrap_paper.adbench.methods import FEWER, OURS, THEIRS
from pac_wrap_paper.adbench.scoring import ENOUGH, Scored
from pac_wrap_paper.adbench.summary import SIDES, Summary, mean, undecided
from pac_wrap_paper.data.adbench import TABLES
from pac_wrap_paper.studies.study import Row, Spread

_DIGITS: Final = 5  # of a mean in the file of all pairs
SET_UP: Final = {
    "contamination .1": ("none", {"alarms": "10 % alarms"}),
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
    """Yield how often a threshold that people use exceeds what it was set up for; ours stand below."""
    for method, (labels, rates) in SET_UP.items():
        for rate, promise in rates.items():
            yield _exceeded(summary, method, rate, promise, labels, min(trials, FEWER.get(method, trials)))
    for method in OURS:
        for rate in SIDES:
            promise = "5 %" if _asked(method, rate) else "certified"
            yield _exceeded(summary, method, rate, f"{promise}, confidence 95 %", "both", trials)


def _asked(method: str, rate: str) -> bool:
    """Return whether a ceiling is the one asked for, and not one that comes with the calibration points."""
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
    """Yield how often ours are broken, beside the chance that is allowed; one division per table counts."""
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
    """Yield what is decided, what is certified and what came of it, for every threshold."""
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
    """Yield who leads each table by AUC, by the certified ceiling and by the decided share."""
    for board in boards:
        auc, ceiling, decided = board.by_auc, board.by_ceiling, board.by_decided
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


def detectors(boards: Sequence[Board], failures: Sequence[Scored]) -> Iterator[Row]:
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
        row: Row = {"table": standing.table, "detector": standing.detector, **_standing(standing)}
        for method in (*THEIRS, *OURS):
            for field in ("FPR", "FNR", "alarms", "decided", "max FPR", "max FNR"):
                row[f"{method}: {field}"] = _number(mean(one.of(method, field)))
            for rate in ("FPR", "FNR", "alarms"):
                row[f"{method}: {rate} above"] = _number(mean(one.above(method, rate)))
        yield row


def _standing(one: Standing) -> Row:
    return {
        "AUC": one.auc,
        "ceiling": one.ceiling,
        "decided": one.decided,
        "equal error": one.crossing,
        "cleared by the budget": one.cleared,
        "alarmed by the budget": one.alarmed,
    }


def _mean(spread: Spread | None) -> float | None:
    return None if spread is None else spread.mean


def _number(value: float) -> float | None:
    return None if isnan(value) else round(value, _DIGITS)
