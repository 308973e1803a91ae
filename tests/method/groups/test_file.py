"""Certificates of groups as files: exact, whole, small, and believed only if they agree with themselves."""

import json
import random
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import (
    CertificateError,
    GroupCertificate,
    Guarantee,
    InputError,
    MissingScoreWarning,
    Raise,
    UpsideDownWarning,
    calibrate_labelled,
)
from pac_wrap.base.codec import checksum
from pac_wrap.method.certificate import inconsistencies
from pac_wrap.method.groups import columns as file
from pac_wrap.method.strategies.looks import Looks
from support.slow import slow_but

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


NAMES: list[Any] = ["plain", "", None, 7, -3, 2.5, "\x1b[31m<script>'\";--\u202e\udcff", "x" * 1000]


def made(overlap: Any = "abstain", kind: Any = np.float64, **options: Any) -> GroupCertificate:
    rng = np.random.default_rng(0)
    sizes = [300, 260, 220, 180, 30, 1, 500, 90]
    groups = np.repeat(np.arange(8), sizes)
    labels = rng.random(groups.size) < 0.5
    scores = np.round(rng.normal(np.array([2, 3, 4, 5, 2, 2, 9, 1])[groups] * labels, 1), 1).astype(kind)
    names = np.array(NAMES, dtype=object)[groups]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        return calibrate_labelled(scores, labels, Guarantee(0.1, 0.1), overlap=overlap, **options, by=names)


def resealed(content: dict[str, Any]) -> str:
    content = {name: value for name, value in content.items() if name != "checksum"}
    return json.dumps(content | {"checksum": checksum(content)})


