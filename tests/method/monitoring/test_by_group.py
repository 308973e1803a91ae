"""Groups are watched each by itself, under one alpha; those of a pool together; others not at all."""

import copy
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import CertificateError, InputError, Monitor, calibrate_labelled, certify_curve
from pac_wrap.base.codec import checksum

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["a", "b", "c", "d", "e"], [1000, 1000, 1000, 60, 100])
LABELS = (RNG.random(GROUPS.size) < 0.5).astype(int)
SCORES = RNG.normal(4.0 * LABELS)
CERTIFICATE = calibrate_labelled(SCORES, LABELS, by=GROUPS)
POOLED = calibrate_labelled(SCORES, LABELS, pool=True, by=GROUPS)


def rows(size: int, drift: str = "", seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b", "c", "d", "never seen"], size)
    scores = rng.normal(np.where(groups == drift, 2.0, 0.0))
    labels = np.where(rng.random(size) < 0.5, 0.0, np.nan)
    return {"verdicts": CERTIFICATE.verdicts(scores, groups), "labels": labels, "groups": groups}


def part(batch: dict[str, Any], chosen: Any) -> dict[str, Any]:
    return {name: values[chosen] for name, values in batch.items()}


def test_each_group_is_watched_by_itself_with_its_share_of_alpha() -> None:
    monitor = Monitor(CERTIFICATE, alpha=0.03)
    batch = rows(3000, drift="b")
    monitor.update(**batch)
    assert monitor.size == 3
    assert list(monitor.members) == [("a",), ("b",), ("c",)]
    assert [alarm.groups for alarm in monitor.alarms if alarm.watch == "FPR"] == [("b",)]
    assert str(monitor.alarm).startswith("'b': ")
    own = part(batch, batch.pop("groups") == "b")
    alone = Monitor(CERTIFICATE.certificates["b"], alpha=0.03 / 3)
    alone.update(**own)
    assert monitor.members[("b",)] == replace(alone.members[()], place=monitor.members[("b",)].place)


def test_the_groups_of_a_pool_are_watched_together() -> None:
    monitor = Monitor(POOLED)
    assert monitor.size == 4
    monitor.update([0] * 10, [0] * 10, groups=["d", "e"] * 5)
    assert list(monitor.members) == [("d", "e")]
    assert monitor.members[("d", "e")].rows == 10
    monitor.update([1] * 20, [0] * 20, groups=["d", "e"] * 10)
    assert str(monitor.alarm).startswith("the pool of 2 groups: FPR alarm")


def test_it_goes_on_from_its_file(tmp_path: Path) -> None:
    path, whole = tmp_path / "watch.json", Monitor(CERTIFICATE)
    for seed in range(3):
        whole.update(**rows(500, "c", seed))
        with Monitor(CERTIFICATE).on(path) as monitor:
            monitor.update(**rows(500, "c", seed))
    assert path.read_text() == whole.to_json()
    with pytest.raises(CertificateError, match="belongs to another certificate"):
        Monitor(POOLED).load(path)
    with pytest.raises(CertificateError, match="belongs to another certificate"):
        Monitor(CERTIFICATE.certificates["a"]).load(path)
    with pytest.raises(CertificateError, match=r"started with alpha = 0.01, not 0.5"):
        Monitor(CERTIFICATE, alpha=0.5).load(path)
    path.write_text(whole.to_json().replace('"rows": ', '"rows": 1', 1))
    with pytest.raises(CertificateError, match="was changed after it was written"):
        Monitor(CERTIFICATE).load(path)
    twice = whole.to_json().replace("{", '{"alpha": 1, ', 1)
    for text, reason in (("{}", "has format"), ("[1]", "no"), ("no", "not JSON"), (twice, "twice")):
        path.write_text(text)
        with pytest.raises(CertificateError, match=reason):
            Monitor(CERTIFICATE).load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.update(unseen=0), "the rows of its groups do not add up"),
        (lambda content: content["members"].pop(), "the rows of its groups do not add up"),
        (lambda content: content["members"][0].update(place=3), "monitors groups without a promise"),
        (lambda content: content["members"][0].update(place=1), "monitors groups without a promise"),
        (lambda content: content["members"][0]["watches"].pop(), "does not monitor what the certificate"),
    ],
)
def test_groups_that_cannot_have_come_about_are_refused(change: Any, reason: str) -> None:
    monitor = Monitor(CERTIFICATE)
    monitor.update(**rows(200))
    content = json.loads(monitor.to_json())
    del content["checksum"]
    change(content)
    with pytest.raises(CertificateError, match=reason):
        Monitor(CERTIFICATE).resumed(json.dumps(content | {"checksum": checksum(content)}))


