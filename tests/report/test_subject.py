"""A report is about the scores its certificate was made from."""

from dataclasses import replace

from support.reports import report
from support.strategies import refusal


def test_scores_of_another_certificate_are_refused() -> None:
    good = report("vacuous")
    text = refusal(lambda: replace(good, anomalous=good.anomalous + 1e-9))
    assert "anomalous scores are not those the certificate was made from" in text
    refusal(lambda: replace(good, normal=good.normal[:-1]))
    assert replace(good, normal=good.normal[::-1]).certificate is good.certificate
