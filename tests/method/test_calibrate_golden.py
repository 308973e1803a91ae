"""The same scores give the same thresholds, verdicts, SQL and digests as ever: golden/calibrations.json."""

import json
import warnings
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, Guarantee, Hold, UpsideDownWarning, VacuousWarning, calibrate
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.strategies.interface import Abstain
from pac_wrap.tables.sql import Dialect, verdict_sql
from support import recipes
from support.kept import kept as kept_by
from support.shell import GOLDEN

KEPT: dict[str, Any] = json.loads((GOLDEN / "calibrations.json").read_text(encoding="ascii"))
CASES: list[dict[str, Any]] = KEPT["cases"]


def number(text: str | None) -> float | None:
    return None if text is None else float.fromhex(text)


def hex_of(value: float | None) -> str | None:
    return None if value is None else float(value).hex()


def strategy(case: dict[str, Any]) -> Overlap:
    word, options = case["strategy"]["overlap"], case["strategy"]["options"]
    if word == "algorithm1":
        return Algorithm1(**options)
    return Abstain(always=True) if word == "abstain" else Hold(word.removeprefix("hold_"))


@cache
def certificate(index: int) -> tuple[Certificate, list[str]]:
    """Return a case's certificate, and the warnings that came with it."""
    case = CASES[index]
    kinds = (case["types"].split() * 2)[:2]
    normal, anomalous = (
        list(scores) if kind == "list" else np.array(scores, dtype=kind)
        for scores, kind in zip(recipes.sample(case["sample"]), kinds, strict=True)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = calibrate(normal, anomalous, Guarantee(*case["asked"]), overlap=strategy(case))
    # newer than the file: that nothing is promised is said, and only then
    vacuous = [one for one in caught if one.category is VacuousWarning]
    assert len(vacuous) == made.empty
    others = [one.category for one in caught if one not in vacuous]
    assert set(others) <= {UpsideDownWarning}
    return made, [category.__name__ for category in others]


def test_the_samples_are_the_same_to_the_last_bit() -> None:
    assert recipes.fingerprint(recipes.PROBES) == KEPT["probes"]["fingerprint"]
    assert list(KEPT["samples"]) == list(recipes.NAMES)
    for name, facts in KEPT["samples"].items():
        assert [recipes.fingerprint(scores) for scores in recipes.sample(name)] == facts["fingerprints"]
        assert [len(scores) for scores in recipes.sample(name)] == facts["sizes"]


@pytest.mark.parametrize("sample", KEPT["samples"])
def test_a_calibration_gives_what_it_gave(sample: str) -> None:
    for index, case in enumerate(CASES):
        if case["sample"] == sample:
            _same(index, case)


def _same(index: int, case: dict[str, Any]) -> None:
    made, warned = certificate(index)
    found = case["found"]
    assert warned == found["warns"]
    assert hex_of(made.thresholds.alarm_from) == found["alarm_from"]
    assert hex_of(made.thresholds.clear_below) == found["clear_below"]
    assert (made.score_type, made.regime.value) == (found["score_type"], found["regime"])
    assert [made.fpr.digest, made.fnr.digest] == found["digests"]
    assert [made.fpr.beyond, made.fnr.beyond] == found["crossing"]
    budgets = [made.fpr.budget, made.fnr.budget]
    assert [one and ("too few" if one.errors is None else one.errors) for one in budgets] == found["errors"]
    _same_promise(made, found["certified"], strategy(case))
    if isinstance(made.overlap, Algorithm1):
        assert [*made.overlap._reached(made.claim)][::-1] == found["levels"]
    edges = [number(found[name]) for name in ("alarm_from", "clear_below", "tau")]
    probed = recipes.probes(*edges, *map(number, found.get("rule", [])))
    assert recipes.verdict_text(made.verdicts(np.array(probed))) == found["verdicts"]


def _same_promise(made: Certificate, kept: list[str | None] | None, overlap: Overlap) -> None:
    """Compare what is certified: exactly, but for the ceiling that comes from SciPy's inverse tail."""
    if made.uncertified or kept is None:
        assert made.uncertified
        assert kept is None
        return
    promised = kept_by(made)
    assert promised is not None
    ours = [promised.max_fpr, promised.max_fnr, promised.delta_fpr, promised.delta_fnr]
    for name, value, text in zip(("FPR", "FNR", "", ""), ours, kept, strict=True):
        theirs = number(text)
        counted = isinstance(overlap, Hold) and name and name not in overlap.keeps
        if value is None or theirs is None or not counted:
            assert hex_of(value) == text
        else:  # rounded up to twelve digits, from the last ones of any SciPy
            assert -1e-12 < value / theirs - 1.0 < 1e-11


@pytest.mark.parametrize("query", KEPT["sql"], ids=lambda query: query["column"])
def test_the_rule_gives_the_sql_it_gave(query: dict[str, Any]) -> None:
    made, _ = certificate(query["case"])
    for dialect in set(get_args(Dialect)) & query.keys():  # the others are newer than the file
        assert verdict_sql(made.rule, query["column"], dialect) == query[dialect]
