"""The promise in one sentence that says no more than what holds."""

import re
from decimal import Decimal

import pytest

from pac_wrap.report.content import content_of
from support.reports import report

BOTH = (
    "At most {} of future normal points will be called anomalies, and at most {} of future anomalies will be"
    " called normal: both together with confidence {}"
)
PROMISES = {
    "separated": BOTH.format("5 %", "5 %", "90 %."),
    "overlapping": BOTH.format("5 %", "5 %", "90 %."),
    "relaxed": BOTH.format("25 %", "25 %", "90 %."),
    "uncorrected": BOTH.format("25 %", "25 %", "90 %; this confidence is not guaranteed."),
    "less_confident": BOTH.format("5 %", "5 %", "81 %."),
    "careless": BOTH.format("5 %", "5 %", "").removesuffix("both together with confidence ")
    + "false alarms with confidence 40 %, missed anomalies with confidence 40 %.",
    "fpr": "At most 10 % of future normal points will be called anomalies, with confidence 95 %;"
    " nothing is promised about missed anomalies.",
    "fnr": "At most 10 % of future anomalies will be called normal, with confidence 95 %;"
    " nothing is promised about false alarms.",
    "vacuous": "Every point is left undecided, because too few points are labelled: 10 normal (at least 59"
    " are needed) and 10 anomalous (at least 59 are needed).",
    "vacuous_fpr": "No anomaly is ever declared, because too few points are labelled: 10 normal (at least 59"
    " are needed); at most 5 % of future anomalies will be called normal, with confidence 95 %.",
    "vacuous_fnr": "No point is ever called normal, because too few points are labelled: 10 anomalous (at"
    " least 59 are needed); at most 5 % of future normal points will be called anomalies, with confidence 95"
    " %.",
    "vacuous_one_sided": "Every point is called normal, because too few points are labelled: 10 normal (at"
    " least 29 are needed); nothing is promised about missed anomalies.",
    "vacuous_hold_fnr": "Every point is called an anomaly, because too few points are labelled: 10 anomalous"
    " (at least 59 are needed); nothing is promised about false alarms.",
    "nothing": "Nothing is promised, since no single threshold can be certified at any level tried: every"
    " point is left undecided.",
}


@pytest.mark.parametrize("name", PROMISES)
def test_the_promise_is_one_sentence_that_says_no_more_than_what_holds(name: str) -> None:
    assert content_of(report(name)).promise == PROMISES[name]


def test_a_held_side_states_the_upper_bound_rounded_up() -> None:
    certificate = report("hold_fnr").certificate
    assert certificate.certified is not None
    assert certificate.certified.max_fpr is not None
    stated = Decimal(re.findall(r"At most ([\d.]+) %", content_of(report("hold_fnr")).promise)[0]) / 100
    assert 0 <= stated - Decimal(certificate.certified.max_fpr) < Decimal("0.0001")
