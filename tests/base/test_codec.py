"""JSON in and out: exact, strict, and closed to everything that encode did not write."""

import copy
import json
import os
import pickle
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, CertificateError, calibrate
from pac_wrap.base.codec import content_of, encode, flat, typed
from support.resealed import sealed as seal

Content = dict[str, Any]


@pytest.fixture(scope="module")
def text() -> str:
    """A relaxed certificate, so that every field is filled."""
    rng = np.random.default_rng(0)
    return calibrate(rng.normal(0, 1, 500), rng.normal(2, 1, 500), overlap="algorithm1").to_json()


def refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def edit(text: str, **changes: Any) -> str:
    """Return a resealed certificate; clauses__0__n=5 changes content["clauses"][0]["n"]."""
    content = json.loads(text)
    for path, value in changes.items():
        *outer, last = path.split("__")
        _inside(content, outer)[last] = value
    return seal(content)


def _inside(content: Any, path: Iterable[str]) -> Any:
    for name in path:
        content = content[int(name)] if isinstance(content, list) else content[name]
    return content


def test_the_text_is_strict_json_with_header_and_checksum(text: str) -> None:
    content = json.loads(text, parse_constant=refuse_constant)
    names = list(content)
    assert names[:2] == ["format", "schema"]
    assert names[-1] == "checksum"
    assert (content["format"], content["schema"]) == ("pac-wrap certificate", 3)
    assert json.loads(seal(content))["checksum"] == content["checksum"]
    assert text.isascii()
    assert text.endswith("}\n")


def test_infinities_are_text_and_floats_are_exact() -> None:
    numbers = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, np.nextafter(1.0, 2.0).item()]
    normal, anomalous = np.repeat(numbers, 25), np.full(100, inf)
    certificate = calibrate(normal, anomalous)
    content = json.loads(certificate.to_json(), parse_constant=refuse_constant)
    assert content["clauses"][1]["threshold"] == "inf"
    assert Certificate.from_json(certificate.to_json()) == certificate
    too_few = calibrate([1.0], [2.0]).to_json()
    assert [one["threshold"] for one in json.loads(too_few)["clauses"]] == ["inf", "-inf"]


def test_text_bytes_and_a_missing_final_newline_say_the_same(text: str) -> None:
    expected = Certificate.from_json(text)
    for form in (text.encode(), text.rstrip("\n"), b"\n " + text.encode(), seal(json.loads(text))):
        assert Certificate.from_json(form) == expected


def test_whole_numbers_are_read_where_numbers_are_expected() -> None:
    rng = np.random.default_rng(0)
    high = calibrate(rng.normal(0, 1, 500), rng.normal(2, 1, 500), overlap=Algorithm1(position=1.0)).to_json()
    certificate = Certificate.from_json(edit(high, overlap__position=1))
    assert isinstance(certificate.overlap, Algorithm1)
    assert type(certificate.overlap.position) is float


