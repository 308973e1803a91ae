"""Measure what one rule does to the groups of the census, beside a rule for each group; and draw it.

A detector learns from 20,000 people of the census of 1994 and 1995 whose income is above 50,000 dollars. Half
of the test file calibrates; the other half, which neither certificate has seen, is measured.

Usage: python groups.py [PICTURE.svg] (with PAC_WRAP_DATA set)
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from pac_wrap import Guarantee, VacuousWarning, calibrate, calibrate_groups
from pac_wrap.method.metrics import Metrics, Rate, evaluate, is_exceeded
from pac_wrap.paper import data
from pac_wrap.report.figures import style, to_svg

AGE, SEX, WEIGHT, INCOME = 0, 12, 24, 41
ENDS, BANDS = (
    [-1, 29, 39, 49, 59, 69, 200],
    ["below 30", "30 to 39", "40 to 49", "50 to 59", "60 to 69", "70 on"],
)
LEARNED = 20_000
CEILING = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """A group: its rates under one rule for all and under its own, and what of its own is promised."""

    name: str
    one: Metrics
    own: Metrics
    promised: tuple[bool, bool]


def scored() -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.object_]]:
    """Return scores, labels and groups of the people of the test file."""
    train, test = (pd.read_csv(file, header=None, skipinitialspace=True) for file in data.files("census"))
    table = pd.concat([train, test], ignore_index=True)
    label = table[INCOME].astype(str).str.startswith("50000").to_numpy()
    features = table.drop(columns=[WEIGHT, INCOME])
    numbers = features.apply(lambda one: one if one.dtype.kind in "if" else one.astype("category").cat.codes)
    learned = np.random.default_rng(0).permutation(len(train))[:LEARNED]
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    trees.fit(numbers.iloc[learned].to_numpy(), label[learned])
    bands = pd.cut(table[AGE], ENDS, labels=BANDS).astype(str)
    group = (table[SEX].replace({"Male": "men", "Female": "women"}) + ", " + bands).to_numpy()
    rest = slice(len(train), None)
    return trees.decision_function(numbers.iloc[rest].to_numpy()), label[rest], group[rest]


def measured() -> tuple[Measured, list[Measured]]:
    """Return the rates of all people together, and those of each group."""
    score, label, group = scored()
    mine = np.random.default_rng(0).random(score.size) < 0.5
    asked = Guarantee(max_fpr=CEILING, max_fnr=CEILING)
    pooled = calibrate(score[mine & ~label], score[mine & label], asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousWarning)  # what is not promised is shown
        each = calibrate_groups(score[mine], label[mine], group[mine], asked)
    score, label, group = score[~mine], label[~mine], group[~mine]
    one, own = pooled.verdicts(score), each.verdicts(score, group)
    found = []
    for name in (f"{sex}, {band}" for sex in ("men", "women") for band in BANDS):
        here, made = group == name, each.certificates[name]
        budgets = [side.budget for side in (made.normal, made.anomalous)]
        promised = [budget is not None and budget.errors is not None for budget in budgets]
        rates = evaluate(one[here], label[here]), evaluate(own[here], label[here])
        found.append(Measured(name, *rates, (promised[0], promised[1])))
    return Measured("all together", evaluate(one, label), evaluate(own, label), (True, True)), found


def printed(whole: Measured, groups: list[Measured]) -> None:
    """Print the rates as a table, and how many ceilings are significantly exceeded."""
    print(f"{'measured on fresh people':24} {'one rule for all':>25} {'a rule for each group':>25}")
    print(f"{'':24} {'FPR':>8} {'FNR':>8} {'open':>7} {'FPR':>8} {'FNR':>8} {'open':>7}")
    for row in (whole, *groups):
        cells = [(m.fpr.value, m.fnr.value, m.ambiguity.value) for m in (row.one, row.own)]
        texts = (f"{fpr:8.2%} {fnr:8.2%} {left:7.1%}" for fpr, fnr, left in cells)
        print(f"{row.name:24}", *texts)
    for name, chosen in (("one rule for all", "one"), ("a rule for each", "own")):
        rates = [getattr(row, chosen) for row in groups]
        broken = sum(is_exceeded(CEILING, m.fpr) or is_exceeded(CEILING, m.fnr) for m in rates)
        count = f"{broken} of {len(groups)} groups"
        print(f"{name}: significantly above a ceiling of 5 % in {count} (each tested at 5 %)")
    print("groups with too few anomalies for an FNR:", sum(not row.promised[1] for row in groups))


def drawn(whole: Measured, groups: list[Measured]) -> Figure:
    """Return the rates of each group under both rules, beside the ceiling."""
    colours = style()
    figure = Figure(figsize=(8.2, 4.6), dpi=100, layout="constrained", facecolor="white")
    panels = figure.subplots(1, 2, sharey=True)
    rows = [whole, *groups]
    for place, (ax, of) in enumerate(zip(panels, ("fpr", "fnr"), strict=True)):
        for at, row in enumerate(rows):
            _dot(ax, at - 0.14, getattr(row.one, of), colours.anomalous, "o", hollow=True)
            if row.promised[place]:
                _dot(ax, at + 0.14, getattr(row.own, of), colours.normal, "s")
            else:
                ax.text(
                    CEILING + 0.004,
                    at + 0.2,
                    "too few labels: left undecided",
                    size=7,
                    color=colours.normal,
                    va="center",
                )
        ax.axvline(CEILING, color=colours.text, linewidth=1.5)
        ax.text(CEILING + 0.004, -0.95, "ceiling 5 %", size=8, va="center")
        ax.axhline(0.5, color=colours.faint, linewidth=1)
        ax.set_ylim(len(rows) - 0.4, -1.4)
        ax.set_xlim(0.0, None)
        ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
        ax.set_xlabel(("false alarms (FPR)", "missed (FNR)")[place])
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(rows)), [row.name for row in rows])
    handles = [
        panels[0].plot([], [], "o", mfc="white", color=colours.anomalous, label="one rule for all")[0],
        panels[0].plot(
            [], [], "s", color=colours.normal, label="a rule for each group (lines: exact 95 % intervals)"
        )[0],
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    return figure


def _dot(ax: Axes, at: float, rate: Rate, colour: str, marker: str, *, hollow: bool = False) -> None:
    ax.plot([rate.low, rate.high], [at, at], color=colour, linewidth=1.2)
    ax.plot([rate.value], [at], marker, color=colour, mfc="white" if hollow else colour, markersize=5.5)


if __name__ == "__main__":
    found = measured()
    printed(*found)
    if len(sys.argv) > 1:
        alt = "FPR and FNR of each group under one rule for all and under its own, beside the ceiling of 5 %"
        Path(sys.argv[1]).write_text(to_svg(drawn(*found), alt=alt), encoding="utf-8")
