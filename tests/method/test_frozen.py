"""The same scores give the same thresholds, budgets, ceilings and digests as ever: golden/frozen.csv."""

import csv
from collections import Counter, defaultdict
from itertools import groupby
from operator import itemgetter

import pytest

from support.frozen import CASES, TABLE, Row, rows

# others take a fifth of the time and are as much like each other; test_calibrate_golden.py has the numbered
SLOW = {case for case in CASES if case[0].isdigit() or case.endswith(("tops", "raise", "algorithm1"))}
_LONGEST_FIRST = sorted(CASES, key=len, reverse=True)

with TABLE.open(encoding="utf-8", newline="") as _file:
    KEPT: list[Row] = list(csv.DictReader(_file))
FROZEN: dict[str, list[Row]] = defaultdict(list)
for _name, _rows in groupby(KEPT, key=itemgetter("case")):
    # a row of a group, or of a threshold on a curve, names its case first
    _case = _name if _name in CASES else next(case for case in _LONGEST_FIRST if _name.startswith(case))
    FROZEN[_case].extend(_rows)


def wrong(kept: Row, found: Row) -> dict[str, tuple[str, str]]:
    """Return what a row says otherwise than it did; a computed ceiling may be rounded up, never down."""
    return {
        name: (kept[name], found[name])
        for name in kept
        if kept[name] != found[name] and not _is_rounding(name, kept, found)
    }


def _is_rounding(name: str, kept: Row, found: Row) -> bool:
    if name == "beyond" and not kept[name]:  # it was not counted of kinds
        return kept["case"].startswith("kinds")
    if not (kept[name] and found[name]):
        return False
    if name == "confidence":
        return abs(float(kept[name]) - float(found[name])) < 1e-10
    if name in ("rate", "ceiling") and kept[name] != kept["asked"]:
        # the last digits are SciPy's, and differ from one of its versions to the next
        return -1e-12 < float(found[name]) / float(kept[name]) - 1.0 < 1e-11
    return False


def test_every_case_is_frozen_and_reaches_what_it_is_meant_for() -> None:
    assert FROZEN.keys() == CASES.keys()
    regimes = Counter(row["regime"] for row in KEPT)
    assert min(regimes[one] for one in ("separated", "overlapping", "vacuous")) > 90
    assert Counter(row["kind"] != "" for row in KEPT)[True] > 80
    computed = [row for row in KEPT if row["ceiling"] and row["ceiling"] != row["asked"]]
    assert len(computed) > 300


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_case_says_what_it_said(slow: bool) -> None:
    for case in SLOW if slow else CASES.keys() - SLOW:
        found = rows(case)
        assert [one["case"] for one in found] == [one["case"] for one in FROZEN[case]], case
        assert [wrong(*pair) for pair in zip(FROZEN[case], found, strict=True)] == [{}] * len(found), case


@pytest.mark.parametrize(
    ("name", "factor", "refused"),
    [
        ("ceiling", 1 + 5e-12, False),
        ("ceiling", 1 - 5e-12, True),
        ("ceiling", 1 + 5e-10, True),
        ("threshold", 1 + 5e-16, True),
        ("delta", 1 + 5e-15, True),
    ],
)
def test_only_a_computed_ceiling_may_be_rounded_and_only_up(name: str, factor: float, refused: bool) -> None:
    kept = next(row for row in KEPT if row["case"] == "raise, near, as usual")
    changed = kept | {name: repr(float(kept[name]) * factor)}
    assert bool(wrong(kept, changed)) == refused


def test_a_ceiling_that_was_asked_for_stays() -> None:
    kept = next(row for row in KEPT if row["ceiling"] == row["asked"] == "0.05")
    assert wrong(kept, kept | {"ceiling": "0.0500000000001"}).keys() == {"ceiling"}
