"""Where a certificate comes from is noted, harmless wherever it is shown, and no part of what is verified."""

import json
import re
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Certificate, CertificateError, Curve, InputError, calibrate, certify_curve
from pac_wrap.base.codec import encode
from pac_wrap.method.provenance import Provenance, harmless, now
from support.reports import facts_told

NORMAL, ANOMALOUS = np.arange(200.0), np.arange(150.0, 350.0)
PLAIN = calibrate(NORMAL, ANOMALOUS)
KNOWN: dict[str, Any] = {
    "score": "forest",
    "tables": ("a.csv", "b.csv"),
    "detector": "IsolationForest",
    "date": "2027-01-31T12:00:00Z",
    "engine": "duckdb",
    "lowest": -inf,
    "highest": 349.0,
    "trained": (1000, 0),
}
SIGNED = PLAIN.with_provenance(**KNOWN)


def test_what_is_known_is_kept_and_the_rest_is_none() -> None:
    assert SIGNED.provenance == Provenance(**KNOWN)
    assert PLAIN.provenance is None
    some = PLAIN.with_provenance(score="forest").with_provenance(date=KNOWN["date"])
    assert some.provenance == Provenance(score="forest", date=KNOWN["date"])
    assert Provenance() == Provenance(None, (), None, None, None, None, None, None)


@pytest.mark.parametrize("made", [PLAIN, certify_curve(NORMAL, ANOMALOUS)])
def test_it_stands_apart_from_all_else(made: Certificate | Curve) -> None:
    signed = made.with_provenance(**KNOWN)
    assert signed == made
    assert hash(signed) == hash(made)
    assert signed.bare.to_json() == made.to_json()
    assert signed.to_json() != made.to_json()
    again = type(made).from_json(signed.to_json())
    assert again.provenance == signed.provenance
    assert again.to_json() == signed.to_json()


def test_a_calibration_in_memory_gives_the_same_bytes_twice() -> None:
    assert calibrate(NORMAL, ANOMALOUS).to_json() == PLAIN.to_json()
    assert "provenance" not in json.loads(PLAIN.to_json())


def test_it_is_no_part_of_what_is_verified() -> None:
    assert SIGNED.verify(NORMAL, ANOMALOUS)
    assert not SIGNED.verify(NORMAL[1:], ANOMALOUS)


def test_the_certificates_of_a_curve_take_it_over() -> None:
    curve = certify_curve(NORMAL, ANOMALOUS).with_provenance(**KNOWN)
    assert curve.choose(max_fpr=0.2).provenance == Provenance(**KNOWN)


def test_it_is_shown() -> None:
    (text,) = facts_told(SIGNED)["made"]
    assert re.sub("pac-wrap [0-9.]+", "pac-wrap", text) == (
        "2027-01-31T12:00:00Z, pac-wrap: column 'forest' of a.csv, b.csv,"
        " detector IsolationForest, trained on 1,000 normal and 0 anomalous rows, read by duckdb,"
        " scores from -inf to 349"
    )
    assert " ".join(str(SIGNED).split()).endswith(f"made {text}")
    assert "made" not in str(PLAIN)
    assert PLAIN.with_provenance() is PLAIN
    bare = PLAIN.with_provenance(score=None)
    assert str(bare).splitlines()[-1] == f"made       pac-wrap {bare.version}"
    assert str(Provenance(tables=("-",), engine="memory")) == "scores of standard input, in memory"


def tampered(**changes: Any) -> str:
    """Return a file whose checksum fits, with another provenance."""
    content = json.loads(SIGNED.to_json())
    content["provenance"] = {**content["provenance"], **changes}
    del content["checksum"]
    header = {name: content.pop(name) for name in ("format", "schema")}
    return encode(_Raw(content), header)


