"""What is kept as JSON text: certificates of every kind, and curves, all written and read in one way."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pac_wrap import calibrate, calibrate_classes, calibrate_labelled, certify_curve
from pac_wrap.base.codec import SavedAsJSON
from pac_wrap.errors import CertificateError, InputError

LOW, HIGH = list(range(100)), list(range(200, 300))
SAVED: dict[str, SavedAsJSON] = {
    "certificate": calibrate(LOW, HIGH),
    "curve": certify_curve(LOW, HIGH),
    "groups": calibrate_labelled([*LOW, *HIGH], [0] * 100 + [1] * 100, by=["a"] * 200),
    "kinds": calibrate(LOW, {"worn": HIGH}),
    "classes": calibrate_classes([[1, 0], [0, 1]] * 100, [0, 1] * 100),
}


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved_is_loaded_to_the_last_digit(name: str, tmp_path: Path) -> None:
    made = SAVED[name]
    made.save(tmp_path / "made.json")
    again = type(made).load(tmp_path / "made.json")
    assert again == made
    assert again.to_json() == made.to_json()
    assert not {"from_json", "save", "load"} & vars(type(made)).keys(), "there is one way to write and read"


# a certificate of kinds is a certificate
@pytest.mark.parametrize(("one", "other"), list(permutations(sorted(SAVED.keys() - {"kinds"}), 2)))
def test_none_is_taken_for_another(one: str, other: str) -> None:
    with pytest.raises(CertificateError, match=r"format|this is no"):
        type(SAVED[one]).from_json(SAVED[other].to_json())


@dataclass(frozen=True, slots=True)
class Note(SavedAsJSON):
    number: int

    _header: ClassVar[dict[str, Any]] = {"format": "a note", "schema": 1}
    _noun: ClassVar[str] = "note"
    _remedy: ClassVar[str] = "write another"

    def _problems(self) -> Iterator[str]:
        if self.number < 0:
            raise InputError("no calibration takes it")
        if self.number == 0:
            yield "it is zero"


def test_a_contradiction_is_refused_with_its_remedy() -> None:
    assert Note.from_json(Note(7).to_json()) == Note(7)
    with pytest.raises(CertificateError, match=r"^the note contradicts itself: it is zero; write another$"):
        Note.from_json(Note(0).to_json())
    with pytest.raises(CertificateError, match=r"itself: no calibration takes it; write another$"):
        Note.from_json(Note(-1).to_json())


def test_whoever_is_filed_finds_its_own_contradictions() -> None:
    @dataclass(frozen=True, slots=True)
    class Careless(SavedAsJSON):
        _header: ClassVar[dict[str, Any]] = {"format": "careless", "schema": 1}

    with pytest.raises(NotImplementedError):
        Careless.from_json(Careless().to_json())
