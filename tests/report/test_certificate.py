"""The account of a certificate: its status, its plan, held-out rates, and each point in one verdict."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Guarantee, calibrate
from pac_wrap.method.rule import Thresholds, Verdict
from pac_wrap.report.account import Status, account_of
from pac_wrap.report.sentences import Report, ranges
from pac_wrap.tails.bounds import min_samples, upper_bound
from support.reports import NAMES, report, table_of, to_json
from support.strategies import calibrate_quietly, refusal, score


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
    found = account_of(report(name)).status
    assert (found.word, found.words) == (sign, words)


def test_a_held_ceiling_whose_other_rate_is_unknown_is_a_part() -> None:
    held = calibrate_quietly([], range(200), overlap="hold_fnr")
    assert account_of(Report(held)).status == Status("partly", "partly certified", 1)


def test_what_a_ceiling_of_the_fpr_alone_means() -> None:
    alone = calibrate(range(2000), [], Guarantee(max_fpr=0.05, max_fnr=None))
    lead = account_of(Report(alone))["practice"]["said"]
    assert lead.startswith("Of 1,000 future normal points, at most 50 are false alarms on average, with 95 %")
    lead = account_of(Report(alone, prevalence=0.02))["practice"]["said"]
    assert lead.startswith("Of 1,000 future points, if 2 % are anomalous, at most 49 are false alarms on")
    nothing = account_of(Report(calibrate_quietly(range(20), [])))["practice"]
    assert nothing["said"] == "State your prevalence to see other numbers."
    assert "alarms" not in nothing


def test_title_and_subtitle_say_what_is_known() -> None:
    plain = calibrate(range(100), range(200, 300))
    assert account_of(plain).title == "Error rates of an anomaly detector"
    known = plain.with_provenance(
        score="forest", tables=("a.csv", "b.csv", "c.csv"), date="2027-01-31T12:00:00Z"
    )
    account = account_of(known)
    assert (account.title, account.subtitle) == (
        "Error rates of forest",
        "a.csv, b.csv, 1 more, 31 January 2027",
    )
    assert account_of(known, detector="LOF").title == "Error rates of LOF"


def test_the_plan_is_that_of_the_binomial_functions() -> None:
    table = table_of(account_of(report("separated")), "plan")
    assert [row["ceiling"] for row in table.value[:4]] == [0.05, 0.025, 0.01, 0.005]
    for row, texts in zip(table.value, table.rows, strict=True):
        ceiling, delta = row["ceiling"], row["delta"]
        assert row["none_tolerated"] == min_samples(ceiling, delta)
        assert row["some_tolerated"] == min_samples(ceiling, delta, 10)
        assert ("enough" in texts[3]) == (upper_bound(0, row["at_hand"], delta) <= ceiling)
    assert {row["side"] for row in account_of(report("fpr"))["plan"]} == {"FPR"}
    assert "more labels are needed" in table_of(account_of(report("relaxed")), "plan").caption
    assert "more labels are needed" not in table_of(account_of(report("hold_fnr")), "plan").caption


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
    rows = table_of(account_of(report(name)), "held_out").rows
    assert [row[-1] for row in rows] == [*findings, "nothing promised", "nothing promised"]
    assert [rate["n"] for rate in json.loads(to_json(report(name)))["held_out"].values() if "n" in rate]


def test_held_out_rates_of_an_unpromised_side() -> None:
    one_sided = replace(report("fpr"), metrics=report("shifted").metrics)
    assert [row[-1] for row in table_of(account_of(one_sided), "held_out").rows][:2] == [
        "within the ceiling",
        "nothing promised",
    ]


def test_scores_of_another_certificate_are_refused() -> None:
    good = report("vacuous")
    assert good.normal is not None
    assert good.anomalous is not None
    normal, anomalous = good.normal, good.anomalous
    text = refusal(lambda: replace(good, anomalous=anomalous + 1e-9))
    assert "anomalous scores are not those the certificate was made from" in text
    refusal(lambda: replace(good, normal=normal[:-1]))
    assert "of both classes, or of neither" in refusal(lambda: Report(good.certificate, normal))
    assert replace(good, normal=normal[::-1]).certificate is good.certificate


thresholds = st.none() | score
rules = st.builds(Thresholds, alarm_from=thresholds, clear_below=thresholds).filter(
    lambda rule: rule.alarm_from is not None or rule.clear_below is not None
)


@given(rules, score)
def test_the_ranges_of_the_table_say_what_the_rule_does(rule: Thresholds, value: float) -> None:
    def within(low: float | None, high: float | None) -> bool:
        return (low is None or value >= low) and (high is None or value < high)

    shown = [verdict for verdict, ends in ranges(rule.rule).items() if within(*ends)]
    assert shown == [rule.rule.verdicts([value])[0]]


@pytest.mark.parametrize("name", NAMES)
def test_every_calibration_point_is_counted_in_one_row(name: str) -> None:
    given_report = report(name)
    rows = account_of(given_report)["verdicts"]
    for scores, counted in (
        (given_report.normal, [row["normal"]["count"] for row in rows]),
        (given_report.anomalous, [row["anomalous"]["count"] for row in rows]),
    ):
        assert scores is not None
        verdicts = given_report.certificate.verdicts(scores)
        assert counted == [np.count_nonzero(verdicts == row["code"]) for row in rows]
        assert sum(count or 0 for count in counted) == scores.size
    assert all((row["scores"] == "no score") == (not row["declared"]) for row in rows)


def test_verdict_meanings_follow_the_promise() -> None:
    meanings = {row["code"]: row["meaning"] for row in account_of(report("fpr"))["verdicts"]}
    assert meanings == {
        Verdict.NORMAL: "No alarm. The number of anomalies that get this verdict is not promised.",
        Verdict.ANOMALY: "Alarm. In the long run, at most 10 % of normal points get this verdict.",
    }
