"""Build the planner: the tables of docs/planner.md, and its script and style from those of the report.

Usage: python docs/planner/planner_page.py (a minute; `--pages` leaves docs/planner/costs.json as it is)

It writes the tables and the costs. The script and the style are written when the site is built.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pac_wrap
from pac_wrap import DensityRatio, LabelNoise, TotalVariation
from pac_wrap.base.files import write_whole
from pac_wrap.base.floats import shared_together
from pac_wrap.method.curves.band import band_of
from pac_wrap.method.planning.plan import TOLERATED
from pac_wrap.method.robust.shift_and_noise import Tolerance
from pac_wrap.method.strategies.raising import Raise
from pac_wrap.report.numbers import ceiling, confidence
from pac_wrap.tails import min_samples, upper_bound
from pac_wrap.tails.bounds import last_true
from pac_wrap.tails.levels import Ladder, local_level

HERE = Path(__file__).parent
PAGE = HERE.parent / "planner.md"
COSTS = HERE / "costs.json"
TEMPLATES = Path(pac_wrap.__file__).parent / "report" / "templates"
BLOCK = re.compile(r"(<!-- planner -->\n).*?(<!-- end of planner -->)", re.DOTALL)
Costs = dict[str, dict[str, dict[str, int]]]
# what the sliders stop at; for these the costs are looked up
CEILINGS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3)
DELTAS = (0.2, 0.1, 0.05, 0.025, 0.02, 0.01, 0.005, 0.001)
# the ceilings, deltas and labels of the tables that need no script
SHOWN = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
USUAL = 0.05
AT_HAND = (20, 50, 100, 200, 500, 1000, 10_000)
COLUMNS = (0.01, 0.05, 0.1)


def curve_labels(rate: float, delta: float) -> int:
    """Return the labels whose curve keeps a ceiling at a threshold without an error: eq. (36)."""
    return _least(
        rate, lambda n: band_of(n, delta).level, delta, lambda n: bool(band_of(n, delta).of([0])[0] <= rate)
    )


def raise_labels(rate: float, delta: float) -> int:
    """Return the labels of the class that pays until `raise` keeps a ceiling without an error: eq. (29)."""
    highest = max(rate, Raise().highest)

    def level(n: int) -> float:
        return local_level(n, rate, delta, highest)

    return _least(rate, level, delta, lambda n: Ladder(n, rate, level(n), highest).kept is not None)


def _least(rate: float, level: Callable[[int], float], delta: float, keeps: Callable[[int], bool]) -> int:
    """Return the least n that keeps a ceiling; a level that hardly changes with n leads close to it."""
    least = n = min_samples(rate, delta)
    for _ in range(3):
        n = min_samples(rate, level(n))
    return 1 + last_true(lambda n: not keeps(n), least - 1, None, n - 1)


def costs() -> Costs:
    """Return the labels that a curve and `raise` take, by delta and by ceiling."""
    return {
        name: {repr(delta): {repr(rate): labels(rate, delta) for rate in CEILINGS} for delta in DELTAS}
        for name, labels in (("curve", curve_labels), ("raise", raise_labels))
    }


def script(found: Costs) -> str:
    """Return the script of the page: the report's helpers, the exact tail, the costs, and the planner."""
    shared = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("numbers.js", "controls.js")]
    tail, page = ((HERE / name).read_text(encoding="utf-8") for name in ("tail.js", "planner.js"))
    data = {"ceilings": CEILINGS, "deltas": DELTAS, "errors": TOLERATED, "costs": found}
    made = json.dumps(data, separators=(",", ":"))
    return f"{''.join(shared)}{tail}PacWrap.plans = {made};\n{page}"


def style() -> str:
    """Return the style of the planner: the report's controls, restricted to the planner."""
    controls = (TEMPLATES / "controls.css").read_text(encoding="utf-8")
    return f"{(HERE / 'planner.css').read_text(encoding='utf-8')}#planner {{\n{controls}}}\n"


def write_files(folder: Path, found: Costs) -> None:
    """Write the script and the style to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "planner.js", script(found))
    write_whole(folder / "planner.css", style())


def tables(found: Costs) -> str:
    """Return the answers to the usual questions, as Markdown."""
    errors = [f"{k}" for k in TOLERATED]
    needed = [[ceiling(rate), *(f"{min_samples(rate, USUAL, k):,}" for k in TOLERATED)] for rate in SHOWN]
    surer = [[ceiling(rate), *(f"{min_samples(rate, delta):,}" for delta in DELTAS)] for rate in SHOWN]
    kept = [[f"{n:,}", *(ceiling(upper_bound(k, n, USUAL)) for k in TOLERATED)] for n in AT_HAND]
    tolerances: dict[str, Tolerance] = {
        "a tolerated shift of 0.005 in total variation": TotalVariation(0.005),
        "a tolerated density ratio of 2": DensityRatio(2),
        "a tolerated density ratio of 5": DensityRatio(5),
        "a tolerance of 5 % wrong labels in the class": LabelNoise(0.05),
    }
    groups = shared_together(USUAL, 20)
    more = [
        ["one threshold by rank, or two (the default)", *_row(lambda e: min_samples(e, USUAL))],
        ['`overlap="raise"`, the larger class', *_row(lambda e: found["raise"][repr(USUAL)][repr(e)])],
        ["a threshold chosen after looking (a curve)", *_row(lambda e: found["curve"][repr(USUAL)][repr(e)])],
        *([name, *_row(partial(_with, tolerance))] for name, tolerance in tolerances.items()),
        ["each of 20 groups, all ceilings together", *_row(lambda e: min_samples(e, groups))],
    ]
    return "\n\n".join(
        [
            "**Labels of a class that a ceiling needs**, at a confidence of 95 %, by the errors among them:",
            _table(["ceiling", *(f"{k} errors" if k != "1" else "1 error" for k in errors)], needed),
            "**Labels of a class that a ceiling needs**, without an error, by confidence:",
            _table(["ceiling", *(confidence(delta) for delta in DELTAS)], surer),
            "**The lowest ceiling that labels at hand can keep**, at 95 %, by the errors among them:",
            _table(["labels", *(f"{k} errors" if k != "1" else "1 error" for k in errors)], kept),
            "**Labels needed for other tasks**, without an error, at 95 %:",
            _table(["task", *(f"ceiling {ceiling(rate)}" for rate in COLUMNS)], more),
        ]
    )


def _row(labels: Callable[[float], int]) -> list[str]:
    return [f"{labels(rate):,}" for rate in COLUMNS]


def _with(tolerance: Tolerance, rate: float) -> int:
    return min_samples(tolerance.before(rate), USUAL)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(text: str, found: Costs) -> str:
    """Return the page with its tables made again."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables(found)}\n\n{block[2]}", text)


if __name__ == "__main__":
    if "--pages" not in sys.argv:
        write_whole(COSTS, json.dumps(costs(), indent=1) + "\n")
    found = json.loads(COSTS.read_text(encoding="utf-8"))
    write_whole(PAGE, page(PAGE.read_text(encoding="utf-8"), found))
