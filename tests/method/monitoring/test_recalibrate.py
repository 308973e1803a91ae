"""Certificates that follow each other: what each may take of delta, what is written, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import (
    Algorithm1,
    Certificate,
    CertificateError,
    Guarantee,
    InputError,
    Rule,
    UpsideDownWarning,
    VacuousWarning,
    calibrate,
    certify_curve,
    recalibrate,
)
from pac_wrap.method.provenance import Lineage
from support.kept import kept
from support.resealed import NUMBERS, OTHERS, TEXTS, tampered
from support.shell import succeeded
from support.slow import slow_but

RNG = np.random.default_rng(0)
SCORES = np.r_[RNG.normal(size=2000), RNG.normal(4, 1, size=2000)]
LABELS = np.repeat([0, 1], 2000)
ORDER = RNG.permutation(4000)
SCORES, LABELS = SCORES[ORDER], LABELS[ORDER]
FIRST = calibrate(
    SCORES[LABELS == 0], SCORES[LABELS == 1], Guarantee(max_fpr=0.04, max_fnr=0.1, delta_fpr=0.03)
)


def after(certificate: Certificate, times: int, ledger: bool = True) -> Certificate:
    for _ in range(times):
        certificate = recalibrate(certificate, SCORES, LABELS, ledger=ledger)
    return certificate


def test_shares_of_a_ledger_add_up_to_twice_the_first_delta() -> None:
    place = Lineage(1, True, 0.03, 0.05, ("0" * 64,))
    shares = [Fraction(0.03)]
    for number in range(1, 400):
        ancestors = ("0" * 64,) * min(number, 50)
        shares.append(Fraction(replace(place, number=number, ancestors=ancestors).delta(0.03)))
    assert sum(shares) < 2 * Fraction(0.03)
    assert float(sum(shares)) == pytest.approx(0.06, rel=0.01)
    # the formula of the theory, with the first as number 0
    for number, share in enumerate(shares):
        assert float(share) == pytest.approx(0.06 / ((number + 1) * (number + 2)), rel=1e-15)
        assert share <= 2 * Fraction(0.03) / ((number + 1) * (number + 2))


def test_what_follows_keeps_the_ceilings_and_names_what_it_follows() -> None:
    second = recalibrate(FIRST, SCORES, LABELS)
    assert (second.guarantee.max_fpr, second.guarantee.max_fnr) == (0.04, 0.1)
    assert second.guarantee.delta_fpr == pytest.approx(0.01)
    third = recalibrate(second.with_provenance(score="s"), SCORES, LABELS)
    assert third.lineage is not None
    assert third.lineage.ancestors == (FIRST.checksum, second.checksum)
    assert third.guarantee.delta_fnr == pytest.approx(0.05 / 6)
    assert "lineage    number 3 after" in str(third)
    assert "ever fails is at most 0.1 per rate" in str(third)


def test_each_may_have_its_own_delta() -> None:
    third = after(FIRST, 2, ledger=False)
    assert third.guarantee == FIRST.guarantee
    assert "each has its own delta, and they add up" in str(third)
    with pytest.raises(InputError, match=r"own delta, which cannot change; pass ledger=False"):
        recalibrate(third, SCORES, LABELS)
    with pytest.raises(InputError, match=r"share one delta, which cannot change; pass ledger=True"):
        recalibrate(after(FIRST, 1), SCORES, LABELS, ledger=False)


def test_a_window_is_the_last_points() -> None:
    window = recalibrate(FIRST, SCORES, LABELS, last=1000)
    alone = recalibrate(FIRST, SCORES[-1000:], LABELS[-1000:])
    assert window == alone
    assert window.fpr.n + window.fnr.n == 1000


def test_it_is_saved_shown_verified_and_checked(tmp_path: Path) -> None:
    second = recalibrate(FIRST, SCORES, LABELS)
    second.save(tmp_path / "c.json")
    assert Certificate.load(tmp_path / "c.json") == second
    assert "lineage    number 2 after" in succeeded("show", tmp_path / "c.json")
    assert second.verify(SCORES[LABELS == 0], SCORES[LABELS == 1])
    lineage = second.lineage
    assert lineage is not None
    for wrong in (
        replace(lineage, delta_fpr=0.5),
        replace(lineage, delta_fnr=0.5),
        replace(lineage, ledger=False),
    ):
        with pytest.raises(CertificateError, match="is not its share in the lineage"):
            Certificate.from_json(replace(second, lineage=wrong).to_json())


def test_without_a_lineage_a_file_is_as_it_was() -> None:
    assert "lineage" not in FIRST.to_json()


def test_many_certificates_keep_the_latest_digests() -> None:
    place = FIRST
    for _ in range(3):
        place = recalibrate(place, SCORES, LABELS)
    lineage = place.lineage
    assert lineage is not None
    late = replace(lineage, number=60, ancestors=tuple(f"{n:064x}" for n in range(50)))
    following = recalibrate(replace(place, lineage=late), SCORES, LABELS)
    assert following.lineage is not None
    assert (following.lineage.number, len(following.lineage.ancestors)) == (61, 50)
    assert following.lineage.ancestors[0] == f"{1:064x}"


def test_what_is_no_lineage_is_refused() -> None:
    with pytest.raises(InputError, match="3 certificates came before, got 1 digests"):
        Lineage(3, True, 0.05, 0.05, ("0" * 64,))
    with pytest.raises(InputError, match="a digest of 64 hexadecimal digits"):
        Lineage(1, True, 0.05, 0.05, ("x",))
    kinds = calibrate(range(1000), {"a": range(2000, 3000)})
    with pytest.raises(InputError, match="without kinds; calibrate the new points as the old ones were"):
        recalibrate(kinds, [0.0], [0])
    with pytest.raises(InputError, match="certificate must be a Certificate, got Rule"):
        recalibrate(Rule(0, 1), SCORES, LABELS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="scores and labels must have the same length"):
        recalibrate(FIRST, SCORES, LABELS[:-1])
    with pytest.raises(InputError, match="last must be a whole number, 1 or more"):
        recalibrate(FIRST, SCORES, LABELS, last=0)


UNSURE = [Algorithm1(relax_delta=True), Algorithm1(correction=None), Algorithm1(growth="double")]


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize("strategy", UNSURE, ids=str)
def test_a_lineage_is_refused_where_its_sentence_would_be_false(strategy: Algorithm1, ledger: bool) -> None:
    """The deltas that raising them certifies add up to more than the .1 that all are said to share."""
    one, other = np.r_[RNG.normal(size=300)], np.r_[RNG.normal(2, 1, size=300)]
    first = calibrate(one, other, overlap=strategy)
    scores, labels = np.r_[one, other], np.repeat([0, 1], 300)
    if strategy.proved and (strategy.keeps_delta or not ledger):
        second = recalibrate(first, scores, labels, ledger=ledger)
        assert Certificate.from_json(second.to_json()) == second
        return
    with pytest.raises(InputError, match="follow each other"):
        recalibrate(first, scores, labels, ledger=ledger)
    # a file of one is not believed either
    place = Lineage(1, ledger, 0.05, 0.05, ("0" * 64,))
    asked = replace(Guarantee(), delta_fpr=place.delta(0.05), delta_fnr=place.delta(0.05))
    forged = replace(calibrate(one, other, asked, overlap=strategy), lineage=place)
    with pytest.raises(CertificateError, match="is not its share in the lineage"):
        Certificate.from_json(forged.to_json())


@pytest.mark.parametrize("ledger", slow_but(1, [True, False]))
def test_whatever_a_lineage_is_changed_to_is_refused_in_a_sentence(ledger: bool) -> None:
    """Every field and every value; what is still believed says the same."""
    second = recalibrate(FIRST, SCORES, LABELS, ledger=ledger)
    for name in ("number", "ledger", "delta_fpr", "delta_fnr", "ancestors"):
        for value in [*NUMBERS, *TEXTS, *OTHERS]:
            text = tampered(second, {f"lineage.{name}": value})
            try:
                found = Certificate.from_json(text)
            except CertificateError:
                continue
            assert (str(found), found.lineage) == (str(second), second.lineage), (name, value)


def test_one_ceiling_stays_one() -> None:
    single = calibrate(SCORES[LABELS == 0], [], Guarantee(max_fpr=0.05, max_fnr=None))
    second = recalibrate(single, SCORES, LABELS)
    assert [promise.name for promise in second.guarantee.promises] == ["FPR"]
    assert Certificate.from_json(second.to_json()) == second


def test_a_threshold_of_a_curve_stays_with_what_the_new_points_bound_there() -> None:
    rng = np.random.default_rng(8)
    normal, anomalous = rng.normal(size=900), rng.normal(3, 1, size=600)
    first = certify_curve(normal, anomalous).at(1.7)
    scores, labels = np.append(normal + 0.1, anomalous), np.repeat([0, 1], [900, 600])
    second = recalibrate(first, scores, labels)
    assert Certificate.from_json(second.to_json()) == second
    assert second.verify(normal + 0.1, anomalous)
    assert (second.overlap, second.rule) == (first.overlap, first.rule)
    third_delta = second.guarantee.delta_fpr
    expected = certify_curve(normal + 0.1, anomalous, third_delta, third_delta).at(1.7)
    assert second.guarantee == kept(second) == expected.guarantee
    third = recalibrate(second, scores, labels)
    assert Certificate.from_json(third.to_json()) == third
    assert third.lineage is not None
    assert third.lineage.number == 2
    # where it bounds nothing any more, that can be saved too
    upside_down = pytest.warns(UpsideDownWarning)
    with pytest.warns(VacuousWarning, match="nothing is promised"), upside_down:
        nothing = recalibrate(first, np.append(normal + 9.0, anomalous - 9.0), labels)
    assert nothing.uncertified
    assert nothing.empty
    assert Certificate.from_json(nothing.to_json()) == nothing
