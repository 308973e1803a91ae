"""Kinds: one rule that keeps every ceiling, from the kinds that bind, and what is refused."""

import warnings
from collections.abc import Mapping
from math import inf, nan
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from pac_wrap import (
    Abstain,
    Certificate,
    Guarantee,
    Hold,
    InputError,
    Regime,
    UpsideDownWarning,
    VacuousWarning,
    calibrate,
    calibrate_labelled,
)
from pac_wrap.method.calibrate import Request
from pac_wrap.method.promise import Population
from pac_wrap.method.rule import alarm_from, clear_below
from support.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
RNG = np.random.default_rng(17)
NORMAL = RNG.normal(0, 1, 3000)
STOLEN, TAKEOVER = RNG.normal(5, 1, 800), RNG.normal(3, 1, 300)
KINDS = {"stolen": STOLEN, "takeover": TAKEOVER}
ASKED = Guarantee(max_fpr=0.01, max_fnr={"stolen": 0.02, "takeover": 0.1})
# many ties, both infinities
SCORES = st.lists(st.sampled_from([-inf, -1.0, 0.0, 1.0, 2.0, inf]), max_size=30)
LOOSE = st.sampled_from([0.1, 0.3, 0.5])


def test_the_rule_is_that_of_the_kinds_that_bind() -> None:
    certificate = calibrate(NORMAL, KINDS, ASKED)
    stolen, takeover = certificate.of("anomalous")
    assert (stolen.errors, takeover.errors) == (9, 21)  # k*(800, .02, .05) and k*(300, .1, .05)
    assert stolen.threshold == np.sort(STOLEN)[9]
    assert takeover.threshold == np.sort(TAKEOVER)[21]
    assert certificate.thresholds.clear_below == min(np.sort(STOLEN)[9], np.sort(TAKEOVER)[21])
    assert certificate.fnr is takeover
    alone = calibrate(NORMAL, TAKEOVER, Guarantee(max_fpr=0.01, max_fnr=0.1))
    assert (takeover.budget, takeover.beyond) == (alone.fnr.budget, alone.fnr.beyond)
    assert certificate.rule == alone.rule
    assert certificate.regime is Regime.OVERLAPPING
    np.testing.assert_array_equal(certificate.verdicts(NORMAL), alone.verdicts(NORMAL))


