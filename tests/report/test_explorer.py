"""The explorer in a real browser: what it shows and saves is what the library says, to the last digit."""

import json
import warnings
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from hashlib import sha256
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import InputError, LabelUntil, calibrate
from pac_wrap.base.floats import between
from pac_wrap.method.curves.curve import Curve
from pac_wrap.report.numbers import ceiling, least
from pac_wrap.report.pictures import Window, script_data
from pac_wrap.report.sentences import Report
from support.browser import show
from support.explored import told
from support.reports import curve_for, to_html

RANDOM = np.random.default_rng(3)
LOW, HIGH = RANDOM.normal(0, 1, 400), RANDOM.normal(2, 1, 150)
SCORES: dict[str, tuple[Any, Any]] = {
    "plain": (LOW, HIGH),
    "ties": (np.round(LOW), np.round(HIGH)),
    "zeros": (np.r_[np.zeros(90), -np.zeros(90), LOW[:50]], np.r_[-np.zeros(9), HIGH]),
    "infinities": (np.r_[LOW, [-inf] * 30, [inf] * 3], np.r_[HIGH, [inf] * 20, -inf]),
    "subnormal": (LOW * 1e-310, HIGH * 1e-310),
    "huge": (LOW * 1e300, HIGH * 1e300),
    "float32": (LOW.astype(np.float32), HIGH.astype(np.float32)),
    "float16": (LOW.astype(np.float16), HIGH.astype(np.float16)),
    "one class": (LOW, np.empty(0)),
    "the other": (np.empty(0), HIGH),
}
FREE = [0.0, -0.0, 0.5, 1.0, -1.25, 1e-5, 1.5e-7, 12345678.9, 1e16, 1.7e22, -3e300, 5e-324]
POINTS = [1000, 1, 7, 50_000, 123_456_789, 10**12 - 1]
PREVALENCES = [(0.02, 0.02), (0.01, 0.03), (0.5, 0.5), (1e-6, 1e-6), (0.3333, 0.9)]


def reported(normal: Any, anomalous: Any) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = calibrate(normal, anomalous).with_provenance(tables=('@fpr "@@rule"</script>.csv',))
    return Report(certificate, normal, anomalous)


def curve_named(name: str) -> Curve:
    found = curve_for(reported(*SCORES[name]))
    assert found is not None
    return found


@pytest.fixture
def ran(browser: Any, folder: Path) -> Any:
    """A function that runs a script in a page with the explorer."""
    show(browser, folder / "overlapping.html")
    return browser.execute_script


def at(curve: Curve, threshold: float) -> str | None:
    try:
        return curve.at(threshold).to_json()
    except InputError:
        return None


@pytest.mark.parametrize("name", SCORES)
def test_the_certificate_of_every_threshold_is_that_of_the_curve(ran: Any, name: str) -> None:
    curve = curve_named(name)
    places = curve.steps()[0].tolist()
    free = [*FREE, *RANDOM.normal(0, 2, 50).tolist()] if curve.score_type == "float64" else []
    found = ran(
        "const curve = PacWrap.read(arguments[0]);"
        "return arguments[1].map((t, place) => PacWrap.certificate(curve, JSON.parse(t), place))",
        script_data(curve, Window(0.0, 1.0), (0.05, 0.05), None),
        [json.dumps(t) for t in places + free],
    )
    expected = [at(curve, t) for t in places + free]
    assert sum(text is not None for text in expected) > 10
    assert found == expected


