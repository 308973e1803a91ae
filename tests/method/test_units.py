"""Points in units: budgets against a search by hand, verification, events and days, and refusals."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice
from math import comb, inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import (
    Abstain,
    Certificate,
    CertificateError,
    Guarantee,
    InputError,
    Monitor,
    PACWrap,
    TotalVariation,
    calibrate,
    calibrate_labelled,
    recalibrate,
)
from pac_wrap.method.promise import of_units
from pac_wrap.method.provenance import Day, Event
from pac_wrap.tails import error_budget
from pac_wrap.tails.bounds import min_samples
from pac_wrap.tails.units import highest_mean, refutes
from support.resealed import sealed

RNG = np.random.default_rng(20)
UNITS = np.repeat(np.arange(120), 6)
LABELS = (np.arange(UNITS.size) % 3 == 0).astype(int)
# ties within and between units, and infinities of both signs
SCORES = np.clip(np.round(RNG.normal(4 * LABELS) + np.repeat(RNG.normal(size=120) / 2, 6), 1), -2.5, 6.5)
SCORES[SCORES == 6.5], SCORES[SCORES == -2.5] = inf, -inf
BOTH = Guarantee(0.1, 0.1)


def certified(**more: Any) -> Certificate:
    return calibrate_labelled(SCORES, LABELS, BOTH, units=UNITS, **more)


def parted() -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]:
    """Return the scores and the units of each class."""
    normal = LABELS == 0
    return (SCORES[normal], SCORES[~normal]), (UNITS[normal], UNITS[~normal])


def in_order(certificate: Certificate, units: NDArray[Any]) -> list[int]:
    """Return the units in the order of the test, by a digest of the seed and the name."""
    from hashlib import sha256

    assert certificate.units is not None
    seed = certificate.units.order
    return sorted(set(units.tolist()), key=lambda one: sha256(f"{seed} {one}".encode()).digest())


def test_the_budget_is_the_largest_whose_stricter_thresholds_are_all_refuted() -> None:
    certificate = certified()
    scores, units = parted()
    for side, clause in enumerate((certificate.fpr, certificate.fnr)):
        own, of, order = scores[side], units[side], in_order(certificate, units[side])
        rising = np.sort(own)
        budget = -1
        for k in range(own.size):
            edge = rising[own.size - 1 - k] if side == 0 else rising[k]
            wrong = own > edge if side == 0 else own < edge
            shares = np.array([wrong[of == unit].mean() for unit in order])
            if not refutes(shares, 0.1, 0.05):
                break
            budget = k
        assert clause.errors == budget > 0
        assert clause.units == len(order)
        edge = np.sort(own)[own.size - 1 - budget] if side == 0 else np.sort(own)[budget]
        assert clause.threshold == (np.nextafter(edge, inf) if side == 0 else edge)


def test_one_point_a_unit_is_the_certificate_of_independent_points() -> None:
    plain = calibrate_labelled(SCORES, LABELS, BOTH)
    made = calibrate_labelled(SCORES, LABELS, BOTH, units=[f"machine {one}" for one in range(SCORES.size)])
    assert replace(made, assumptions=plain.assumptions, units=None).to_json() == plain.to_json()
    assert made.confidence == plain.confidence  # exact tails, multiplied


def test_the_order_of_rows_does_not_matter_and_verification_repeats_that_of_units() -> None:
    certificate = certified()
    scores, units = parted()
    assert certificate.verify(*scores, units=units)
    turned = tuple(one[::-1] for one in scores), tuple(one[::-1].tolist() for one in units)
    assert certificate.verify(*turned[0], units=turned[1])
    assert Certificate.from_json(certificate.to_json()) == certificate
    wrong = units[0], np.roll(units[1], 40)
    assert "anomalous." in str(certificate.verify(*scores, units=wrong)) or certificate.verify(
        *scores, units=wrong
    )
    with pytest.raises(InputError, match="made with units; pass units="):
        certificate.verify(*scores)
    with pytest.raises(InputError, match="made without units; remove units"):
        calibrate(*scores).verify(*scores, units=units)


def test_classes_of_the_same_units_add_their_deltas() -> None:
    assert certified().confidence == 0.9
    apart = calibrate_labelled(
        SCORES, LABELS, BOTH, units=[f"{u} {y}" for u, y in zip(UNITS, LABELS, strict=True)]
    )
    assert apart.confidence == 0.9025
    assert certified().confidences == {"FPR": 0.95, "FNR": 0.95}


@pytest.mark.parametrize("rate", ["fpr", "fnr"])
def test_a_held_class_bounds_the_shares_that_are_counted_in_the_other(rate: str) -> None:
    units = UNITS + 1000 * LABELS
    certificate = calibrate_labelled(SCORES, LABELS, BOTH, units=units, overlap=f"hold_{rate}")
    held, counted = (certificate.fpr, certificate.fnr)[:: 1 if rate == "fpr" else -1]
    assert held.certified == held.asked
    side = 1 if rate == "fpr" else 0
    own, of = SCORES[side == LABELS], units[side == LABELS]
    tau = certificate.rule.anomaly_from
    wrong = own < tau if side else own >= tau
    shares = np.array([wrong[of == unit].mean() for unit in in_order(certificate, of)])
    assert counted.ceiling == highest_mean(shares, 0.05)
    assert counted.errors == np.count_nonzero(wrong)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.confidence == 0.9025


def test_events_and_days_have_one_score_each() -> None:
    certificate = certified(per=[Day(2), Event(alarms=2, first=3)])
    (normal, _), (days, _) = parted()
    of_day = [np.sort(normal[days == day])[::-1] for day in range(120)]
    of_event = []
    for unit in range(120):
        rows = [s for s, y, u in zip(SCORES, LABELS, UNITS, strict=True) if y and u == unit][:3]
        of_event.append(sorted(rows)[-2] if len(rows) > 1 else -inf)
    plain = calibrate([one[2] for one in of_day], of_event, BOTH)
    assert plain.fpr.n == 120
    assert (certificate.clauses, certificate.rule) == (plain.clauses, plain.rule)
    assert certificate.units is not None
    assert certificate.units.order is None
    scores, units = parted()
    assert certificate.verify(*scores, units=units)
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_a_day_with_fewer_points_than_alarms_allowed_is_never_an_error() -> None:
    days = calibrate_labelled([5.0, 5.0, 1.0], [0, 0, 0], Guarantee(0.9, None), units=list("aab"), per=Day(1))
    assert days.fpr.n == 2
    assert days.fpr.errors == 0
    assert days.rule.anomaly_from == np.nextafter(5.0, inf)


def test_events_alone_leave_normal_points_in_units() -> None:
    certificate = certified(per=Event())
    assert certificate.fpr.units == 120
    assert certificate.fnr.units is None
    assert certificate.fnr.n == 120


def test_too_few_units_say_how_many_are_missing() -> None:
    few = UNITS < 10
    with pytest.warns(match=r"FPR \(40 labels of 10 units; 29 units needed, or a ceiling of 0.2589\)"):
        certificate = calibrate_labelled(SCORES[few], LABELS[few], BOTH, units=UNITS[few])
    assert certificate.fpr.missing == min_samples(0.1, 0.05) - 10 == 19
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"units": UNITS[1:]}, "scores and units must have the same length"),
        ({"units": [None, *UNITS[1:].tolist()]}, "units must be known, but 1 of 720 are missing, the first"),
        ({"units": UNITS, "by": UNITS}, "units cannot be combined with by or weights"),
        ({"units": UNITS, "kinds": UNITS}, "take no weights and no units"),
        (
            {"units": UNITS, "overlap": "raise"},
            'units need overlap="abstain", overlap="hold_fpr" or overlap="hold_fnr"',
        ),
        ({"units": UNITS, "overlap": "hold_fnr"}, "120 have points of both"),
        ({"units": UNITS, "per": "day"}, "per must be an Event, a Day, or one of each, got 'day'"),
        ({"units": UNITS, "per": [Day(), Day()]}, "per must be an Event, a Day, or one of each"),
        ({"per": Day()}, "per is for units; give units too"),
    ],
)
def test_what_cannot_be_promised_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        calibrate_labelled(SCORES, LABELS, BOTH, **more)


def test_shift_and_impossible_events_are_refused() -> None:
    with pytest.raises(InputError, match="a promise about units cannot tolerate shift or label noise"):
        calibrate_labelled(SCORES, LABELS, Guarantee(shift=TotalVariation(0.01)), units=UNITS)
    with pytest.raises(InputError, match="first must be at least alarms = 3, got 2"):
        Event(alarms=3, first=2)
    with pytest.raises(InputError, match="more_than must be a whole number"):
        Day(-1)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file["clauses"][0].update(units=1000),
        lambda file: file["clauses"][0].update(units=-1),
        lambda file: file["units"].update(order="x"),
        lambda file: file.pop("units"),
        lambda file: file["clauses"][0].pop("units"),
        lambda file: file["clauses"][0].update(threshold=100.0),
        lambda file: file.update(overlap={"name": "raise", "search": None, "position": 0.5}),
        lambda file: file.update(assumptions=[1, 2, 3]),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(change: Any) -> None:
    file = json.loads(certified().to_json())
    change(file)
    with pytest.raises(CertificateError):
        Certificate.from_json(sealed(file))


def test_a_strategy_object_is_as_good_as_its_word() -> None:
    assert certified(overlap=Abstain(always=True)).fpr.errors is not None


def test_held_out_units_are_measured_over_units_events_and_days() -> None:
    certificate = calibrate_labelled(SCORES, LABELS, BOTH, units=UNITS)
    scores, units = parted()
    normal, _ = certificate.evaluate(*scores, units=units)
    of_unit = np.array([(certificate.verdicts(scores[0][units[0] == u]) == 1).mean() for u in range(120)])
    assert normal.rate.value == pytest.approx(of_unit.mean())
    assert normal.rate.high == highest_mean(of_unit, 0.025)
    assert normal.rate.low < normal.rate.value < normal.rate.high
    assert not normal.exceeded
    shifted = certificate.evaluate(scores[0] + 3.0, scores[1], units=units)
    assert shifted[0].exceeded
    assert not shifted[1].exceeded
    by_day = calibrate_labelled(SCORES, LABELS, BOTH, units=UNITS, per=[Day(1), Event()])
    days, events = by_day.evaluate(*scores, units=units)
    assert (days.name, events.name) == ("days", "events")
    bad = [np.count_nonzero(by_day.verdicts(scores[0][units[0] == u]) == 1) > 1 for u in range(120)]
    missed = [(by_day.verdicts(scores[1][units[1] == u]) == 0).all() for u in range(120)]
    assert (days.rate.count, days.rate.n) == (sum(bad), 120)
    assert (events.rate.count, events.rate.n) == (sum(missed), 120)


@pytest.mark.parametrize(
    "call",
    [
        lambda made: made.precision(0.1),
        lambda made: made.workload(0.1),
        lambda made: made.radius(0.5),
        lambda made: recalibrate(made, SCORES, LABELS),
        lambda made: made.evaluate(*parted()[0]),
    ],
)
def test_what_needs_independent_points_is_refused(call: Any) -> None:
    with pytest.raises(InputError, match="units"):
        call(certified())


def test_an_estimator_certifies_units_and_keeps_them_together() -> None:
    wrap = PACWrap("precomputed", max_fpr=0.1, max_fnr=0.1).fit(SCORES, LABELS, units=UNITS)
    assert wrap.certificate_.fpr.units == 120
    scores, units = parted()
    assert wrap.certificate_.verify(*scores, units=units)
    with pytest.raises(InputError, match="units cannot be combined with groups"):
        PACWrap("precomputed").fit(SCORES, LABELS, units=UNITS, groups=UNITS)


def test_the_page_says_nothing_about_points_that_is_true_of_independent_ones_alone(tmp_path: Path) -> None:
    certificate = certified()
    certificate.report(tmp_path / "page.html", *parted()[0])
    certificate.report(tmp_path / "page.md")
    by_day = calibrate_labelled(SCORES, LABELS, BOTH, units=UNITS, per=[Day(1), Event()])
    by_day.report(tmp_path / "days.md")
    for name in ("page.html", "page.md", "days.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "Units that depend on each other" in text
        assert "measure the rates on labelled units" in text
        for wrong in (
            "Precision and workload",
            "Labels needed",
            "Calculation",
            "Dependent points",
            "Tolerance of",
        ):
            assert wrong not in text, (name, wrong)
    assert "at most 10 % of days have more than 1 false alarm" in (tmp_path / "days.md").read_text("utf-8")


def test_units_with_one_point_each_assume_so_of_future_units() -> None:
    units, labels = np.arange(200), np.repeat([0, 1], 100)
    scores = RNG.normal(4 * labels)
    made = calibrate_labelled(scores, labels, BOTH, units=units)
    assert made.assumptions == of_units(False, True)
    # in one class only; and by their definition events have one score each
    joined = np.where(labels == 0, units // 2, units)
    assert calibrate_labelled(scores, labels, BOTH, units=joined).assumptions == of_units(False, True)
    alone = calibrate_labelled(scores, labels, Guarantee(0.1, None), units=joined)
    assert alone.assumptions == of_units(False, False)
    days = calibrate_labelled(scores, labels, BOTH, units=units, per=[Day(), Event()])
    assert days.assumptions == of_units(False, False)
    assert "if every calibration unit had one point of a class" in str(made.assumptions[1])
    text = made.to_json()
    assert Certificate.from_json(text) == made
    with pytest.raises(CertificateError, match="assumptions"):
        Certificate.from_json(sealed(json.loads(text) | {"assumptions": [19, 3]}))


def test_the_binomial_fails_where_the_number_of_points_depends_on_errors() -> None:
    """Why the assumption is needed, exactly: the chance that it rejects a true rate above the ceiling."""
    m, ceiling, several, rate = 93, 0.05, 0.4, 0.0501
    assert error_budget(m, ceiling, 0.05) == 1

    def certified(errors: int) -> float:
        """Return how often (152) certifies with this many erring units, at places in a random order."""
        found, total = 0, 0
        for some in batched(combinations(range(m), errors), 20_000):
            shares = np.zeros((len(some), m))
            np.put_along_axis(shares, np.array(some, dtype=int), 1.0, axis=1)
            found, total = found + int(np.count_nonzero(refutes(shares, ceiling, 0.05))), total + len(some)
        return found / total

    chances = [comb(m, k) * rate**k * (1 - rate) ** (m - k) for k in range(4)]
    single = [(1 - several) ** k for k in range(4)]
    by_binomial = [chances[k] * single[k] for k in (0, 1)]
    # four errors and more add to it
    assert sum(by_binomial) + sum(chances[k] * (1 - single[k]) * certified(k) for k in (1, 2, 3)) > 0.053


def batched(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while some := list(islice(rows, size)):
        yield some


def test_events_too_short_to_be_noticed_are_missed_at_every_threshold() -> None:
    labels = np.ones(120, dtype=int)
    asked = Guarantee(max_fpr=None, max_fnr=0.1)
    with pytest.raises(InputError, match="120 of 120 events have fewer points than it takes alarms"):
        calibrate_labelled(np.arange(120.0), labels, asked, units=np.arange(120), per=Event(alarms=2))
    # two short ones are two of the misses that the ceiling allows
    units = np.append(np.repeat(np.arange(118), 2), [118, 119])
    made = calibrate_labelled(np.full(units.size, 3.0), np.ones_like(units), asked, units=units, per=Event(2))
    assert made.fnr.certified is not None
    assert made.rule.normal_below == 3.0
    fresh = np.arange(100)
    (_, missed) = made.evaluate([], np.full(100, 9.0), units=([], fresh))
    assert missed.rate.count == 100
    assert missed.exceeded
    monitor = Monitor(made)
    monitor.update(made.verdicts(np.full(100, 9.0)), np.ones(100), units=fresh)
    assert monitor.watches[0].count == 100


def test_names_of_units_are_read_alike_everywhere() -> None:
    labels = np.tile([0, 0, 1], 240)
    scores = RNG.normal(4 * labels)
    days = np.repeat(np.datetime64("2026-01-01", "ns") + np.arange(120) * np.timedelta64(1, "D"), 6)
    mixed = [3.0 if unit == 0 else f"m{unit}" for unit in np.repeat(np.arange(120), 6).tolist()]
    strange = [f"a\\ud800{unit}" for unit in np.repeat(np.arange(120), 6).tolist()]
    for units in (days, mixed, strange):
        made = calibrate_labelled(scores, labels, BOTH, units=units)
        pair: Any = tuple(
            [one for one, mark in zip(units, labels, strict=True) if mark == side] for side in (0, 1)
        )
        assert made.verify(scores[labels == 0], scores[labels == 1], units=pair)
        assert len(made.evaluate(scores[labels == 0], scores[labels == 1], units=pair)) == 2
    wrong: Any
    for wrong in (5, days, (days, days, days)):
        for check in (made.verify, made.evaluate):
            with pytest.raises(InputError, match="units must be a pair"):
                check(scores[labels == 0], scores[labels == 1], units=wrong)


def test_a_ceiling_above_one_half_is_refused_for_shares_alone() -> None:
    high = Guarantee(0.6, 0.6)
    with pytest.raises(
        InputError, match=r"a ceiling for points in units must be at most 0\.5; ask for a lower"
    ):
        calibrate_labelled(SCORES, LABELS, high, units=UNITS)
    assert (
        calibrate_labelled(SCORES, LABELS, high, units=UNITS, per=[Day(), Event()]).fpr.certified is not None
    )
