"""The file of a monitor: resumed as if never interrupted, refused if it is not whole, held by one process."""

import fcntl
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import CertificateError, InputError, Monitor, calibrate, certify_curve
from pac_wrap.base.files import held
from pac_wrap.errors import OutputError
from support.examples import examples

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(size=400), RNG.normal(2.5, 1, size=400)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
CURVE = certify_curve(NORMAL, ANOMALOUS)
SCORES = RNG.normal(0.5, 1, size=4000)
VERDICTS = CERTIFICATE.verdicts(SCORES)
LABELS = np.where(RNG.random(4000) < 0.5, 0.0, np.nan)


def feed(monitor: Monitor, start: int, end: int) -> None:
    monitor.update(VERDICTS[start:end], LABELS[start:end], scores=SCORES[start:end], id=f"{start} {end}")


@settings(max_examples=examples(2))
@given(st.lists(st.integers(1, 3999), min_size=1, max_size=5, unique=True))
def test_it_goes_on_as_if_never_interrupted(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), 4000]
    whole, resumed = Monitor(CERTIFICATE, CURVE), Monitor(CERTIFICATE, CURVE)
    for start, end in itertools.pairwise(ends):
        feed(whole, start, end)
        resumed = Monitor(CERTIFICATE, CURVE).resumed(resumed.to_json())
        feed(resumed, start, end)
    assert resumed.to_json() == whole.to_json()
    assert resumed.alarms == whole.alarms != ()


def test_on_a_file_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    for start in range(0, 4000, 1000):
        with Monitor(CERTIFICATE, CURVE).on(path) as monitor:
            feed(monitor, start, start + 1000)
    assert monitor.rows == 4000
    assert sorted(os.listdir(tmp_path)) == ["watch.json"]
    assert path.read_text() == monitor.to_json()
    before = path.read_bytes()
    with pytest.raises(InputError), Monitor(CERTIFICATE, CURVE).on(path) as again:
        again.update([7])
    assert path.read_bytes() == before


@cache
def state() -> str:
    monitor = Monitor(CERTIFICATE, CURVE)
    for start in range(0, 4000, 1000):
        feed(monitor, start, start + 1000)
    return monitor.to_json()


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    """The file with a change, and a checksum that fits it."""
    content = json.loads(state())
    del content["checksum"]
    change(content)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps(content | {"checksum": hashlib.sha256(canonical.encode()).hexdigest()})


def in_member(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda content: change(content["members"][0])


def set_in(watch: int, name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return in_member(lambda member: member["watches"][watch].update({name: value}))


def late_start(member: dict[str, Any]) -> None:
    watch = member["watches"][2]
    watch["began"] = [5000] * len(watch["began"])


def in_alarm(**facts: Any) -> Callable[[dict[str, Any]], object]:
    return in_member(lambda member: member["alarms"][0].update(facts))


def finer(member: dict[str, Any]) -> None:
    """A past in half the steps, twice as long: more than is ever kept."""
    member["step"] //= 2
    for watch in member["watches"]:
        watch["past"] = watch["past"] * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (in_member(finer), "its past does not fit its rows"),
        (lambda content: content.update(certificate="0" * 64), "belongs to another certificate"),
        (lambda content: content.pop("curve"), "belongs to another curve"),
        (
            lambda content: content.update(alpha=0.5),
            r"started with alpha = 0.5, not 0.01; alpha cannot change",
        ),
        (in_member(lambda member: member["watches"].pop()), "does not monitor what the certificate promises"),
        (set_in(0, "ceiling", 0.5), "does not monitor what the certificate promises"),
        (set_in(0, "gains", [0.0]), "does not monitor what the certificate promises"),
        (set_in(0, "gains", ["inf"] * 16), "is impossible"),
        (set_in(0, "following", 10**6), "is impossible"),
        (set_in(0, "past", ["inf"]), "is impossible"),
        (set_in(0, "cells", [-1, 2]), "a count must be a whole number"),
        (set_in(0, "cells", [9000, 2]), "more is counted than there were rows"),
        (set_in(0, "past", [0.5]), "its past does not fit its rows"),
        (lambda content: content.update(rows=-1), "a count is impossible"),
        (lambda content: content.update(unseen=1), "a count is impossible"),
        (lambda content: content.update(rows=4001), "the rows of its groups do not add up"),
        (lambda content: content.update(members=[]), "does not monitor what the certificate promises"),
        (in_member(lambda member: member.update(rows=-1)), "a count is impossible"),
        (in_member(lambda member: member.update(step=3)), "a count is impossible"),
        (in_member(lambda member: member.update(rows=255 * 16)), "its past does not fit its rows"),
        (in_member(late_start), "more is counted than there were rows"),
        (lambda content: content.update(batches=2), "it has more ids than batches"),
        (in_alarm(row=9999), "an alarm belongs to no monitored quantity"),
        (in_alarm(watch="FNR"), "an alarm belongs to no monitored quantity"),
        (in_alarm(watch="x"), "an alarm belongs to no monitored quantity"),
        (in_alarm(log_evidence=1.0), "the evidence of an alarm is too weak"),
        (lambda content: content.update(surprise=1), "surprise must be absent"),
        (lambda content: content.update(format="pac-wrap curve"), "the monitor has format"),
    ],
)
def test_what_cannot_be_is_refused(change: Callable[[dict[str, Any]], object], reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        Monitor(CERTIFICATE, CURVE).resumed(changed(change))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    text = state()
    path = tmp_path / "watch.json"
    path.write_text(text.replace('"rows": 4000', '"rows": 4001'))
    with pytest.raises(
        CertificateError, match=r"the monitor was changed after it was written .* an older copy"
    ):
        Monitor(CERTIFICATE, CURVE).load(path)
    path.write_text(text[:1000])
    with pytest.raises(CertificateError, match="this is no monitor: not JSON"):
        Monitor(CERTIFICATE, CURVE).load(path)
    path.write_text(text + " " * 1_000_000)
    with pytest.raises(CertificateError, match="this is no monitor: it has over"):
        Monitor(CERTIFICATE, CURVE).load(path)


HOLDER = """
import sys, time
from pac_wrap.base.files import held
with held(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_process_is_refused_and_a_killed_one_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OutputError, match=r"watch\.json is in use by another process; wait"), held(path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with held(path):
        assert (tmp_path / ".watch.json.lock").exists()
    assert os.listdir(tmp_path) == []


def test_where_no_lock_can_be_made_nothing_is_begun(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match=r"cannot lock .*; nothing was written"),
        held(tmp_path / "no" / "watch"),
    ):
        pass


def test_a_lock_that_vanishes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder ends between opening and locking it, once."""
    usual, calls = fcntl.flock, []

    def unlinked(handle: int, how: int) -> None:
        usual(handle, how)
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / ".watch.lock").unlink()

    monkeypatch.setattr(fcntl, "flock", unlinked)
    with held(tmp_path / "watch"):
        assert len(calls) == 2


def test_a_file_system_without_locks_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with held(tmp_path / "watch"), held(tmp_path / "watch"):
        pass