@pytest.mark.parametrize("name", ["plain", "ties", "infinities", "one class"])
def test_the_numbers_are_those_of_the_library(ran: Any, name: str) -> None:
    curve = curve_named(name)
    places = curve.steps()[0].tolist()
    places = places[:: 1 + len(places) // 60]
    pairs = [(t, t) for t in places] + [(a, b) for a in places[::3] for b in places[::5] if a < b]
    asked = [
        (*pair, *share, POINTS[place % len(POINTS)])
        for place, pair in enumerate(pairs)
        for share in PREVALENCES
    ]
    found = ran(
        "const curve = PacWrap.read(arguments[0]);"
        "return arguments[1].map(one => PacWrap.readout(curve, ...one))",
        script_data(curve, Window(0.0, 1.0), (0.05, 0.05), None),
        asked,
    )
    assert found == [told(curve, *one) for one in asked]
    checked = 0
    for (below, start, low, high, points), words in zip(asked, found, strict=True):
        if below == start and words["alarms"] != "not bounded":
            work = curve.at(start).workload((low, high), points)
            for kind in ("alarms", "right", "missed", "undecided"):
                bounds = getattr(work, kind)
                assert words[kind] == between(bounds.low, bounds.high)
            precision = curve.at(start).precision((low, high)).low
            assert words["precision"] == f"at least {least(precision)}"
            checked += 1
    assert checked > 20 or name == "one class"


def test_numbers_are_written_and_rounded_as_in_python(ran: Any) -> None:
    bits = RANDOM.integers(0, 2**63, 3000, dtype=np.uint64)
    doubles = [x for x in bits.view(np.float64).tolist() if abs(x) < inf]
    numbers = [*doubles, *(-x for x in doubles[:50]), *RANDOM.random(500), *FREE, 0.1 + 0.2, 1e21, 1e-7]
    texts = [json.dumps(float(x)) for x in numbers]
    assert ran("return arguments[0].map(text => PacWrap.repr(JSON.parse(text)))", texts) == texts
    above = ran("return arguments[0].map(text => PacWrap.repr(PacWrap.nextUp(JSON.parse(text))))", texts)
    assert above == [repr(nextafter(float(x), inf)) for x in numbers]
    shares = [*RANDOM.random(500), *(RANDOM.random(500) * 1e-3), 0.05, 0.01125, 0.99999, 0.0999999]
    found = ran("return arguments[0].map(x => PacWrap.ceiling(x))", [float(x) for x in shares])
    assert found == [ceiling(float(x)) for x in shares]
    for up, how in ((True, ROUND_CEILING), (False, ROUND_FLOOR)):
        got = ran(
            "return arguments[0].map(x => PacWrap.rounded(x, 4, arguments[1]))", list(map(float, shares)), up
        )
        exact = [Context(prec=4, rounding=how).create_decimal(repr(float(x))) for x in shares]
        assert [Decimal(text) for text in got] == exact
    messages = ["", "abc", *("x" * n for n in (54, 55, 56, 63, 64, 65, 119, 120, 2500))]
    digests = [sha256(text.encode()).hexdigest() for text in messages]
    assert ran("return arguments[0].map(PacWrap.sha256)", messages) == digests


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("0.02", [0.02, 0.02]),
        (" 0.01-0.03 ", [0.01, 0.03]),
        ("1e-3-2e-3", [0.001, 0.002]),
        ("0.01:0.03", [0.01, 0.03]),
        *[(text, None) for text in ("", "x", "0", "1", "0.3-0.1", "0.1-0.2-0.3", "-0.1")],
    ],
)
def test_a_prevalence_is_read_as_on_the_command_line(ran: Any, text: str, ends: list[float] | None) -> None:
    assert ran("return PacWrap.prevalence(arguments[0])", text) == ends


@pytest.mark.parametrize(
    ("points", "texts"),
    [
        (1000, ["1,000", " 1000 ", "1 000"]),
        (10**12 - 1, ["9" * 12, "999,999,999,999"]),
        (None, ["", "0", "-5", "1e3", "2.5", "1,50", "1,,000", "9" * 13, "a day"]),
    ],
)
def test_points_a_day_are_a_whole_number(ran: Any, points: int | None, texts: list[str]) -> None:
    for text in texts:
        assert ran("return PacWrap.points(arguments[0])", text) == points


def test_what_is_no_independent_draw_has_no_curve() -> None:
    labels = np.repeat([0, 1], [400, 150])
    until = LabelUntil(every=50, up_to=500)
    until.add(np.r_[LOW, HIGH + 9.0], labels)
    looked = until.certificate
    assert looked is not None
    n, m = looked.fpr.n, looked.fnr.n
    assert curve_for(Report(looked, LOW[:n], (HIGH + 9.0)[:m])) is None
    assert curve_for(Report(looked)) is None
    assert "figure-curve" not in to_html(Report(looked))


def test_a_class_that_is_too_large_for_a_band_has_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    given = reported(LOW, HIGH)
    assert curve_for(given) is not None
    monkeypatch.setattr("pac_wrap.report.pictures.MOST_POINTS", 399)
    assert curve_for(given) is None
    assert "figure-scores" in to_html(given)


def test_a_name_in_the_certificate_cannot_end_the_script() -> None:
    page = to_html(reported(LOW, HIGH))
    assert page.count("</script") == 2
    assert r"\u003c/script>.csv" in page
