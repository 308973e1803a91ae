"""Groups are watched each by itself, under one alpha; those of a pool together; others not at all."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import CertificateError, GroupMonitor, InputError, Monitor, calibrate, calibrate_groups

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["a", "b", "c", "d", "e"], [1000, 1000, 1000, 60, 100])
LABELS = (RNG.random(GROUPS.size) < 0.5).astype(int)
SCORES = RNG.normal(4.0 * LABELS)
CERTIFICATE = calibrate_groups(SCORES, LABELS, GROUPS)
POOLED = calibrate_groups(SCORES, LABELS, GROUPS, pool=True)


def rows(size: int, drift: str = "", seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b", "c", "d", "never seen"], size)
    scores = rng.normal(np.where(groups == drift, 2.0, 0.0))
    return CERTIFICATE.verdicts(scores, groups), groups, np.where(rng.random(size) < 0.5, 0.0, np.nan)


def test_each_group_is_watched_by_itself_with_its_share_of_alpha() -> None:
    monitor = GroupMonitor(CERTIFICATE, alpha=0.03)
    verdicts, groups, labels = rows(3000, drift="b")
    monitor.update(verdicts, groups, labels)
    assert monitor.size == 3
    assert list(monitor.monitors) == ["a", "b", "c"]
    assert [group for group, alarm in monitor.alarms if alarm.watch == "FPR"] == ["b"]
    alone = Monitor(CERTIFICATE.certificates["b"], alpha=0.03 / 3)
    alone.update(verdicts[groups == "b"], labels[groups == "b"])
    assert monitor.monitors["b"].to_json() == alone.to_json()


def test_the_groups_of_a_pool_are_watched_together() -> None:
    monitor = GroupMonitor(POOLED)
    assert monitor.size == 4
    monitor.update([0] * 10 + [1] * 5, ["d", "e"] * 5 + ["d"] * 5, [0] * 15)
    assert list(monitor.monitors) == [("d", "e")]
    assert monitor.monitors[("d", "e")].rows == 15


def test_it_goes_on_from_its_file(tmp_path: Path) -> None:
    path, whole = tmp_path / "watch.json", GroupMonitor(CERTIFICATE)
    for seed in range(3):
        whole.update(*rows(500, "c", seed))
        with GroupMonitor(CERTIFICATE).on(path) as monitor:
            monitor.update(*rows(500, "c", seed))
    assert path.read_text() == whole.to_json()
    with pytest.raises(CertificateError, match="belongs to another certificate, alpha or version"):
        GroupMonitor(POOLED).load(path)
    with pytest.raises(CertificateError, match="belongs to another certificate, alpha or version"):
        GroupMonitor(CERTIFICATE, alpha=0.5).load(path)
    path.write_text(whole.to_json().replace('rows\\": ', 'rows\\": 1', 1))
    with pytest.raises(CertificateError, match="was changed after it was written"):
        GroupMonitor(CERTIFICATE).load(path)
    twice = whole.to_json().replace("{", '{"alpha": 1, ', 1)
    for text in ("{}", "[1]", "no", '{"monitors": 3}', '{"monitors": {"x": ""}, "format": 1}', twice):
        path.write_text(text)
        with pytest.raises(CertificateError, match="this is no group monitor"):
            GroupMonitor(CERTIFICATE).load(path)


def test_batches_have_ids_and_may_come_in_parts(tmp_path: Path) -> None:
    verdicts, groups, labels = rows(600, "b")
    whole, parts = GroupMonitor(CERTIFICATE), GroupMonitor(CERTIFICATE)
    whole.update(verdicts, groups, labels, id="night")
    for start in range(0, 600, 150):
        part = slice(start, start + 150)
        parts.update(verdicts[part], groups[part], labels[part], id="night", more=start > 0)
    assert parts.to_json() == whole.to_json()
    whole.save(tmp_path / "watch.json")
    again = GroupMonitor(CERTIFICATE).load(tmp_path / "watch.json")
    assert (again.rows, again.batches) == (600, 1)
    with pytest.raises(InputError, match="the batch 'night' was fed before"):
        again.update(verdicts, groups, labels, id="night")
    with pytest.raises(InputError, match="more is for the batch that was fed last"):
        again.update(verdicts, groups, labels, id="day", more=True)
    assert again.to_json() == whole.to_json()
    name, alarm = again.alarm or ("", None)
    assert name == "b"
    assert alarm is not None
    assert alarm.id == "night"
    assert "600 rows in 1 batches; 3 of 3 watched groups occurred" in str(again)
    assert str(GroupMonitor(CERTIFICATE)).endswith("no point was counted, so nothing is known")


def test_rows_that_are_not_watched_are_counted_and_said(tmp_path: Path) -> None:
    monitor = GroupMonitor(CERTIFICATE)
    monitor.update([0] * 7, ["a", "d", "e", "d", "zzz", "b", "b"], scores=[0, 0, 0, 0, 0, np.nan, 1])
    assert (monitor.unseen, monitor.unpromised, monitor.points) == (1, 3, 0)
    assert "1 rows of groups never seen at calibration are not watched" in str(monitor)
    assert "3 rows of groups that are promised nothing are not watched" in str(monitor)
    assert "1 rows without a score are not watched" in str(monitor)
    assert str(monitor).endswith("no point was counted, so nothing is known")
    monitor.save(tmp_path / "w.json")
    again = GroupMonitor(CERTIFICATE).load(tmp_path / "w.json")
    assert str(again) == str(monitor)
    monitor.update([0], ["a"], [0])
    assert str(monitor).endswith("no alarm")


def test_a_group_without_labels_of_one_class_is_watched_for_the_other() -> None:
    scores, labels = [*range(1000), *range(2000, 3000), *range(1000)], [0] * 1000 + [1] * 1000 + [0] * 1000
    with pytest.warns(UserWarning, match="too few labels"):
        certificate = calibrate_groups(scores, labels, ["a"] * 2000 + ["b"] * 1000)
    monitor = GroupMonitor(certificate, alpha=0.02)
    assert monitor.size == 2
    monitor.update([1] * 50, ["b"] * 50, [0] * 50)
    assert [(watch.name, watch.alpha) for watch in monitor.monitors["b"].watches] == [("FPR", 0.01)]
    assert [(group, alarm.watch) for group, alarm in monitor.alarms] == [("b", "FPR")]
    assert "1 groups are watched for one promise only" in str(monitor)


def test_the_rows_of_each_group_count_together_in_any_order() -> None:
    verdicts, groups, labels = rows(900, "b")
    one, other, order = GroupMonitor(CERTIFICATE), GroupMonitor(CERTIFICATE), np.argsort(verdicts)
    one.update(verdicts, groups, labels, together=True)
    other.update(verdicts[order], groups[order], labels[order], together=True)
    assert one.to_json() == other.to_json()
    assert one.alarm is not None
    with pytest.raises(InputError, match="without more"):
        one.update([0], ["a"], more=True, together=True)
    assert one.to_json() == other.to_json()


def test_threads_lose_no_row() -> None:
    monitor, usual = GroupMonitor(CERTIFICATE), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda row: monitor.update([0] * 5, [*"abcab"], [0] * 5), range(100)))
    finally:
        sys.setswitchinterval(usual)
    assert (monitor.rows, sum(one.watches[0].n for one in monitor.monitors.values())) == (500, 500)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    monitor = GroupMonitor(CERTIFICATE)
    monitor.update(*rows(60))
    other, before = copied(monitor), monitor.to_json()
    assert other.to_json() == before
    other.update(*rows(30))
    assert (monitor.to_json(), other.rows) == (before, 90)


def test_what_is_refused_leaves_all_as_it_was() -> None:
    monitor = GroupMonitor(CERTIFICATE)
    monitor.update(*rows(100))
    before = monitor.to_json()
    with pytest.raises(InputError, match="labels must be 0"):
        monitor.update([0, 0], ["a", "b"], [0, 7])
    with pytest.raises(InputError, match="verdicts and groups must have the same length"):
        monitor.update([0, 0], ["a"])
    with pytest.raises(InputError, match="verdicts and labels must have the same length"):
        monitor.update([0, 0], ["a", "b"], [0])
    assert monitor.to_json() == before


def test_what_promises_nothing_cannot_be_watched() -> None:
    with pytest.raises(InputError, match="certificate must be a GroupCertificate, got Certificate"):
        GroupMonitor(calibrate(range(1000), range(2000, 3000)))  # type: ignore[arg-type]
    few = calibrate_groups([1.0, 2.0], [0, 1], ["a", "a"])
    with pytest.raises(InputError, match="no group is promised anything"):
        GroupMonitor(few)
