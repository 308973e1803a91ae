"""How points were taken from a series: what a certificate says of it, and what its file gives back."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from html import unescape
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Certificate, CertificateError, Guarantee, calibrate
from pac_wrap.method.promise import OF_DRAWS, OF_SERIES
from pac_wrap.method.provenance import Sampling
from pac_wrap.report.account import account_of
from pac_wrap.report.render import rendered
from pac_wrap.report.sentences import briefly
from support.reports import facts_told
from support.shell import CERTIFICATE, invoke, succeeded
from support.strategies import refusal

RANDOM = np.random.default_rng(0)
NORMAL, ANOMALOUS = RANDOM.normal(0, 1, 400), RANDOM.normal(6, 1, 120)
PLAIN = calibrate(NORMAL, ANOMALOUS, Guarantee(0.1, 0.1, 0.1, 0.1))
FIELDS: dict[str, Any] = {
    "length": 15,
    "every": 1060,
    "reduce": "max",
    "split": "blocks",
    "gap": 1060,
    "block": 6000,
    "effective_normal": 80.4,
    "effective_anomalous": 9.6,
}
BLOCKS = Sampling(**FIELDS)
CARRYING = replace(PLAIN, sampling=BLOCKS, assumptions=OF_SERIES)


def made(**changed: Any) -> Sampling:
    return Sampling(**(FIELDS | changed))


def tampered(change: Callable[[dict[str, Any]], object]) -> str:
    """Return the JSON of a certificate after a change by somebody who also made the checksum fit."""
    content = json.loads(CARRYING.to_json())
    del content["checksum"]
    change(content)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps(content | {"checksum": hashlib.sha256(canonical.encode()).hexdigest()})


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"length": 0}, "length must lie between 1 and every = 1,060, got 0"),
        ({"length": 1061}, "length must lie between 1 and every = 1,060, got 1,061"),
        ({"length": -1}, "length must be a whole number, 0 or more, got -1"),
        ({"length": 1.5}, "length must be a whole number, 0 or more, got 1.5"),
        ({"length": True}, "length must be a whole number, 0 or more, got True"),
        ({"every": 0}, "length must lie between 1 and every = 0, got 15"),
        ({"every": "60"}, "every must be a whole number, 0 or more, got '60'"),
        ({"gap": -1}, "gap must be a whole number, 0 or more, got -1"),
        ({"gap": None}, "gap must be a whole number, 0 or more, got None"),
        ({"reduce": "min"}, "reduce must be one of 'max', 'mean', 'last'; got 'min'"),
        ({"split": "time"}, "split must be one of 'blocks', 'random', 'series', 'none'; got 'time'"),
        ({"block": None}, "block must be at least 1 for a split in blocks, and None for others, got None"),
        (
            {"split": "random"},
            "block must be at least 1 for a split in blocks, and None for others, got 6000 and 'random'",
        ),
        (
            {"split": "none"},
            "block must be at least 1 for a split in blocks, and None for others, got 6000 and 'none'",
        ),
        ({"errors_normal": -1}, "errors_normal must be a whole number, 0 or more, got -1"),
        ({"effective_normal": -0.5}, "effective_normal must be a number, 0 or more, or None, got -0.5"),
        ({"effective_normal": inf}, "effective_normal must be a number, 0 or more, or None, got inf"),
        ({"effective_anomalous": nan}, "effective_anomalous must be a number, 0 or more, or None, got nan"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], text: str) -> None:
    assert text in refusal(lambda: made(**changed))


@pytest.mark.parametrize("block", [0, -5, 1.5, "600", True])
def test_a_block_is_a_whole_number_of_steps(block: Any) -> None:
    assert "block" in refusal(lambda: made(block=block))


@pytest.mark.parametrize("value", ["many", True, [3.0]])
def test_an_effective_size_is_a_number(value: Any) -> None:
    assert "effective_normal" in refusal(lambda: made(effective_normal=value))


def test_a_sampling_stays_as_it_is_and_its_sizes_are_plain_numbers() -> None:
    found = made(effective_normal=np.float32(80), effective_anomalous=9)
    assert (type(found.effective_normal), type(found.effective_anomalous)) == (float, float)
    with pytest.raises(FrozenInstanceError):
        found.gap = 3  # type: ignore[misc]  # that is the point


def test_its_text_names_windows_and_split() -> None:
    windows = "windows of 15 in every 1,060 steps (max)"
    assert str(BLOCKS) == f"{windows}, split in blocks of 6,000 steps with a gap of 1,060"
    assert str(made(split="random", block=None, gap=0)) == f"{windows}, split at random"
    assert str(made(split="none", block=None, gap=0)) == f"{windows}, all of them calibrate"
    assert "(last)" in str(made(reduce="last"))


def test_a_certificate_tells_windows_split_worth_and_mixing() -> None:
    text, plain = facts_told(CARRYING), facts_told(PLAIN)
    assert text["series"] == [
        str(BLOCKS),
        "worth about 80 independent normal scores and about 10 independent anomalous scores",
    ]
    assert text["assumes"] == [briefly(OF_SERIES)]
    assert text["assumes"][0].startswith("mixing: ")
    assert "independent points" not in text["assumes"][0]
    assert "series" not in plain
    assert plain["assumes"] == [briefly(OF_DRAWS)]
    # 80 normal and ten anomalous scores do not carry the ceilings; all else is as without a series
    kept, _, _ = plain["promise"][0].partition(": both together")
    assert text["promise"][0].startswith(kept.replace("In the", "If the points were independent, in the"))
    assert "They are not independent: 400 normal points count as about 80 and " in text["promise"][0]
    assert CARRYING.overstated == ("normal", "anomalous")
    same = set(plain) - {"assumes", "promise"}
    assert {name: text[name] for name in same} == {name: plain[name] for name in same}


@pytest.mark.parametrize(
    ("worth", "errors", "overstated"),
    [
        (120.0, 1, ()),
        (60.0, 1, ()),  # half of them count as all
        (59.0, 1, ("anomalous",)),  # of 59 none may be an error
        (59.0, 0, ()),
        (59.0, None, ("anomalous",)),  # then the rule may err as often as its budget allows
        (58.0, 0, ("anomalous",)),  # too few for 5 % at all
        (None, 0, ("anomalous",)),
    ],
)
def test_points_worth_too_few_for_their_ceiling_are_told(
    worth: float | None, errors: int | None, overstated: tuple[str, ...]
) -> None:
    taken = made(effective_normal=120.0, errors_normal=0, effective_anomalous=worth, errors_anomalous=errors)
    plain = calibrate(np.arange(120.0), np.arange(110.0, 230.0))
    assert plain.fnr.budget is not None
    assert plain.fnr.budget.errors == 1
    found = replace(plain, sampling=taken, assumptions=OF_SERIES)
    assert found.overstated == overstated
    assert plain.overstated == ()


samplings = st.builds(
    lambda length, more, split, gap, block, reduce, normal, anomalous: Sampling(
        length, length + more, reduce, split, gap, block if split == "blocks" else None, normal, anomalous
    ),
    st.integers(1, 2**40),
    st.integers(0, 2**40),
    st.sampled_from(["blocks", "random", "none"]),
    st.integers(0, 2**40),
    st.integers(1, 2**40),
    st.sampled_from(["max", "mean", "last"]),
    st.floats(0, 120),
    st.floats(0, 120),
)


@given(samplings)
def test_json_gives_back_an_equal_certificate(sampling: Sampling) -> None:
    carrying = replace(PLAIN, sampling=sampling, assumptions=OF_SERIES)
    again = Certificate.from_json(carrying.to_json())
    assert again == carrying
    assert again.to_json() == carrying.to_json()


def test_a_file_gives_back_an_equal_certificate(tmp_path: Path) -> None:
    CARRYING.save(tmp_path / "certificate.json")
    assert Certificate.load(tmp_path / "certificate.json") == CARRYING


def test_numpy_numbers_of_steps_can_be_written() -> None:
    whole = {name: np.int64(FIELDS[name]) for name in ("length", "every", "gap", "block")}
    carrying = replace(PLAIN, sampling=made(**whole), assumptions=OF_SERIES)
    assert Certificate.from_json(carrying.to_json()).sampling == BLOCKS


def test_without_a_series_nothing_of_it_is_written_and_old_files_are_read() -> None:
    assert "sampling" not in json.loads(PLAIN.to_json())
    assert Certificate.from_json(PLAIN.to_json()) == PLAIN
    old = CERTIFICATE.read_text(encoding="utf-8")
    assert "sampling" not in json.loads(old)
    loaded = Certificate.load(CERTIFICATE)
    assert loaded.sampling is None
    assert loaded.to_json() == old
    assert (
        Certificate.from_json(
            tampered(lambda content: content.update(sampling=None, assumptions=[1, 2, 3]))
        ).sampling
        is None
    )


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("length", 0, "length must lie between 1 and every"),
        ("length", 15.0, "sampling.length must be of type int, got 15.0"),
        ("every", 14, "length must lie between 1 and every = 14, got 15"),
        ("every", True, "sampling.every must be of type int, got True"),
        ("reduce", "sum", "sampling.reduce must be one of"),
        ("split", "random", "block must be at least 1 for a split in blocks"),
        ("split", "weeks", "sampling.split must be one of"),
        ("gap", -1, "gap must be a whole number, 0 or more, got -1"),
        ("gap", None, "sampling.gap must be of type int, got None"),
        ("block", "6000", "sampling.block must be of type int, got '6000'"),
        ("block", None, "block must be at least 1 for a split in blocks"),
        ("effective_normal", -1, "effective_normal must be a number, 0 or more, or None"),
        ("effective_normal", "inf", "effective_normal must be a number, 0 or more, or None"),
        ("effective_anomalous", [], "sampling.effective_anomalous must be a number, got []"),
        ("colour", "red", "sampling.colour must be absent: it is unknown, got 'red'"),
    ],
)
def test_tampered_values_are_refused(field: str, value: Any, text: str) -> None:
    with pytest.raises(CertificateError) as caught:
        Certificate.from_json(tampered(lambda content: content["sampling"].update({field: value})))
    assert text in str(caught.value)


@pytest.mark.parametrize("field", list(FIELDS))
def test_a_missing_value_is_refused(field: str) -> None:
    with pytest.raises(CertificateError, match=f"sampling.{field} must be there"):
        Certificate.from_json(tampered(lambda content: content["sampling"].pop(field)))


@pytest.mark.parametrize("value", [[], "blocks", 3, {}])
def test_something_else_than_a_sampling_is_refused(value: Any) -> None:
    with pytest.raises(CertificateError, match="sampling"):
        Certificate.from_json(tampered(lambda content: content.update(sampling=value)))


@pytest.mark.parametrize(("field", "value"), [("block", 0), ("block", -6000)])
def test_a_tampered_block_is_refused(field: str, value: int) -> None:
    with pytest.raises(CertificateError):
        Certificate.from_json(tampered(lambda content: content["sampling"].update({field: value})))


@pytest.mark.parametrize(("field", "n"), [("effective_normal", 400), ("effective_anomalous", 120)])
def test_no_more_independent_points_than_points(field: str, n: int) -> None:
    Certificate.from_json(tampered(lambda content: content["sampling"].update({field: n})))
    with pytest.raises(CertificateError):
        Certificate.from_json(tampered(lambda content: content["sampling"].update({field: n + 1})))


def test_a_changed_letter_is_noticed_by_the_checksum() -> None:
    with pytest.raises(CertificateError, match="checksum"):
        Certificate.from_json(CARRYING.to_json().replace('"gap": 1060', '"gap": 1061'))


def test_verify_looks_at_the_scores_and_not_at_the_sampling() -> None:
    assert CARRYING.verify(NORMAL, ANOMALOUS)
    assert replace(CARRYING, sampling=None).verify(NORMAL, ANOMALOUS)
    assert replace(PLAIN, sampling=made(effective_normal=1)).verify(NORMAL, ANOMALOUS)
    assert not CARRYING.verify(NORMAL[1:], ANOMALOUS)


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_reports_say_that_the_promise_is_conditional_on_mixing(suffix: str) -> None:
    def page(certificate: Certificate) -> str:
        return unescape(str(rendered(account_of(certificate, NORMAL, ANOMALOUS), f"report{suffix}")))

    text = page(CARRYING)
    sentences = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in map(str, OF_SERIES)]
    assert [text.count(sentence) for sentence in sentences] == [1] * len(sentences)
    assert "mixing" not in page(PLAIN)


def test_show_prints_windows_split_worth_and_mixing(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    CARRYING.save(path)
    shown = " ".join(succeeded("show", path).split())
    assert str(BLOCKS) in shown
    assert "worth about 80 independent normal scores and about 10 independent anomalous scores" in shown
    assert briefly(OF_SERIES) in shown


def test_show_refuses_a_tampered_file_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(tampered(lambda content: content["sampling"].update(every=14)), encoding="utf-8")
    done = invoke("show", path)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "every = 14" in done.err
