"""A few faults of every class, and the page that says how many were tried."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from support.examples import MANY
from torture.attacks import ATTACKS
from torture.page import COUNTS, PAGE, build_page, read_soak
from torture.record import Attack, Record, UnavailableError
from torture.run import attempt, run_attacks
from torture.soak import soak


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call attacks from a folder that nothing else writes into: none of them may either."""
    monkeypatch.chdir(tmp_path)


SLOW = ("CSV in Spark", "signals", "full disks")


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, marks=[pytest.mark.slow] * (attack.name in SLOW), id=attack.name)
        for attack in ATTACKS
    ],
)
def test_a_few_faults_of_every_class_are_handled(attack: Attack) -> None:
    for number in range(3 if settings().max_examples >= MANY else 1):
        try:
            assert sum(attempt(attack, 1, number).values()) > 0
        except UnavailableError as reason:
            pytest.skip(str(reason))


def test_the_page_is_what_the_counts_give() -> None:
    record = Record.from_json(COUNTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == build_page(record, read_soak()), "run make torture"
    assert record.failed == 0
    assert [tally.name for tally in record.tallies] == [attack.name for attack in ATTACKS]
    assert not any(tally.skipped for tally in record.tallies)


@pytest.mark.slow
def test_a_monitor_that_is_killed_three_times_ends_as_one_that_never_was(tmp_path: Path) -> None:
    done = soak(1_000_000, 3, 1, tmp_path)
    assert sum(done.signals.values()) == 3
    assert done.alarms > 0
    assert read_soak().points >= 10**8


def test_a_fault_that_is_not_handled_is_counted_and_can_be_made_again() -> None:
    def fails_now_and_then(random: np.random.Generator, folder: object) -> str:
        seen.append(int(random.integers(1000)))
        assert len(seen) % 2, "every second one"
        return "handled"

    seen: list[int] = []
    lines: list[str] = []
    record = run_attacks([Attack("a", "b", fails_now_and_then)], 7, 0.001, lines.append)
    (tally,) = record.tallies
    assert record.failed == len(tally.failures) > 0
    assert tally.tried == len(seen)
    assert "every second one" in tally.failures[0]
    assert "--only 'a' --seed 7 --try 1" in lines[1]
    assert Record.from_json(record.to_json()) == record
    assert "**not handled" in build_page(record, read_soak())
    first = seen[0]
    seen.clear()
    attempt(Attack("a", "b", fails_now_and_then), 7, 0)
    assert seen == [first]


def test_names_to_write_to_stay_in_the_scratch_folder(tmp_path: Path) -> None:
    def writes(random: object, folder: Path) -> str:
        Path("1e400").write_text("a relative name")
        assert (folder / "1e400").exists()
        return "written"

    assert attempt(Attack("a", "b", writes), 0, 0) == {"written": 1}
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_in_the_folder_of_the_run_is_a_failure(tmp_path: Path) -> None:
    def escapes(random: object, folder: object) -> str:
        (tmp_path / "*.csv").write_text("left behind")
        return "written"

    lines: list[str] = []
    record = run_attacks([Attack("a", "b", escapes)], 0, 0.0, lines.append)
    assert record.failed == 1
    assert "{'*.csv'} came into" in record.tallies[0].failures[0]


def test_an_attack_that_cannot_be_made_here_says_why() -> None:
    def unavailable(random: object, folder: object) -> str:
        raise UnavailableError("no Java")

    record = run_attacks([Attack("a", "b", unavailable)], 0, 0.001, print)
    assert record.tallies[0].skipped == "no Java"
    assert "not tried here: no Java" in build_page(record, read_soak())