@pytest.mark.parametrize(
    "overlap",
    [
        *("abstain", "abstain_always", "raise", "hold_fnr", "hold_fpr", "hold_fnr_if_needed", "algorithm1"),
        *(Looks(every=10, up_to=200), Looks(every=10, up_to=200, threshold=1.5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_file_comes_back_as_it_was(overlap: Any, kind: Any, tmp_path: Path) -> None:
    found = made(overlap, kind)
    found.save(tmp_path / "groups.json")
    again = GroupCertificate.load(tmp_path / "groups.json")
    assert again == found
    assert again.to_json() == found.to_json()
    assert hash(again.columns) == hash(found.columns)
    assert [again.certificates[group] for group in NAMES] == [found.certificates[group] for group in NAMES]
    assert list(map(type, again.groups)) == list(map(type, found.groups))
    assert again != made("abstain", kind, together=True)


@pytest.mark.parametrize("asked", [Guarantee(0.1, None), Guarantee(None, 0.1)])
def test_one_ceiling_comes_back_and_is_checked(asked: Guarantee) -> None:
    labels = np.tile([0, 1], 200)
    found = calibrate_labelled(np.arange(400.0), labels, asked, by=np.repeat(["a", "b"], 200))
    assert GroupCertificate.from_json(found.to_json()) == found
    assert found.columns != "columns"
    content = json.loads(found.to_json())
    content["rule"][0] = content["rule"][1] = 7.0
    with pytest.raises(CertificateError, match="contradicts itself: group 'a'"):
        GroupCertificate.from_json(resealed(content))


@pytest.mark.parametrize("overlap", ["abstain", "abstain_always", "raise", "hold_fpr", Raise(highest=0.11)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_prediction_sets_are_those_of_each_certificate(overlap: Any, kind: Any) -> None:
    found = made(overlap, kind)
    scores = np.round(np.linspace(-3, 12, 400), 1).astype(kind)
    for group in NAMES:
        own = found.certificates[group].prediction_sets(scores)
        assert (found.prediction_sets(scores, [group] * 400) == own).all()
    with pytest.warns(MissingScoreWarning):
        assert found.prediction_sets([np.nan, 0.0], ["plain", "never seen"]).all()
    pooled = made(pool=True)
    assert pooled.pool is not None
    if not pooled.pool.empty:
        sets = pooled.pool.prediction_sets(scores)
        assert (pooled.prediction_sets(scores, [2.5] * 400) == sets).all()


def test_a_pool_and_a_provenance_come_back_too() -> None:
    found = made(pool=True, together=True).with_provenance(score="forest", tables=("a.csv",))
    again = GroupCertificate.from_json(found.to_json().encode())
    assert again == found
    assert again.provenance == found.provenance
    assert again.bare.provenance is None
    assert again.pool == found.pool is not None


def test_what_all_groups_share_is_written_once() -> None:
    count = 10_000
    found = calibrate_labelled(np.arange(count, dtype=float), np.arange(count) % 2, by=np.arange(count))
    content = json.loads(found.to_json())
    assert content["rule"] == ["-inf", "inf"]
    assert content["budget"] == [None, None]
    # a million groups of one row each fit into a file that is read
    assert len(found.to_json()) < 60 * count
    assert GroupCertificate.from_json(found.to_json()) == found


def test_files_beyond_what_is_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made()
    monkeypatch.setattr(file, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="divide the groups"):
        found.to_json()
    with pytest.raises(CertificateError, match="over 1,000 bytes"):
        GroupCertificate.from_json(" " * 1001)


def test_another_file_is_refused() -> None:
    from pac_wrap import calibrate

    with pytest.raises(CertificateError, match="format 'pac-wrap certificate' where 'pac-wrap groups'"):
        GroupCertificate.from_json(calibrate([1.0], [2.0]).to_json())
    with pytest.raises(CertificateError, match="not JSON"):
        GroupCertificate.from_json(b"{")
    with pytest.raises(CertificateError, match="changed after it was written"):
        GroupCertificate.from_json(made().to_json().replace("plain", "plein"))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("groups", [], "a list of 1 to 1,000,000"),
        ("groups", ["a"] * 8, "names a group twice"),
        ("groups", [["a"]] * 8, "must be texts, numbers"),
        ("groups", ["7", 7, "a", "b", "c", "d", "e", "f"], "names a group twice"),
        ("groups", ["y" * 1001, *"abcdefg"], "at most 1,000 characters"),
        ("n", [1], "a list of two"),
        ("n", None, "a list of two"),
        ("n", [[1], [2]], "an entry for each of 8 groups, got 1"),
        ("n", [-1, 1], "-1 is not a count"),
        ("n", [True, 1], "True is not a count"),
        ("n", [2**63, 1], "not a column of its kind"),
        ("digest", ["00", "00"], "16 hexadecimal digits"),
        ("digest", [7, 7], "not a column of its kind"),
        ("digest", ["g" * 16, "0" * 16], "not a column of its kind"),
        ("rule", ["nan", 1.0], "'nan' is not a number"),
        ("n", [10**13, 1], "the number of normal points is impossible"),
        ("shares", [0.1, 0.1], "unknown"),
        ("together", True, "the budget of normal points does not follow"),
        ("asked", {}, "must be there"),
        ("version", "<b>", "is not a version"),
        ("assumptions", [1], "not the assumptions"),
        ("unknown", 1, "unknown"),
        ("separable", [1], "an entry for each"),
    ],
)
def test_what_is_no_column_is_refused(name: str, value: Any, words: str) -> None:
    content = json.loads(made().to_json())
    with pytest.raises(CertificateError, match=words):
        GroupCertificate.from_json(resealed(content | {name: value}))


@pytest.mark.parametrize(
    "options", slow_but(2, [{}, {"overlap": "raise"}, {"overlap": "abstain_always"}, {"kind": np.float32}])
)
def test_a_tampered_group_is_believed_only_if_its_certificate_would_be(options: dict[str, Any]) -> None:
    whole = made(**options)
    original = json.loads(whole.to_json())
    rng = random.Random(0)
    columns = ["n", "beyond", "errors", "budget", "thresholds", "rule"]
    values: list[Any] = [None, 0, 1, 2, 90, 300, 0.1, 0.05, 1.5, 2.0, 3.7, -1.0, "inf", "-inf", 1e308]
    refused = 0
    for _ in range(100):
        content = json.loads(json.dumps(original))
        name, label, place = rng.choice(columns), rng.randrange(2), rng.randrange(8)
        row = content[name][label]
        content[name][label] = row = list(row) if isinstance(row, list) else [row] * 8
        row[place] = rng.choice(values)
        if row == original[name][label]:
            continue
        try:
            again = GroupCertificate.from_json(resealed(content))
        except CertificateError:
            refused += 1
            continue
        # then it is one that `Certificate` would believe as well
        for group in again.groups:
            assert next(inconsistencies(again.certificates[group]), None) is None
        assert ((again.columns.errors >= 0) & (again.columns.errors <= again.columns.n)).all()
    assert refused > 60


def test_a_pool_that_does_not_belong_to_the_groups_is_refused() -> None:
    content = json.loads(made(pool=True).to_json())
    other = json.loads(made(pool=True, together=True).to_json())
    with pytest.raises(CertificateError, match=r"the request of the pool|does not hold the points"):
        GroupCertificate.from_json(resealed(content | {"pool": other["pool"]}))
    first, second = content["pool"]["clauses"]
    fewer = [first | {"n": first["n"] + 1}, second]
    with pytest.raises(CertificateError, match=r"does not hold the points|not possible"):
        GroupCertificate.from_json(resealed(content | {"pool": content["pool"] | {"clauses": fewer}}))


@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr", "hold_fpr", "raise"])
@pytest.mark.parametrize("pool", [False, True])
def test_shares_are_found_again_from_the_numbers_of_labels(overlap: str, pool: bool) -> None:
    if pool and overlap != "abstain":
        return  # no pool there
    found = made(overlap, together=True, pool=pool)
    content = json.loads(found.to_json())
    assert "shares" not in content
    again = GroupCertificate.from_json(found.to_json())
    assert again.shares == found.shares is not None
    with pytest.raises(CertificateError, match=r"does not follow|the request of the pool"):
        GroupCertificate.from_json(resealed(content | {"together": False}))


def test_verification_finds_the_shares_again() -> None:
    scores, labels = np.arange(900.0), np.tile([0, 1], 450)
    groups = np.repeat(np.arange(9), [300, 200, 150, 100, 50, 40, 30, 20, 10])
    for options in ({}, {"pool": True}, {"overlap": "hold_fnr"}):
        found = calibrate_labelled(scores, labels, together=True, **options, by=groups)
        assert found.verify(scores, labels, groups)
        assert found.shares is not None
        less = replace(found, shares=(found.shares[0] / 2, found.shares[1]))
        assert "the deltas of each group are" in str(less.verify(scores, labels, groups))


def test_verification_names_the_groups_that_differ() -> None:
    scores, labels = np.arange(900.0), np.tile([0, 1], 450)
    groups = np.repeat(np.arange(9), 100)
    found = calibrate_labelled(scores, labels, pool=True, by=groups)
    order = np.random.default_rng(0).permutation(900)
    assert found.verify(scores[order], labels[order], groups[order])
    changed = scores.copy()
    changed[::100] += 0.25
    said = str(found.verify(changed, labels, groups))
    assert "group 0: normal.digest" in said
    assert "4 more groups differ" in said
    assert "the pool: " in said
    assert "only in the certificate: 1 group, such as 8" in str(
        found.verify(scores[:800], labels[:800], groups[:800])
    )
    more = np.append(groups, 77)
    assert "only in the scores: 1 group, such as 77" in str(
        found.verify(np.append(scores, 0), np.append(labels, 0), more)
    )
    narrow = calibrate_labelled(np.round(scores.astype(np.float32) / 7, 3), labels, by=groups)
    assert narrow.score_type == "float32"
    assert narrow.verify(np.round(scores.astype(np.float32) / 7, 3).astype(float), labels, groups)


def test_missing_scores_are_abstained_on_and_said() -> None:
    found = calibrate_labelled(np.arange(200.0), np.repeat([0, 1], 100), by=["a"] * 200)
    with pytest.warns(MissingScoreWarning, match="1 of 2 scores are NaN"):
        assert found.verdicts([np.nan, 199.0], ["a", "a"]).tolist() == [-1, 1]
    with pytest.raises(InputError, match="must not contain NaN"):
        found.verdicts([np.nan], ["a"], on_missing="stop")
    with pytest.raises(InputError, match="a column of numbers"):
        found.verdicts([["a"]], ["a"])
    with pytest.raises(InputError, match="same length"):
        found.verdicts([1.0], ["a", "a"])


def test_points_left_undecided_of_both_classes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = calibrate_labelled(np.arange(800.0), np.repeat([0, 1], 400), by=np.tile([0, 1], 400)).columns
    for left, worst in (([[10, 15], [10, 0]], [0, 1]), ([[10, 25], [10, 0]], [1, 0])):
        monkeypatch.setattr(type(columns), "undecided", np.array(left))
        assert columns.worst_first.tolist() == worst


def test_the_worst_group_is_named_first() -> None:
    found = made()
    listed = list(found.certificates)
    assert [found.groups[place] for place in found.columns.worst_first] == listed
    assert len(found.certificates) == 8
    vacuous = [found.certificates[group].empty for group in listed]
    assert vacuous == sorted(vacuous, reverse=True)
    assert vacuous[0]
    assert not vacuous[-1]
    undecided = found.columns.undecided.sum(axis=0) / found.columns.n.sum(axis=0)
    left = [undecided[found.lookup.place(group)] for group in listed if not found.certificates[group].empty]
    assert left == sorted(left, reverse=True)
    assert left[0] > 0.0
    text = str(found)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "too few labels: 2" in text
    assert "no single threshold can be certified: " in " ".join(str(made(Raise(highest=0.11))).split())
    many = calibrate_labelled(np.arange(30.0), np.zeros(30), by=np.arange(30))
    assert "and 10 more" in str(many)


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
def test_a_group_that_lacks_labels_of_one_class_keeps_the_promise_of_the_other() -> None:
    scores, labels = [*range(100), *range(200, 210)], [0] * 100 + [1] * 10
    few = calibrate_labelled(scores, labels, by=["few"] * 110)
    said = " ".join(str(few).split())
    assert "'few': 100 normal, 10 anomalous; too few anomalous labels: only FPR <= 0.05" in said
    assert "is promised; anomaly from about 98 on, nothing is called normal" in said
    other = calibrate_labelled([-one for one in scores], [1 - one for one in labels], by=["few"] * 110)
    said = " ".join(str(other).split())
    assert "too few normal labels: only FNR <= 0.05" in said
    assert "normal below -98, nothing is called an anomaly" in said
    # a promise is one that can be found broken
    fresh = [150.0] * 20 + [10.0] * 20, [0] * 40, ["few"] * 40
    assert few.evaluate(*fresh).exceeded == (("few", "FPR"),)
    both = calibrate_labelled(scores * 8, labels * 8, pool=True, by=[number // 110 for number in range(880)])
    assert both.pooled.all()
    assert both.evaluate(fresh[0], fresh[1], [0] * 40).exceeded == (), (
        "the promise of the pool is not its own"
    )


def test_a_threshold_just_below_zero_is_not_written_as_zero() -> None:
    below, ones = [-5e-324] * 100, [1.0] * 100
    scores = [*below, *ones, *([1.0] * 100), *([0.0] * 100)]
    labels, groups = np.tile(np.repeat([0, 1], 100), 2), np.repeat(["a", "b"], 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        found = calibrate_labelled(scores, labels, by=groups, overlap="abstain_always")
    assert np.signbit(found.columns.rule[0]).tolist() == [True, False]
    again = GroupCertificate.from_json(found.to_json())
    assert np.signbit(again.columns.rule[0]).tolist() == [True, False]
    assert again.to_json() == found.to_json()
