"""A report is about its certificate's own scores, and its verdicts are the rule's: each point counts once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.report.pages.content import content_of
from pac_wrap.report.subject import Report, ranges
from support.reports import NAMES, report
from support.strategies import refusal, score


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
    rows = content_of(given_report).verdicts
    for scores, counted in (
        (given_report.normal, [row.normal for row in rows]),
        (given_report.anomalous, [row.anomalous for row in rows]),
    ):
        assert scores is not None
        verdicts = given_report.certificate.verdicts(scores)
        assert counted == [np.count_nonzero(verdicts == row.verdict) for row in rows]
        assert sum(count or 0 for count in counted) == scores.size
    assert [row.scores for row in rows if row.range is None] == ["no score"] * sum(
        row.range is None for row in rows
    )


def test_verdict_meanings_follow_the_promise() -> None:
    meanings = {row.verdict: row.meaning for row in content_of(report("fpr")).verdicts}
    assert meanings == {
        Verdict.NORMAL: "No alarm. How many anomalies get this verdict is not promised.",
        Verdict.ANOMALY: "Alarm. The rate of future normal points that get this verdict is at most 10 %.",
    }
