"""What a report says: its status, its plan, and held-out rates against their ceilings."""

import json
from dataclasses import replace

import pytest

from pac_wrap import Guarantee, calibrate
from pac_wrap.report.pages.content import content_of, to_json
from pac_wrap.report.subject import Report
from pac_wrap.report.words.sentences import Status
from pac_wrap.tails.bounds import achievable_rate, min_samples
from support.reports import report
from support.strategies import calibrate_quietly


@pytest.mark.parametrize(
    ("name", "sign", "words"),
    [
        ("separated", "certified", "certified"),
        ("raised", "raised", "certified with raised ceilings"),
        ("hold_fnr", "raised", "certified with raised ceilings"),
        ("less_confident", "raised", "certified with less confidence"),
        ("uncorrected", "broken", "confidence not guaranteed"),
        ("vacuous", "none", "too few labels"),
        ("vacuous_fpr", "partly", "partly certified: too few normal labels"),
        ("vacuous_fnr", "partly", "partly certified: too few anomalous labels"),
        ("fpr", "certified", "certified"),
        ("nothing_overlapping", "none", "nothing certified"),
        ("shifted", "broken", "certified, but held-out points contradict it"),
    ],
)
def test_the_status_says_whether_something_is_certified(name: str, sign: str, words: str) -> None:
    found = content_of(report(name)).status
    assert (found.sign, found.words) == (sign, words)


def test_a_held_ceiling_whose_other_rate_is_unknown_is_a_part() -> None:
    held = calibrate_quietly([], range(200), overlap="hold_fnr")
    assert content_of(Report(held)).status == Status("partly", "partly certified")


def test_what_a_ceiling_of_the_fpr_alone_means() -> None:
    alone = calibrate(range(2000), [], Guarantee(max_fpr=0.05, max_fnr=None))
    lead = content_of(Report(alone)).practice.lead
    assert lead.startswith(
        "Of 1,000 future normal points, at most 50 are false alarms: on average, with conf"
    )
    lead = content_of(Report(alone, prevalence=0.02)).practice.lead
    assert lead.startswith("Of 1,000 future points, if 2 % are anomalous, at most 49 are false alarms: on")
    nothing = content_of(Report(calibrate_quietly(range(20), []))).practice
    assert (nothing.lead, nothing.rows) == ("Other numbers need a prevalence; state yours.", ())


def test_title_and_subtitle_say_what_is_known() -> None:
    plain = calibrate(range(100), range(200, 300))
    assert content_of(Report(plain)).title == "Error rates of an anomaly detector"
    known = plain.with_provenance(
        score="forest", tables=("a.csv", "b.csv", "c.csv"), date="2027-01-31T12:00:00Z"
    )
    content = content_of(Report(known))
    assert (content.title, content.subtitle) == (
        "Error rates of forest",
        "a.csv, b.csv, 1 more, 31 January 2027",
    )
    assert content_of(Report(known, detector="LOF")).title == "Error rates of LOF"


def test_the_plan_is_that_of_the_binomial_functions() -> None:
    rows = content_of(report("separated")).plan
    assert [row.ceiling for row in rows[:4]] == [0.05, 0.025, 0.01, 0.005]
    for row in rows:
        assert row.none_tolerated == min_samples(row.ceiling, row.delta)
        assert row.some_tolerated == min_samples(row.ceiling, row.delta, 10)
        assert ("enough" in row.state) == (achievable_rate(row.at_hand, row.delta) <= row.ceiling)
    assert {row.side for row in content_of(report("fpr")).plan} == {"FPR"}
    assert "needs more" in content_of(report("relaxed")).plan_caption
    assert "needs more" not in content_of(report("hold_fnr")).plan_caption


@pytest.mark.parametrize(
    ("name", "findings"),
    [
        ("relaxed", ["within the ceiling"] * 2),
        # .03 would be enough for one ceiling at 5 %, and is too much for one of two
        ("overlapping", ["above the ceiling, not significantly", "within the ceiling"]),
        ("shifted", ["within the ceiling", "significantly above the ceiling"]),
        ("untested", ["within the ceiling", "not measured"]),
    ],
)
def test_held_out_rates_are_set_against_their_ceilings(name: str, findings: list[str]) -> None:
    rows = content_of(report(name)).held_out
    assert [row.finding for row in rows] == [*findings, "nothing promised", "nothing promised"]
    assert [rate["n"] for rate in json.loads(to_json(report(name)))["held_out"].values() if "n" in rate]


def test_held_out_rates_of_an_unpromised_side() -> None:
    one_sided = replace(report("fpr"), metrics=report("shifted").metrics)
    assert [row.finding for row in content_of(one_sided).held_out][:2] == [
        "within the ceiling",
        "nothing promised",
    ]