class _Raw:
    """A content that is written as it is."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content


@pytest.fixture(autouse=True)
def _raw_content(monkeypatch: pytest.MonkeyPatch) -> None:
    from pac_wrap.base import codec

    usual = codec.plain
    monkeypatch.setattr(
        codec, "plain", lambda value: value.content if isinstance(value, _Raw) else usual(value)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"score": 5}, "must be of type str"),
        ({"score": "a" * 201}, "at most 200 characters"),
        ({"tables": "a.csv"}, "must be a list"),
        ({"tables": ["a" * 201]}, "at most 200 characters"),
        ({"date": "yesterday"}, "date must be a time in UTC"),
        ({"date": "2027-13-31T12:00:00Z"}, "date must be a time in UTC"),
        ({"date": "2027-01-31T12:00:0\u0660Z"}, "date must be a time in UTC"),
        ({"engine": "excel"}, "must be one of"),
        ({"lowest": 350.0}, "no greater than highest"),
        ({"highest": None}, "go together"),
        ({"lowest": "nan"}, "'inf' or '-inf'"),
        ({"trained": [1]}, "numbers of normal and anomalous rows"),
        ({"trained": [1, -1]}, "0 or more"),
        ({"trained": [1, 0.5]}, "of type int"),
        ({"by": "me"}, "unknown"),
    ],
)
def test_what_is_not_possible_is_refused_in_a_file(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CertificateError, match=re.escape(words)):
        Certificate.from_json(tampered(**changes))


def test_a_file_that_was_changed_is_refused() -> None:
    with pytest.raises(CertificateError, match="was changed after it was written"):
        Certificate.from_json(SIGNED.to_json().replace("forest", "lof"))


def test_a_hostile_text_in_a_file_is_harmless_when_it_is_shown() -> None:
    hostile = "\x1b[31m\u202e\n<script>alert(1)</script>\ud800"
    found = Certificate.from_json(tampered(score=hostile, tables=[hostile], detector=hostile))
    assert found.provenance is not None
    for text in (found.provenance.score, *found.provenance.tables, found.provenance.detector):
        assert text == "\\x1b[31m\\u202e\\n<script>alert(1)</script>\\ud800"
    assert str(found).isprintable() or "\x1b" not in str(found)
    found.to_json().encode()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"by": "me"}, "provenance knows no 'by'; it has score, tables"),
        ({"score": 5}, "score must be a text, got 5"),
        ({"tables": "a.csv"}, "tables must be a sequence of texts"),
        ({"tables": (1,)}, "tables must be a text, got 1"),
        ({"engine": "excel"}, "engine must be one of 'memory', 'duckdb'"),
        ({"date": 2027}, "date must be a time in UTC"),
        ({"lowest": 1.0}, "go together"),
        ({"lowest": nan, "highest": 1.0}, "no greater than highest, got nan and 1.0"),
        ({"lowest": "a", "highest": "b"}, "no greater than highest"),
        ({"trained": 5}, "numbers of normal and anomalous rows, got 5"),
        ({"trained": (True, 1)}, "trained must be a whole number"),
    ],
)
def test_wrong_facts_are_refused_in_one_sentence(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        PLAIN.with_provenance(**facts)


@given(st.text(), st.lists(st.text(), max_size=30), st.text())
def test_any_text_makes_a_file_that_is_read_again(score: str, tables: list[str], detector: str) -> None:
    signed = PLAIN.with_provenance(score=score, tables=tuple(tables), detector=detector)
    again = Certificate.from_json(signed.to_json().encode())
    assert again.provenance == signed.provenance
    assert again.provenance is not None
    assert str(again.provenance).isprintable()
    assert again.provenance.score == harmless(score) == harmless(harmless(score))


@pytest.mark.parametrize("sign", ["[", "{", ",", '"', "\\", "\x00", "a"])
def test_texts_are_capped_so_that_the_file_is_read_again(sign: str) -> None:
    long = sign * 10_000
    signed = PLAIN.with_provenance(score=long, tables=(long,) * 5_000, detector=long)
    assert signed.provenance is not None
    assert len(signed.provenance.tables) == 10
    assert signed.provenance.tables[-1] == "4,991 more"
    assert len(signed.to_json()) < 10_000
    assert Certificate.from_json(signed.to_json()).provenance == signed.provenance
    ten = tuple(f"{name}.csv" for name in range(10))
    assert Provenance(tables=ten).tables == ten


def test_zero_has_no_sign_and_numbers_may_be_of_numpy() -> None:
    found = Provenance(lowest=np.float32(-0.0), highest=np.int64(3), trained=[np.int64(1), 2])  # type: ignore[arg-type]  # as NumPy has them
    assert str(found.lowest) == "0.0"
    assert (type(found.lowest), type(found.highest), found.trained) == (float, float, (1, 2))


def test_the_time_may_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1801396800")
    assert now() == "2027-01-31T12:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert Provenance(date=now()).date is not None
