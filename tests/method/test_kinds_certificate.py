"""A certificate of kinds as a file: what contradicts itself is refused, even if its checksum fits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, CertificateError, Curve, Guarantee, InputError, VerdictStream, calibrate
from pac_wrap.base.codec import checksum
from pac_wrap.base.floats import rounded_down

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
RNG = np.random.default_rng(3)
NORMAL = RNG.normal(0, 1, 500)
KINDS = {"a": RNG.normal(4, 1, 200), "b": RNG.normal(3, 1, 90)}
CERTIFICATE = calibrate(NORMAL, KINDS, Guarantee(0.05, {"a": 0.1, "b": 0.2, None: 0.15}))
HELD = calibrate(NORMAL, KINDS, Guarantee(0.05, {"a": 0.1, "b": 0.2}), overlap="hold_fpr")
ONE = calibrate(NORMAL, KINDS, Guarantee(None, 0.1))
Content = dict[str, Any]


def resealed(certificate: Certificate, change: Callable[[Content], object]) -> str:
    """Return its text with a change and a checksum that fits."""
    content = json.loads(certificate.to_json())
    del content["checksum"]
    change(content)
    return json.dumps(content | {"checksum": checksum(content)})


def test_a_file_gives_it_back(tmp_path: Path) -> None:
    for certificate in (CERTIFICATE, HELD, ONE):
        certificate.save(tmp_path / "kinds.json")
        assert Certificate.load(tmp_path / "kinds.json") == certificate
    with pytest.raises(CertificateError, match="is it the right file"):
        Curve.load(tmp_path / "kinds.json")


@pytest.mark.parametrize(
    ("certificate", "place", "changes", "message"),
    [
        (CERTIFICATE, 1, {"budget": 99}, "the budget of anomalous points of kind 'a'"),
        (CERTIFICATE, 1, {"certified": {"ceiling": 0.2}}, "the budget of anomalous points of kind 'a'"),
        (CERTIFICATE, 1, {"ceiling": None}, "the budget of 200 anomalous points of kind 'a' cannot be"),
        (CERTIFICATE, 1, {"threshold": None}, "and a budget, or neither"),
        (CERTIFICATE, 1, {"digest": "x"}, "not a digest"),
        (CERTIFICATE, 1, {"n": -1}, "there cannot be -1 anomalous scores"),
        (CERTIFICATE, 1, {"kind": "b"}, "each once"),
        (CERTIFICATE, 1, {"kind": ""}, "the name of a kind must be a text"),
        (CERTIFICATE, 1, {"error": "false alarm"}, "cannot be a false alarm"),
        (CERTIFICATE, 1, {"delta": 0.01}, "budget|one guarantee"),
        (CERTIFICATE, 1, {"threshold": -9.0}, "does not follow|must lie|beyond|between|threshold of"),
        (CERTIFICATE, 2, {"threshold": 99.0}, "does not follow|must lie|beyond|between|threshold of"),
        (CERTIFICATE, 1, {"n": 201}, "all anomalous points are 291, not 290|the budget of"),
        (HELD, 1, {"certified": {"ceiling": 0.5}}, "the budget of anomalous points of kind"),
        (HELD, 1, {"delta": 0.5}, "budget|one guarantee"),
    ],
)
def test_what_contradicts_itself_is_refused(
    certificate: Certificate, place: int, changes: Content, message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        Certificate.from_json(resealed(certificate, lambda c: c["clauses"][place].update(changes)))


def test_a_class_without_a_clause_is_refused() -> None:
    with pytest.raises(CertificateError, match="has clauses about normal points, then about anomalous ones"):
        Certificate.from_json(resealed(CERTIFICATE, lambda c: c["clauses"].pop(0)))
    with pytest.raises(CertificateError, match="all anomalous points are 200, not 290"):
        Certificate.from_json(resealed(CERTIFICATE, lambda c: c["clauses"].pop(2)))


def test_too_few_labels_leave_no_threshold() -> None:
    few = calibrate(NORMAL, {"a": KINDS["a"], "b": [3.0]})
    with pytest.raises(CertificateError, match="the threshold of anomalous points of kind 'b'"):
        Certificate.from_json(resealed(few, lambda c: c["clauses"][2].update(threshold=1.0)))


def test_a_bound_of_counted_errors_is_the_least_one() -> None:
    ceiling = HELD.clause("anomalous", "a").ceiling
    assert ceiling is not None
    more = {"ceiling": ceiling * 1.0001}
    with pytest.raises(CertificateError, match="the budget of anomalous points of kind"):
        Certificate.from_json(resealed(HELD, lambda c: c["clauses"][1].update(certified=more)))


def test_another_strategy_keeps_no_ceiling_of_a_kind() -> None:
    raised = json.loads(calibrate(NORMAL, KINDS["a"], overlap="raise").to_json())
    with pytest.raises(CertificateError, match="raise keeps no ceiling of a kind"):
        Certificate.from_json(resealed(CERTIFICATE, lambda c: c.update(overlap=raised["overlap"])))


def test_what_is_promised_and_which_kind_binds_is_printed() -> None:
    text = " ".join(str(CERTIFICATE).split())
    assert "FNR of 'a' <= 0.1 (confidence 0.95)" in text
    sides = [
        [one.budget.confidence for one in side if one.budget is not None]
        for side in (CERTIFICATE.of("normal"), CERTIFICATE.of("anomalous"))
    ]
    # the least of each class, however many kinds it has, and the classes multiply
    assert CERTIFICATE.confidence == pytest.approx(min(sides[0]) * min(sides[1]), rel=1e-14)
    assert CERTIFICATE.confidence > 0.9025
    assert f"all of it together with {rounded_down(CERTIFICATE.confidence, 100, 2)} % confidence" in text
    assert "anomalous points of 'b' set the threshold at about 1.707" in text
    assert "all kinds: 290 labels" in text
    assert "but not for the ceiling of all kinds together" in text
    assert "hold_fpr" in str(HELD)
    assert "Nothing is promised, because too few" in str(calibrate([1.0], {"a": [2.0]}))


def test_hostile_names_stay_on_their_line() -> None:
    text = str(calibrate(NORMAL, {"\x1b[31m\nb": KINDS["a"]}))
    assert "\x1b" not in text
    assert "'\\x1b[31m\\nb'" in text


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda one: one.precision(0.1), "mix of kinds"),
        (lambda one: one.workload(0.1), "mix of kinds"),
        (lambda one: one.radius(0.3), "a promise for each kind"),
    ],
)
def test_what_depends_on_the_mix_of_kinds_is_refused(
    call: Callable[[Certificate], object], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        call(CERTIFICATE)


def test_a_rule_of_kinds_decides_streams_as_any_other() -> None:
    (found,) = VerdictStream(CERTIFICATE, [NORMAL])
    np.testing.assert_array_equal(found, CERTIFICATE.rule.verdicts(NORMAL))