def test_batches_have_ids_and_may_come_in_parts(tmp_path: Path) -> None:
    batch = rows(600, "b")
    whole, parts = Monitor(CERTIFICATE), Monitor(CERTIFICATE)
    whole.update(**batch, id="night")
    for start in range(0, 600, 150):
        parts.update(**part(batch, slice(start, start + 150)), id="night", more=start > 0)
    assert parts.to_json() == whole.to_json()
    whole.save(tmp_path / "watch.json")
    again = Monitor(CERTIFICATE).load(tmp_path / "watch.json")
    assert (again.rows, again.batches) == (600, 1)
    with pytest.raises(InputError, match="the batch 'night' was fed before"):
        again.update(**batch, id="night")
    with pytest.raises(InputError, match="more is for the batch that was fed last"):
        again.update(**batch, id="day", more=True)
    assert again.to_json() == whole.to_json()
    assert again.alarm is not None
    assert (again.alarm.groups, again.alarm.id) == (("b",), "night")
    assert "600 rows in 1 batch; 3 of 3 monitored groups occurred" in str(again)
    assert str(Monitor(CERTIFICATE)).endswith("no point was counted, so nothing is known")


def test_rows_that_are_not_watched_are_counted_and_said(tmp_path: Path) -> None:
    monitor = Monitor(CERTIFICATE)
    groups = ["a", "d", "e", "d", "zzz", "b", "b"]
    monitor.update([0] * 7, groups=groups, scores=[0, 0, 0, 0, 0, np.nan, 1])
    assert (monitor.unseen, monitor.unpromised, monitor.points) == (1, 3, 0)
    assert "not monitored: 1 row of groups never seen at calibration" in str(monitor)
    assert "not monitored: 3 rows of groups without a promise" in str(monitor)
    assert "not monitored: 1 row without a score" in str(monitor)
    assert str(monitor).endswith("no point was counted, so nothing is known")
    monitor.save(tmp_path / "w.json")
    again = Monitor(CERTIFICATE).load(tmp_path / "w.json")
    assert str(again) == str(monitor)
    monitor.update([0], [0], groups=["a"])
    assert str(monitor).endswith("no alarm")


def test_a_group_without_labels_of_one_class_is_watched_for_the_other() -> None:
    scores, labels = [*range(1000), *range(2000, 3000), *range(1000)], [0] * 1000 + [1] * 1000 + [0] * 1000
    with pytest.warns(UserWarning, match="too few labels"):
        certificate = calibrate_labelled(scores, labels, by=["a"] * 2000 + ["b"] * 1000)
    monitor = Monitor(certificate, alpha=0.02)
    assert monitor.size == 2
    monitor.update([1] * 50, [0] * 50, groups=["b"] * 50)
    assert [(watch.name, watch.alpha) for watch in monitor.members[("b",)].watches] == [("FPR", 0.01)]
    assert [(alarm.groups, alarm.watch) for alarm in monitor.alarms] == [(("b",), "FPR")]
    assert "monitored for one promise only: 1 group;" in str(monitor)


def test_the_rows_of_each_group_count_together_in_any_order() -> None:
    batch = rows(900, "b")
    one, other, order = Monitor(CERTIFICATE), Monitor(CERTIFICATE), np.argsort(batch["verdicts"])
    one.update(**batch, together=True)
    other.update(**part(batch, order), together=True)
    assert one.to_json() == other.to_json()
    assert one.alarm is not None
    with pytest.raises(InputError, match="without more"):
        one.update([0], groups=["a"], more=True, together=True)
    assert one.to_json() == other.to_json()


def test_threads_lose_no_row() -> None:
    monitor, usual = Monitor(CERTIFICATE), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            feed = partial(monitor.update, [0] * 5, [0] * 5, groups=[*"abcab"])
            list(pool.map(lambda row: feed(), range(100)))
    finally:
        sys.setswitchinterval(usual)
    assert (monitor.rows, sum(one.watches[0].n for one in monitor.members.values())) == (500, 500)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    monitor = Monitor(CERTIFICATE)
    monitor.update(**rows(60))
    other, before = copied(monitor), monitor.to_json()
    assert other.to_json() == before
    other.update(**rows(30))
    assert (monitor.to_json(), other.rows) == (before, 90)


def test_what_is_refused_leaves_all_as_it_was() -> None:
    monitor = Monitor(CERTIFICATE)
    monitor.update(**rows(100))
    before = monitor.to_json()
    with pytest.raises(InputError, match="labels must be 0"):
        monitor.update([0, 0], [0, 7], groups=["a", "b"])
    with pytest.raises(InputError, match="verdicts and groups must have the same length"):
        monitor.update([0, 0], groups=["a"])
    with pytest.raises(InputError, match="verdicts and labels must have the same length"):
        monitor.update([0, 0], [0], groups=["a", "b"])
    with pytest.raises(InputError, match="has groups; pass the group of each row as groups"):
        monitor.update([0, 0], [0, 0])
    with pytest.raises(InputError, match="has no groups; remove groups"):
        Monitor(CERTIFICATE.certificates["a"]).update([0, 0], [0, 0], groups=["a", "a"])
    assert monitor.to_json() == before


def test_what_promises_nothing_cannot_be_watched() -> None:
    with pytest.raises(InputError, match="a curve is for a certificate without groups"):
        Monitor(CERTIFICATE, certify_curve(SCORES[LABELS == 0], SCORES[LABELS == 1]))
    few = calibrate_labelled([1.0, 2.0], [0, 1], by=["a", "a"])
    with pytest.raises(InputError, match="no group has a promise"):
        Monitor(few)
