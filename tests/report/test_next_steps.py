"""Each situation gets its own advice, and no other."""

import pytest

from pac_wrap.report.content import content_of
from support.reports import report


def said(name: str) -> str:
    content = content_of(report(name))
    return " ".join((*content.notes, *content.warnings, *content.explanations, *content.next_steps))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "separated",
            "any single threshold among the undecided scores (from 1.52353 to below 3.26687) keeps",
        ),
        ("overlapping", "Decide who looks at the undecided points"),
        ("overlapping", "suffice for FPR ceilings down to 0.9937 %, at the price of more undecided points"),
        ("relaxed", "number 3 was the first that one threshold can keep"),
        (
            "relaxed",
            "false alarms went from 5 % to 25 %; the ceiling of missed anomalies went from 5 % to 25 %",
        ),
        ("relaxed", "delta is shared equally among these promises"),
        ("less_confident", "the confidence on false alarms went from 95 % to 90.5 %"),
        ("less_confident", "promises with rising deltas of both sides"),
        ("uncorrected", "Delta was not corrected for the choice"),
        ("hold_fnr", "set by the FNR ceiling alone. It misjudges 93 of the 300 points of the other class"),
        ("hold_fnr", "suffice for FNR ceilings down to 0.9937 %, at the price of more false alarms"),
        ("hold_fpr", "set by the FPR ceiling alone"),
        ("fpr", "set max_fnr: the anomalous labels at hand (300) suffice for ceilings down to 0.9937 %"),
        ("fpr", "Only one side is promised, so its threshold decides alone"),
        ("vacuous", "Label more normal points (at hand 10, needed at least 59, missing 49)"),
        ("vacuous", "the lowest ceiling of the FNR is 25.89 %"),
        ("few", "Label more anomalous points (at hand 12, needed at least 59, missing 47)"),
        ("nothing", "Allow abstention"),
        ("nothing_overlapping", "none could be kept"),
        ("upside_down", "negate the scores"),
        ("shifted", "On held-out points the FNR was 82.2 %, significantly above its ceiling of 5 %"),
        ("shifted", "Find out why held-out points exceed the FNR ceiling"),
    ],
)
def test_each_situation_gets_its_own_advice(name: str, sentence: str) -> None:
    assert sentence in said(name)
    others = {"upside_down": "separated", "shifted": "overlapping"}.get(name, "careless")
    assert sentence not in said(others)


def test_a_confidence_that_is_not_proved_is_not_explained_as_if_it_were() -> None:
    assert "would be true" in said("relaxed")
    assert "would be true" not in said("uncorrected")
    assert content_of(report("separated")).warnings == ()
