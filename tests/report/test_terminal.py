import json

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate, evaluate
from pac_wrap.method.comparison import compare_scores
from pac_wrap.report.account import account_of
from pac_wrap.report.render import short, terminal
from pac_wrap.report.results import account_of_comparison, account_of_evaluation
from support.reports import report
from support.shell import CERTIFICATE, succeeded, text_of


def test_what_is_exceeded_is_said_whole_in_80_columns() -> None:
    metrics = evaluate(np.ones(2_000_000, dtype=int), np.repeat([0, 1], 1_000_000))
    shown = text_of(
        terminal(account_of_evaluation(calibrate(np.arange(100.0), np.arange(100.0) + 100), metrics))
    )
    assert "…" not in shown
    assert "1,000,000 of 1,000,000  exceeded" in shown


def test_a_comparison_explains_its_stars_in_80_columns() -> None:
    labels = np.repeat([False, True], 100)
    columns = {name: (np.arange(200.0), labels) for name in ("forest", "boosting")}
    shown = text_of(terminal(account_of_comparison(compare_scores(columns, Guarantee(0.1)), Guarantee(0.1))))
    first, second, *_, stars, few = shown.splitlines()
    assert first == "asked: FPR <= 0.1 (confidence 0.95), FNR <= 0.05 (confidence 0.95)"
    assert second == "2 scores share each delta"
    assert stars == "* best; all bounds hold together, at every threshold, with 90 % confidence"
    assert few.startswith("too few labels for FNR <= 0.05 (100 anomalous): the lowest bound is 0.0")
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("width", [40, 60])
def test_a_comparison_is_folded_and_never_cut_in_a_narrow_terminal(width: int) -> None:
    labels = np.repeat([False, True], 300)
    columns = {name: (np.arange(600.0) % period, labels) for name, period in (("forest", 450), ("lof", 350))}
    shown = text_of(terminal(account_of_comparison(compare_scores(columns, Guarantee()), Guarantee())), width)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "lof " in shown


def test_the_confidence_of_a_comparison_counts_the_bounds_of_both_rates() -> None:
    labels = np.repeat([False, True], 300)
    contenders = compare_scores({"forest": (np.arange(600.0), labels)}, Guarantee(0.05, None))
    asked = Guarantee(contenders[0].curve.normal.bounds[0], None)
    *_, stars = text_of(terminal(account_of_comparison(contenders, asked))).splitlines()
    # a ceiling that is just kept needs no more labels
    assert stars == "* best; all bounds hold together, at every threshold, with 90 % confidence"


PLAIN = (
    "separated",
    "overlapping",
    "vacuous",
    "vacuous_fpr",
    "fpr",
    "hold_fnr",
    "raised",
    "relaxed",
    "nothing",
)


@pytest.mark.parametrize("name", PLAIN)
def test_a_certificate_begins_with_its_promise_and_fits_on_a_small_screen(name: str) -> None:
    certificate = report(name).certificate
    shown = str(certificate)
    promise, _, facts = shown.partition("\n\n")
    assert " ".join(promise.split()) == account_of(certificate).headline
    assert len(shown.splitlines()) <= 15
    assert max(map(len, shown.splitlines())) <= 80
    assert shown == short(certificate, 80)
    assert facts.startswith("asked ")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_break_between_words_alone_and_go_on_under_their_text(width: int) -> None:
    certificate = report("relaxed").certificate
    shown = short(certificate, width)
    assert max(map(len, shown.splitlines())) <= width
    # whatever the width, the words are the same, and no number is parted from its sign
    assert shown.split() == short(certificate, 10_000).split()
    assert not any(line.endswith((" 5", " 25", " 90")) for line in shown.splitlines())
    _, *facts = shown.partition("\n\n")[2].splitlines()
    assert all(line[10] == " " and line[11] != " " for line in facts)


def test_thresholds_are_rounded_for_people_and_exact_for_programs() -> None:
    certificate = report("overlapping").certificate
    low, high = certificate.rule.normal_below, certificate.rule.anomaly_from
    assert f"normal below {low:.4g}, anomaly from {high:.4g} on, else undecided (rounded)" in str(certificate)
    told = json.loads(certificate.to_json())["rule"]
    assert (told["normal_below"], told["anomaly_from"]) == (low, high)


def test_the_command_line_wraps_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Certificate.load(CERTIFICATE)
    assert succeeded("show", CERTIFICATE) == f"{short(certificate)}\n"
    monkeypatch.setenv("COLUMNS", "50")
    assert short(certificate, None) == short(certificate, 50)
