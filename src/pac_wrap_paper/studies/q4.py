"""Q4: how ceilings and deltas change the ambiguity, with overlapping and with separated classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pac_wrap import Guarantee
from pac_wrap.validation import ViolationRate, violation_rate
from pac_wrap_paper.studies.charts import HeatMap
from pac_wrap_paper.studies.scored import sigma_of, synthetic_population
from pac_wrap_paper.studies.study import Progress, Row, Study, StudyTable, silent

GRID: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
# how "a margin of 5" may be read: in standard deviations, as in Q1, or as a distance; and one between
IN_SIGMA, BETWEEN, DISTANCE = "5-sigma", "2-sigma", "distance-5"
READINGS: Final = {
    IN_SIGMA: "clusters 5 standard deviations apart",
    BETWEEN: "clusters 2 standard deviations apart",
    DISTANCE: "clusters at a distance of 5",
}


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One ceiling and one delta, for both rates, on one population."""

    reading: str
    eps: float
    delta: float
    found: ViolationRate


def run(seed: int = 0, trials: int = 100, quick: bool = False, progress: Progress = silent) -> Study:
    """Return the average ambiguity over ceilings and deltas, for three distances of the classes."""
    few = {"n_train": 5_000, "n_test": 10_000} if quick else {}
    cells: list[GridPoint] = []
    margins = {IN_SIGMA: 5.0, BETWEEN: 2.0, DISTANCE: 5.0 / sigma_of(seed)}
    for place, (reading, margin) in enumerate(margins.items()):
        progress(place / len(margins), READINGS[reading])
        population = synthetic_population("isolation forest", seed, margin=margin, **few)
        random = np.random.default_rng([seed, 6, place])
        for eps in GRID:
            for delta in GRID:
                asked = Guarantee(eps, eps, delta, delta)
                scores = population.normal, population.anomalous
                found = violation_rate(*scores, population.sizes, asked, trials=trials, random=random)
                cells.append(GridPoint(reading, eps, delta, found))
    return Study(
        question="q4",
        title="Q4. Ceilings, deltas and ambiguity",
        setting=(
            "The synthetic population of Q1 under an isolation forest, 2,000 calibration points of each"
            f" class, {trials:,} trials for each ceiling (eps, for both rates) and delta. The paper separates"
            " its clusters by a margin of 5 and leaves the unit open. Read as five standard deviations, as in"
            " Q1, they hardly overlap; read as a distance, with sigma^2 drawn from [1, 100] (here sigma is"
            f" {sigma_of(seed):.2f}), they overlap almost completely. Both are shown, and so are"
            " two standard deviations." + (" This is a quick run on smaller data." if quick else ""),
        ),
        tables=(
            StudyTable("ambiguity", "Average ambiguity in each cell", tuple(map(_row, cells)), detail=True),
        ),
        findings=tuple(_findings(cells)),
        charts=tuple(_chart(cells, reading) for reading in READINGS),
    )


def _row(cell: GridPoint) -> Row:
    return {
        "margin": cell.reading,
        "eps": cell.eps,
        "delta": cell.delta,
        "ambiguity": cell.found.ambiguity,
        "separated": cell.found.separated,
    }


def _line(cells: list[GridPoint], reading: str, **fixed: float) -> list[GridPoint]:
    """Return the cells of a reading in which eps or delta has the given value, in the order of the other."""
    (name, value), *_ = fixed.items()
    return [cell for cell in cells if cell.reading == reading and getattr(cell, name) == value]


def _findings(cells: list[GridPoint]) -> Iterator[str]:
    for reading, told in READINGS.items():
        line = _line(cells, reading, delta=0.05)
        split = [cell.eps for cell in line if cell.found.separated.value >= 0.5]
        mixed = [cell.eps for cell in line if cell.found.separated.value < 0.5]
        parts = []
        for regime, levels in (("overlapping", mixed), ("separated", split)):
            ends = [cell.found.ambiguity for cell in line if cell.eps in levels]
            if len(levels) > 1:
                verb = "falls" if ends[-1] < ends[0] else "rises"
                parts.append(
                    f"while most trials are {regime} (eps from {levels[0]:g} to {levels[-1]:g}) the"
                    f" ambiguity {verb} from {ends[0]:.3f} to {ends[-1]:.3f}"
                )
            elif levels:
                parts.append(f"at eps = {levels[0]:g} most trials are {regime} ({ends[0]:.3f})")
        yield f"{told[0].upper()}{told[1:]}, delta = 0.05: {'; '.join(parts)}."
    yield (
        "In words: where the classes overlap, a looser promise lets both thresholds move towards each other,"
        " and fewer points are undecided; once they have passed each other, a looser promise moves them apart"
        " again, and more points are undecided. So the ambiguity is least where the thresholds"
        " meet. The paper reports that it falls with eps and delta throughout: that is what overlapping"
        " classes show, and what its margin of 5 gives if it is a distance."
    )
    spans = {}
    for name in ("eps", "delta"):
        other = "delta" if name == "eps" else "eps"
        values = [cell.found.ambiguity for cell in _line(cells, BETWEEN, **{other: 0.05})]
        spans[name] = max(values) - min(values)
    yield (
        f"Over the grid the ambiguity of {READINGS[BETWEEN]} moves by {spans['eps']:.3f} with eps and by"
        f" {spans['delta']:.3f} with delta; the paper too finds that eps matters more."
    )


def _chart(cells: list[GridPoint], reading: str) -> HeatMap:
    rows = [_line(cells, reading, delta=delta) for delta in GRID]
    return HeatMap(
        reading,
        f"Average ambiguity, {READINGS[reading]}",
        "eps (ceiling of both rates)",
        "delta",
        GRID,
        GRID,
        tuple(tuple(cell.found.ambiguity for cell in row) for row in rows),
        "ambiguity in percent; below it the share of trials whose thresholds are separated",
        tuple(tuple(f"{100 * cell.found.separated.value:.0f} % sep." for cell in row) for row in rows),
    )