def test_kinds_of_normal_points_take_the_greatest_threshold() -> None:
    kinds = {"weekday": NORMAL[:2000], "weekend": NORMAL[2000:] + 1.0}
    certificate = calibrate(
        kinds, STOLEN, Guarantee(max_fpr={"weekday": 0.01, "weekend": 0.05}, max_fnr=None)
    )
    found = [alarm_from(kinds[one.of.kind or ""], one.errors) for one in certificate.of("normal")]
    assert certificate.thresholds.alarm_from == max(found)
    assert certificate.thresholds.clear_below is None
    assert certificate.fnr.asked is None


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(st.sampled_from("ab"), SCORES, min_size=1),
    st.dictionaries(st.sampled_from("xyz"), SCORES, min_size=1),
    LOOSE,
    LOOSE,
    st.sampled_from(["abstain", "abstain_always", "hold_fnr", "hold_fpr"]),
)
def test_every_part_keeps_its_own_threshold(
    low: Mapping[str, list[float]], high: Mapping[str, list[float]], fpr: float, fnr: float, overlap: str
) -> None:
    asked = Guarantee(fpr, fnr, 0.2, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        if not all(low.values()) and not all(high.values()):
            with pytest.raises(InputError, match="are both empty; pass scores of one of them"):
                calibrate(low, high, asked, overlap=overlap)
            return
        certificate = calibrate(low, high, asked, overlap=overlap)
        again = calibrate(
            dict(reversed(list(low.items()))), dict(reversed(list(high.items()))), asked, overlap=overlap
        )
        assert certificate.verify(low, high)
    assert again == certificate
    assert Certificate.from_json(certificate.to_json()) == certificate
    for name, scores in high.items():
        part = certificate.clause("anomalous", name)
        cleared = np.count_nonzero(certificate.verdicts(scores) == 0) if scores else 0
        if overlap != "hold_fpr":
            assert part.threshold == min(
                clear_below(np.array(scores), part.errors), 1.7976931348623157e308
            ) or (part.threshold == inf)
            assert cleared <= (part.errors or 0)
        elif part.ceiling is not None:
            assert cleared == part.errors
    for name, scores in low.items():
        part = certificate.clause("normal", name)
        alarms = np.count_nonzero(certificate.verdicts(scores) == 1) if scores else 0
        assert alarms <= (part.errors or 0) or part.ceiling is None


def test_a_plain_number_is_the_ceiling_of_every_kind() -> None:
    certificate = calibrate(NORMAL, KINDS, Guarantee(max_fpr=0.01, max_fnr=0.1))
    asked = [one.asked for one in certificate.of("anomalous")]
    assert [(one.ceiling, one.delta) for one in asked if one is not None] == [(0.1, 0.05)] * 2


def test_confidence_is_shared_by_the_two_classes_whether_kinds_are_named_or_not() -> None:
    named = Guarantee(max_fpr=0.01, max_fnr={"stolen": 0.1, "takeover": 0.1}, confidence=0.94)
    plain = Guarantee(max_fpr=0.01, max_fnr=0.1, confidence=0.94)
    first, second = (calibrate(NORMAL, KINDS, asked) for asked in (named, plain))
    assert first == second
    assert first.confidence >= 0.94
    low, *high = (promise.delta for promise in first.promises)
    # one delta for all kinds of a class
    assert high[0] == high[1]
    assert low + high[0] > 0.06 > max(low, high[0])


def test_all_kinds_as_they_come_are_one_more_promise() -> None:
    asked = Guarantee(max_fpr=None, max_fnr={"stolen": None, "takeover": 0.1, None: 0.03})
    certificate = calibrate(NORMAL, KINDS, asked)
    clauses = certificate.of("anomalous")
    assert [one.of.kind for one in clauses] == ["stolen", "takeover", None]
    whole = calibrate(NORMAL, np.concatenate([STOLEN, TAKEOVER]), Guarantee(max_fpr=None, max_fnr=0.03))
    assert clauses[2].threshold == whole.thresholds.clear_below
    assert clauses[0].threshold is None
    assert [promise.of for promise in certificate.promises] == [
        Population("anomalous", "takeover"),
        Population("anomalous"),
    ]
    assert asked.confidence == 0.9


def test_a_kind_with_too_few_labels_makes_it_vacuous_by_name() -> None:
    with pytest.warns(VacuousWarning, match="^'new': 2 labels, too few: at least 59 are needed$"):
        certificate = calibrate(NORMAL, KINDS | {"new": np.array([4.0, 5.0])})
    assert certificate.regime is Regime.VACUOUS
    assert certificate.empty
    assert certificate.fnr.of.kind == "new"
    assert "have 2 labels, and any threshold needs 59" in str(certificate)
    assert "FNR of 'new'" not in str(certificate)


@pytest.mark.parametrize("rate", ["fnr", "fpr"])
def test_holding_counts_the_errors_of_each_other_kind(rate: str) -> None:
    low = {"day": NORMAL[:1500], "night": NORMAL[1500:] + 0.5}
    certificate = calibrate(low, KINDS, Guarantee(max_fpr=0.02, max_fnr=0.05), overlap=f"hold_{rate}")
    assert certificate.rule.single
    label: Literal["normal", "anomalous"] = "normal" if rate == "fnr" else "anomalous"
    counted, scores = certificate.of(label), low if rate == "fnr" else KINDS
    worst = max(part.ceiling or 1.0 for part in counted)
    for part in counted:
        verdicts = certificate.verdicts(scores[part.of.kind or ""])
        wrong = np.count_nonzero(verdicts == (1 if rate == "fnr" else 0))
        assert part.errors == wrong
        assert part.ceiling is not None
        assert part.asked != part.certified
    bound = certificate.fpr if rate == "fnr" else certificate.fnr
    assert bound.ceiling == worst
    assert certificate.overlap == Hold("fnr" if rate == "fnr" else "fpr")
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_holding_with_one_ceiling_decides_by_that_side() -> None:
    certificate = calibrate(NORMAL, KINDS, Guarantee(max_fpr=None, max_fnr=0.1), overlap="hold_fnr")
    assert certificate.overlap == Abstain()


def test_a_count_that_certifies_nothing_is_said() -> None:
    kinds = {"low": np.full(100, -9.0), "high": np.full(100, 9.0)}
    with pytest.warns(UpsideDownWarning, match="AUC 0.000"), pytest.warns(VacuousWarning, match="'low': 100"):
        certificate = calibrate(NORMAL, kinds, overlap="hold_fpr")
    assert {one.of.kind: one.ceiling is None for one in certificate.of("anomalous")} == {
        "low": True,
        "high": False,
    }
    assert certificate.empty
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_a_whole_request_is_taken_as_it_is() -> None:
    request = Request.of(Guarantee(max_fpr=0.01, max_fnr=0.1), "hold_fnr")
    assert calibrate(NORMAL, KINDS, request) == calibrate(
        NORMAL, KINDS, Guarantee(max_fpr=0.01, max_fnr=0.1), overlap="hold_fnr"
    )


def test_kinds_of_different_types_are_all_taken_for_doubles() -> None:
    mixed: dict[str, ArrayLike] = {"stolen": STOLEN.astype(np.float32), "takeover": TAKEOVER}
    certificate = calibrate(NORMAL.astype(np.float32), mixed, ASKED)
    assert certificate.score_type == "float64"
    narrow = calibrate(NORMAL.astype(np.float32), {k: v.astype(np.float32) for k, v in KINDS.items()}, ASKED)
    assert narrow.score_type == "float32"
    assert narrow.verify(NORMAL.astype(np.float32), {k: v.astype(np.float32) for k, v in KINDS.items()})


def test_certificates_without_kinds_are_as_they_were() -> None:
    certificate = calibrate(NORMAL, TAKEOVER, Guarantee(0.01, 0.1, confidence=0.9))
    assert not certificate.by_kind
    assert "kind" not in certificate.to_json()
    assert "together" not in certificate.to_json()
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize(
    ("normal", "anomalous", "asked", "overlap", "message"),
    [
        (
            NORMAL,
            KINDS,
            Guarantee(max_fnr={"stolen": 0.1}),
            None,
            "no ceiling for the anomalous kind 'takeover'",
        ),
        (
            NORMAL,
            {"stolen": STOLEN},
            ASKED,
            None,
            "a ceiling for 'takeover', but no anomalous scores have that kind; the kinds are 'stolen'",
        ),
        (KINDS, STOLEN, ASKED, None, "max_fnr names kinds, but the anomalous scores come without kinds"),
        (NORMAL, KINDS, ASKED, "raise", "overlap 'raise' chooses its threshold for whole classes"),
        (NORMAL, KINDS, ASKED, "algorithm1", "use abstain, hold_fnr or hold_fpr"),
        (NORMAL, {}, None, None, "must have 1 to 40 kinds, got 0"),
        (NORMAL, {str(i): [1.0] for i in range(41)}, None, None, "must have 1 to 40 kinds, got 41"),
        (
            NORMAL,
            {"": STOLEN},
            None,
            None,
            "the name of a kind must be a text of 1 to 200 characters",
        ),
        (NORMAL, {3: STOLEN}, None, None, "the name of a kind must be a text"),
        (NORMAL, {"a": [1.0, nan]}, None, None, "anomalous scores of 'a' must not contain NaN, got 1 of 2"),
        (NORMAL, KINDS, "0.05", None, "guarantee must be a Guarantee"),
        (NORMAL, KINDS, ASKED, "other", "overlap must be one of"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    normal: Any, anomalous: Any, asked: Any, overlap: Any, message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        calibrate(normal, anomalous, asked, overlap=overlap)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_ceilings_of_kinds_need_scores_by_kind() -> None:
    with pytest.raises(InputError, match="'stolen' has its own ceiling"):
        calibrate(NORMAL, STOLEN, ASKED)
    with pytest.raises(InputError, match="--kind"):
        calibrate_labelled([0.1, 0.9], [0, 1], ASKED)


@pytest.mark.parametrize(
    ("ceilings", "message"),
    [
        ({}, "max_fnr names no kind"),
        ({None: 0.1}, "max_fnr names no kind"),
        ({"a": 2.0}, "max_fnr of 'a' must lie strictly between 0 and 1"),
        ({"a": 1e-16}, "max_fnr of 'a' must be at least"),
        ({7: 0.1}, "the name of a kind must be a text"),
    ],
)
def test_a_guarantee_refuses_what_is_no_ceiling_of_a_kind(ceilings: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Guarantee(max_fnr=ceilings)  # type: ignore[arg-type]


def test_a_guarantee_that_promises_nothing_of_any_kind_is_refused() -> None:
    with pytest.raises(InputError, match="promise at least one"):
        Guarantee(max_fpr=None, max_fnr={"a": None})


def test_verification_names_the_kind_that_differs() -> None:
    certificate = calibrate(NORMAL, KINDS, ASKED)
    assert certificate.verify(NORMAL[::-1], dict(reversed(KINDS.items())))
    wrong = certificate.verify(NORMAL, KINDS | {"stolen": STOLEN[1:]})
    assert "anomalous 'stolen'.n is 800 in the certificate, 799 from the scores" in str(wrong)
    other = certificate.verify(NORMAL, {"stolen": STOLEN, "new": TAKEOVER})
    assert "the anomalous kind 'takeover' is only in the certificate" in str(other)
    assert "the anomalous kind 'new' is only among the scores" in str(other)
    with pytest.raises(InputError, match="without kinds"):
        calibrate(NORMAL, TAKEOVER).verify(NORMAL, KINDS)


def test_what_was_measured_is_said_kind_by_kind() -> None:
    certificate = calibrate(NORMAL, KINDS, ASKED)
    found = certificate.evaluate(NORMAL, {"stolen": np.full(50, -9.0), "new": [9.0, -9.0]})
    rows = {one.name: one for one in found}
    assert list(rows) == ["normal points", "anomalous 'stolen'", "anomalous 'new'", "anomalous points"]
    assert rows["anomalous 'stolen'"].exceeded
    assert rows["anomalous 'stolen'"].rate.count == 50
    assert rows["anomalous 'new'"].finding == "nothing promised"
    assert rows["anomalous points"].rate.n == 52
    assert certificate.evaluate({}, [])[0].rate.n == 0