def test_every_prefix_is_refused(text: str) -> None:
    whole = text.rstrip("\n").encode()
    for end in range(len(whole)):
        with pytest.raises(CertificateError, match="not JSON"):
            Certificate.from_json(whole[:end])


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        ("", "not JSON"),
        (b"", "not JSON"),
        ("certificate", "not JSON"),
        ("[]", "not a JSON object"),
        ("17", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "format None where 'pac-wrap certificate' is expected; is it the right file"),
        ('{"format": "another", "schema": 1}', "format 'another'"),
        ('{"format": "pac-wrap certificate"}', "schema None where 3"),
        ('{"format": "pac-wrap certificate", "schema": 4}', "schema 4, this version reads 3; update"),
        (
            '{"format": "pac-wrap certificate", "schema": 1}',
            "schema 1, this version reads 3; calibrate again",
        ),
        (
            '{"format": "pac-wrap certificate", "schema": 0}',
            "schema 0, this version reads 3; calibrate again",
        ),
        ('{"format": "pac-wrap certificate", "schema": "3"}', "schema '3' where 3"),
        ('{"format": "pac-wrap certificate", "schema": 3}', "checksum differs"),
        ('{"format": "pac-wrap certificate", "schema": 3, "rule": NaN}', "NaN is not a JSON number"),
        ('{"format": "pac-wrap certificate", "schema": 3, "rule": -Infinity}', "-Infinity is not"),
        ('{"format": "pac-wrap certificate", "schema": 3, "schema": 3}', "appears twice"),
        ("[" * 100_000, "more than 100 of the character '\\['"),
        ('{"a": [' + "1," * 10_001 + "1]}", "more than 10,000 of the character ','"),
        ('{"a": 1' + " " * 1_000_000 + "}", "over 1,000,000 bytes"),
        ('{"a":' * 100_000, "more than 100 of the character '{'"),
        ("9" * 5000, "not JSON"),
        ("\n<!doctype html>" + "[" * 1000, "it is a page; open it in a browser and save its certificate"),
        (b"<html>", "it is a page"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"format": "\x80"}', "not JSON"),
    ],
)
def test_what_is_no_certificate_is_refused_with_a_reason(damaged: str | bytes, reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        Certificate.from_json(damaged)


def test_true_is_no_schema_number(text: str) -> None:
    with pytest.raises(CertificateError, match="schema"):
        Certificate.from_json(edit(text, schema=True))


def test_nesting_of_any_depth_is_refused() -> None:
    # reading, hashing and quoting each have their own depth at which Python gives up
    for depth in range(1, 1100):
        nested = "[" * depth + "]" * depth
        with pytest.raises(CertificateError):
            Certificate.from_json(f'{{"format": "pac-wrap certificate", "schema": 3, "deep": {nested}}}')


def test_names_that_stand_twice_are_refused_at_any_depth(text: str) -> None:
    twice = text.replace('"budget":', '"budget": 1, "budget":', 1)
    with pytest.raises(CertificateError, match="appears twice"):
        Certificate.from_json(twice)


def leaves(content: Content) -> list[tuple[str, ...]]:
    """Return where each value stands; the clauses by their places."""
    inner: dict[str, Any] = {
        name: dict(enumerate(value)) if name == "clauses" else value if isinstance(value, dict) else None
        for name, value in content.items()
    }
    return [
        (str(name), *rest)
        for name, value in inner.items()
        for rest in (leaves(value) if value is not None else [()])
    ]


def test_any_edited_value_breaks_the_checksum(text: str) -> None:
    content = json.loads(text)
    paths = [path for path in leaves(content) if path[0] not in ("format", "schema")]
    assert len(paths) > 30
    for *outer, last in paths:
        edited = copy.deepcopy(content)
        node = _inside(edited, outer)
        value = node[last]
        is_number = type(value) in (int, float)
        node[last] = np.nextafter(value, inf).item() if is_number else f"{value}x"
        with pytest.raises(CertificateError, match=r"checksum differs\); calibrate again"):
            Certificate.from_json(json.dumps(edited))


def test_every_missing_name_is_refused(text: str) -> None:
    for path in leaves(json.loads(text)):
        if path[0] in ("format", "schema", "checksum") or path[2:3] in (("certified",), ("found_at",)):
            continue
        content = json.loads(text)
        del _inside(content, path[:-1])[path[-1]]
        where = "[.]".join(name for name in path if not name.isdigit())
        with pytest.raises(CertificateError, match=f"{where} must be there, got 'nothing'"):
            Certificate.from_json(seal(content))


@pytest.mark.parametrize(
    "place", ["extra", "clauses__0__extra", "clauses__0__found_at__extra", "rule__extra", "overlap__extra"]
)
def test_an_unknown_name_is_refused(text: str, place: str) -> None:
    with pytest.raises(CertificateError, match="extra must be absent: it is unknown, got 1"):
        Certificate.from_json(edit(text, **{place: 1}))


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ("clauses__0__n", True, "clauses.n must be of type int, got True"),
        ("clauses__0__n", 500.0, "of type int"),
        ("clauses__0__n", "500", "of type int"),
        ("clauses__0__n", None, "of type int"),
        ("clauses__0__beyond", False, "beyond must be of type int"),
        ("rule__anomaly_from", "1.5", "a number, 'inf' or '-inf'"),
        ("rule__anomaly_from", "nan", "a number, 'inf' or '-inf'"),
        ("rule__anomaly_from", "Infinity", "a number, 'inf' or '-inf'"),
        ("rule__anomaly_from", True, "a number, got True"),
        ("rule__anomaly_from", [], "a number, got"),
        pytest.param("rule__anomaly_from", 10**400, "a number has more than 50 digits", id="too many digits"),
        pytest.param("rule__anomaly_from", 10**40, "does not follow", id="beyond clear_below"),
        ("clauses__0__found_at__rate", None, "rate must be a number, got None"),
        ("clauses__0__digest", 5, "of type str"),
        ("clauses__0__budget", [], "of type int"),
        ("clauses", [None, None], "an object"),
        ("clauses", "inf", "a list"),
        ("clauses__0__error", "mixed", "one that is known"),
        ("clauses__0__error", ["miss"], "one that is known"),
        ("clauses__0__error", None, "one that is known"),
        ("rule__normal_below", 10**40, "not possible: normal_below must not exceed anomaly_from"),
        ("rule__normal_below", None, "normal_below must be a number, got None"),
        ("overlap", None, "overlap must be a value, got None"),
        ("overlap__name", "guess", "one of"),
        ("overlap__name", "hold", "rate must be there"),
        ("overlap__growth", {}, "one of"),
        ("overlap__relax_delta", 0, "of type bool"),
        ("overlap__position", 1.5, "not possible: position must lie between"),
        ("overlap__step", 0.0, "not possible: step must lie strictly"),
        ("assumptions", "none", "a list"),
        ("assumptions", [99], "one that is known, got 99"),
        ("assumptions", [True, 2, 3], "one that is known, got True"),
        ("assumptions", [1.0, 2, 3], "one that is known, got 1.0"),
        ("assumptions", ["\x1b[2J"], "one that is known, got '.x1b"),
        ("assumptions", [], "these are not the assumptions of draws"),
        ("assumptions", [4, 5, 2], "these are not the assumptions of draws"),
        ("clauses__0__ceiling", 2.0, "max_fpr must lie strictly"),
        ("clauses__0__delta", None, "delta must be a number, got None"),
    ],
)
def test_a_wrong_type_or_impossible_value_is_refused(
    text: str, place: str, value: object, reason: str
) -> None:
    with pytest.raises(CertificateError, match=reason):
        Certificate.from_json(edit(text, **{place: value}))


