"""A few faults of every class, and the page that says how many were tried."""

import pytest

from torture.attacks import ATTACKS
from torture.page import COUNTS, PAGE, build_page
from torture.record import Attack, Record, UnavailableError
from torture.run import attempt, run_attacks


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_few_faults_of_every_class_are_handled(attack: Attack) -> None:
    for number in range(3):
        try:
            assert sum(attempt(attack, 1, number).values()) > 0
        except UnavailableError as reason:
            pytest.skip(str(reason))


def test_the_page_is_what_the_counts_give() -> None:
    record = Record.from_json(COUNTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == build_page(record), "run make torture"
    assert record.failed == 0
    assert [tally.name for tally in record.tallies] == [attack.name for attack in ATTACKS]
    assert not any(tally.skipped for tally in record.tallies)


def test_a_fault_that_is_not_handled_is_counted_and_can_be_made_again() -> None:
    def fails_now_and_then(random: object, folder: object) -> str:
        seen.append(random.integers(1000))  # type: ignore[attr-defined]  # a generator of NumPy's
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
    assert "**not handled" in build_page(record)
    first = seen[0]
    seen.clear()
    attempt(Attack("a", "b", fails_now_and_then), 7, 0)
    assert seen == [first]


def test_an_attack_that_cannot_be_made_here_says_why() -> None:
    def unavailable(random: object, folder: object) -> str:
        raise UnavailableError("no Java")

    record = run_attacks([Attack("a", "b", unavailable)], 0, 0.001, print)
    assert record.tallies[0].skipped == "no Java"
    assert "not tried here: no Java" in build_page(record)
