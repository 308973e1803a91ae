"""Windows of series, certified by themselves and in units: how often the promises of each are broken."""

import secrets
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from pac_wrap import Day, DependenceWarning, Event
from pac_wrap.series import Points, SeriesSplit, calibrate_points
from pac_wrap.tails import Rate
from pac_wrap_paper.data.series import nasa_channels, smd_machines
from pac_wrap_paper.studies.groups import NAMES, scores_of
from pac_wrap_paper.studies.nasa import between
from pac_wrap_paper.studies.series_runs import ASKED, LEVEL, if_independent
from pac_wrap_paper.studies.smd import pooled
from pac_wrap_paper.studies.study import Progress, Row, Study, StudyTable, silent

SHARE: Final = 0.5
WINDOW: Final = (15, 60)
# the steps of a block, and of the gap between the two parts
BLOCKS: Final = {"smd": (1440, 240), "nasa": (480, 60)}
COUNTED: Final[dict[str, Any]] = {"windows": None, "events": Event(), "blocks, events": [Day(2), Event()]}
# what is a unit, and what is promised about, by what is held out
CERTIFIED: Final = {
    "series": (("none", "windows"), ("block", "windows"), ("series", "windows"), ("series", "events")),
    "blocks": (("none", "windows"), *(("block", counted) for counted in COUNTED)),
}
HEADS: Final = ("data", "held out", "unit", "promise about")
RATES: Final = ("FPR exceeded", "FNR exceeded")
SHARES: Final = ("significantly", "warned", "nothing promised", "undecided")


def run(seed: int = 0, trials: int | None = None, quick: bool = False, progress: Progress = silent) -> Study:
    """Return how often promises are broken on held-out series and blocks, over `trials` divisions, 100."""
    divisions = (4 if quick else 100) if trials is None else trials
    rows: list[Row] = []
    for data, (block, gap) in BLOCKS.items():
        names = (smd_machines() if data == "smd" else nasa_channels())[: 8 if quick else None]
        points = pooled(*scores_of(data, names, progress), *WINDOW)
        for held_out, certified in CERTIFIED.items():
            cut: Any = {"block": block, "gap": gap} if held_out == "blocks" else {"by_series": True}
            randoms = [np.random.default_rng([one, 18]) for one in range(seed, seed + divisions)]
            splits = [(points.divided(random, calibration=SHARE, **cut), random) for random in randoms]
            for unit, counted in certified:
                progress(len(rows) / 16, f"dividing {data}")
                units = {"none": None, "block": block}.get(unit, unit)
                row: Row = dict(zip(HEADS, (NAMES[data], held_out, unit, counted), strict=True))
                rows.append(row | total(points, splits, units, COUNTED[counted]))
    table = StudyTable("broken", "How often promises are broken on the other half", tuple(rows))
    setting, findings = _setting(divisions, quick), tuple(_findings(rows))
    return Study("units", "Windows in units", setting, (table,), findings, ())


def total(points: Points, splits: Sequence[tuple[SeriesSplit, Any]], units: Any, per: Any) -> Row:
    """Return how often each promise is exceeded where it is made, and how often there is none."""
    runs = [_division(points, *pair, units, per) for pair in splits]
    row: Row = {"units that calibrate": None if units is None else runs[0]["units"]}
    for name in RATES:
        made = [run[name] for run in runs if run[name] is not None]
        row[name] = Rate.of(sum(made), len(made), 0.95) if made else None
    row |= {name: float(np.mean([run[name] for run in runs])) for name in SHARES}
    alone = if_independent(points, SHARE)
    return row | (alone if units is None else dict.fromkeys(alone))


def _division(points: Points, split: SeriesSplit, random: Any, units: Any, per: Any) -> dict[str, Any]:
    """Return the outcome of one division; None for a rate about which nothing is promised."""
    # the order of units comes from the seed of the study, so that the study can be repeated
    order = patch.object(secrets, "token_hex", lambda size: random.bytes(size).hex())
    with warnings.catch_warnings(record=True) as caught, order:
        warnings.simplefilter("always")
        made = calibrate_points(points, ASKED, split=split, units=units, per=per)
    normal, anomalous = (points.of_class(side, split.test) for side in (False, True))
    of = None if units is None else points.units(units)
    named = None if of is None else (of[normal], of[anomalous])
    found = made.evaluate(points.scores[normal], points.scores[anomalous], units=named)
    pairs = zip(RATES, found, made.clauses, strict=True)
    return {name: one.rate.value > LEVEL if clause.kept else None for name, one, clause in pairs} | {
        "units": made.fpr.units or made.fpr.n,
        "significantly": any(one.exceeded for one in found),
        "warned": any(one.category is DependenceWarning for one in caught),
        "nothing promised": not made.promises,
        "undecided": made.rule.ambiguity(points.scores[split.test]),
    }


def _setting(divisions: int, quick: bool) -> tuple[str, ...]:
    (day, apart), (block, gap) = BLOCKS.values()
    return (
        f"The detectors are those of groups. A window is the first {WINDOW[0]} of every {WINDOW[1]} steps of"
        f" a series, with their largest score. In {divisions} divisions {100 * SHARE:.0f} % calibrate, and"
        f" the rest is held out: whole series, or blocks of {day:,} steps of a machine (a day) with"
        f" {apart} steps between the parts, {block} and {gap} of a channel. Ceilings and deltas are {LEVEL}."
        " Without a *unit*, windows count as independent. Promises are about windows, about events (anomalous"
        " runs), or about events and about blocks with more than 2 false alarms.",
        "*Exceeded*: of the divisions that promise a rate, those with a rate above the ceiling on the part"
        " held out. This part is finite, so that happens more often than delta even if the promise holds; the"
        " last columns have the exact chance for independent windows. *Significantly*: a test for independent"
        " windows, or units, finds so." + (" Quick run: few series." if quick else ""),
    )


def _findings(rows: list[Row]) -> Iterator[str]:
    groups: list[list[Row]] = [[], [], []]
    for row in rows:
        unit = str(row["unit"])
        groups[0 if unit == "none" else 2 - (unit in str(row["held out"]))].append(row)
    titles = "Windows by themselves", "Units of the kind that is held out", "Blocks as units of new series"
    for title, group in zip(titles, groups, strict=True):
        fpr, fnr, above, warned, _, undecided = (between(group, head) for head in (*RATES, *SHARES))
        yield (
            f"{title}: the FPR ceiling is exceeded in {fpr} of divisions, the FNR ceiling in {fnr}, one of"
            f" them significantly in {above}. The share with a warning is {warned}, and that of undecided"
            f" windows {undecided}."
        )
    chances = [between(groups[0], f"{rate}, if independent") for rate in ("FPR", "FNR")]
    few = [f"{row['units that calibrate']} {row['data']}" for row in rows if row["nothing promised"] == 1.0]
    yield (
        f"If windows were independent, it would be {chances[0]} for the FPR and {chances[1]} for the FNR."
        " A random division of units cannot show whether they depend on each other (docs/theory.md, eq."
        " (20)): blocks that keep a promise about known series say nothing about new ones."
        + f" Too few units for any promise: {few[0]}."
        * bool(few)
    )