class Bomb:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


def test_loading_runs_no_code(tmp_path: Path, text: str) -> None:
    mark, file = tmp_path / "mark", tmp_path / "file"
    code = f"__import__('os').mkdir({str(mark)!r})"
    for content in (
        pickle.dumps(Bomb(mark)),
        code.encode(),
        edit(text, version=code, rule__anomaly_from=code).encode(),
    ):
        file.write_bytes(content)
        with pytest.raises(CertificateError):
            Certificate.load(file)
        assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists()


def test_flat_names_the_leaves_as_the_text_has_them(text: str) -> None:
    certificate = Certificate.from_json(text)
    names = flat(certificate)
    content = json.loads(text)
    rest = {".".join(path) for path in leaves(content) if path[0] != "clauses"}
    assert set(names) == (rest | {"clauses"}) - {"format", "schema", "checksum"}
    assert names["clauses"] == content["clauses"]
    assert names["rule.anomaly_from"] == content["rule"]["anomaly_from"]


def test_another_header_reads_only_its_own(text: str) -> None:
    certificate = Certificate.from_json(text)
    header = {"format": "other", "schema": 3}
    other = encode(certificate, header)
    assert typed(Certificate, content_of(other, header, "certificate"), "certificate") == certificate
    with pytest.raises(CertificateError, match="format 'other'"):
        Certificate.from_json(other)
