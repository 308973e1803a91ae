"""The list of mutants fits the source: each is found where it is said to be, and gives code that compiles."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from mutants.change import FOLDERS, Mutant, apply, mutants_of
from mutants.listed import KILLED, read_list, shares
from mutants.reached import Reached
from mutants.run import rounds

ROOT = Path(__file__).parent.parent
SOURCE = b'''def f(a, b: int = 1):
    """a < b"""
    if a < b and not b > 2:
        raise ValueError(f"{a + b}")
    return min(a + 1.0, (a) * b)  # a * b
'''


def test_every_listed_mutant_is_found_and_compiles() -> None:
    listed = [one.mutant for one in read_list()]
    assert len(set(listed)) == len(listed)
    assert {Path(mutant.file).parts[2] for mutant in listed} == set(FOLDERS)
    files: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in listed:
        files[mutant.file].append(mutant)
    lost: list[Mutant] = []
    for file, mutants in files.items():
        source = (ROOT / file).read_bytes()
        places = mutants_of(file, source)
        lost += [mutant for mutant in mutants if mutant not in places]
        for mutant in set(mutants) & places.keys():
            place = places[mutant]
            assert source[place.start : place.end].decode() == mutant.old
            # the rest of the file is the same, so the new expression decides
            ast.parse(f"_[{mutant.new}]", mode="eval")
    assert len(listed) - len(lost) >= 300, (
        "the source has changed: correct these lines of tests/mutants/changes.csv"
    )


def test_nothing_that_was_killed_survives() -> None:
    listed = read_list()
    assert not [one for one in listed if one.equivalent and one.now in KILLED]
    assert not [one for one in listed if one.before in KILLED and one.now == "survived"]
    before, now = ((killed / tried, tried) for _, _, tried, killed, _ in list(shares(listed))[-2:])
    assert now[0] >= before[0]
    assert before[1] >= 300


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("comparison", "a < b and not b > 2", "a <= b and not b > 2"),
        ("and, or", "a < b and not b > 2", "a < b or not b > 2"),
        ("not", "a < b and not b > 2", "a < b and (b > 2)"),
        ("integer", "a < b and not b > 2", "a < b and not b > 3"),
        ("guard", "a < b and not b > 2", "True"),
        ("min, max, sum, any, all", "min(a + 1.0, (a) * b)", "max(a + 1.0, (a) * b)"),
        ("arithmetic", "min(a + 1.0, (a) * b)", "min(a + 1.0, (a) / b)"),
        ("0.0, 1.0", "min(a + 1.0, (a) * b)", "min(a + 0.0, (a) * b)"),
    ],
)
def test_a_source_has_mutants_of_each_kind(kind: str, old: str, new: str) -> None:
    mutant = Mutant("f.py", "f", kind, old, new, 0)
    assert mutant in mutants_of("f.py", SOURCE)
    assert apply(mutant, SOURCE) == SOURCE.replace(old.encode(), new.encode(), 1)


def test_docstrings_messages_and_defaults_are_no_behaviour() -> None:
    found = mutants_of("f.py", SOURCE)
    assert {place.line for place in found.values()} == {3, 5}


def test_tests_of_the_own_folder_come_first_and_dear_ones_are_left_out() -> None:
    seconds = {"tests/cli/a.py::x": 0.1, "tests/ranks/b.py::y": 3.0, "tests/ranks/b.py::z": 99.0}
    reached = Reached({"src/pac_wrap/ranks/c.py": {"7": ["tests/cli/a.py::x", "tests/ranks/b.py/"]}}, seconds)
    tests = reached.of("src/pac_wrap/ranks/c.py", 7)
    assert rounds("src/pac_wrap/ranks/c.py", tests, seconds, 9.0) == [
        ["tests/ranks/b.py::y", "tests/cli/a.py::x"]
    ]
