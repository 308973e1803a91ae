"""Certificates of traffic in every format: each promise in its words, each number the one in the file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, InputError, VacuousWarning, calibrate_traffic
from pac_wrap.method.robust.shift_and_noise import Reviews
from pac_wrap.method.traffic.calibrate import as_reviews
from pac_wrap.method.traffic.review import ReviewQueue
from pac_wrap.report.account import Account, account_of
from pac_wrap.report.pictures import ByReview, alarms_picture
from pac_wrap.report.render import as_json, html, markdown, plain, short
from support.reports import FOREIGN, HOSTILE

RNG: Final = np.random.default_rng(0)
ANOMALY: Final = RNG.random(20_000) < 0.01
SCORES: Final = RNG.normal(3.0 * ANOMALY)
REVIEWS: Final = np.where(SCORES > 2.0, ANOMALY, np.nan)  # more than enough
FEW: Final = np.where(SCORES > 3.9, ANOMALY, np.nan)
SOME: Final = np.where(RNG.random(20_000) < 0.01, np.nan, SCORES)
COINS: Final = np.where(RNG.random(20_000) < 0.5, REVIEWS, np.nan)
OTHERS: Final = RNG.normal(3.0, size=500)
PER: Final = "20 per 50,000"
GIVEN: Final[dict[str, tuple[Any, Any, Any]]] = {}  # what each certificate was made from


def made(found: Any = REVIEWS, scores: Any = SCORES, anomalous: Any = None, **asked: Any) -> Certificate:
    independent = asked.pop("independent", False)
    certificate = calibrate_traffic(
        scores, found, Guarantee(**asked), anomalous=anomalous, independent=independent
    )
    GIVEN[certificate.checksum] = scores, anomalous, found
    return certificate


CASES: Final[dict[str, Callable[[], Certificate]]] = {
    "alarms": lambda: made(None, max_alarms="100 per 50,000"),
    "a share of alarms, some without scores": lambda: made(None, SOME, max_alarms=0.002),
    "false alarms": lambda: made(max_false_alarms=PER),
    "a share of false alarms": lambda: made(max_false_alarms=0.001),
    "few reviews": lambda: made(FEW, max_false_alarms=0.001),
    "no reviews": lambda: made(None, max_false_alarms=PER),
    "some without scores": lambda: made(
        np.where(np.isnan(SOME), np.nan, REVIEWS), SOME, max_false_alarms=PER
    ),
    "fpr": lambda: made(max_fpr=0.001, reviews=Reviews(max_anomalies=0.02)),
    "precision": lambda: made(min_precision=0.7),
    "no precision": lambda: made(None, min_precision=0.7),
    "all": lambda: made(
        max_alarms="500 per 50,000",
        max_false_alarms="50 per 50,000",
        max_fpr=0.001,
        min_precision=0.6,
        reviews=Reviews(max_anomalies=0.02),
    ),
    "fnr": lambda: made(anomalous=OTHERS, max_false_alarms=PER, max_fnr=0.1),
    "an independent fnr": lambda: made(
        anomalous=OTHERS, independent=True, max_false_alarms="200 per 50,000", max_fnr=0.5
    ),
    "too few for the fnr": lambda: made(anomalous=OTHERS[:10], max_false_alarms=PER, max_fnr=0.1),
    "too few points": lambda: made(REVIEWS[:100], SCORES[:100], max_false_alarms=PER),
    "too few for anything": lambda: made(
        None, SCORES[:100], max_alarms="500 per 50,000", max_false_alarms=PER, min_precision=0.6
    ),
    "coins": lambda: made(COINS, max_false_alarms="50 per 50,000", reviews=Reviews(rate=0.5)),
    "mistaken reviewers": lambda: made(max_false_alarms=PER, reviews=Reviews(mistaken=0.1)),
    "precision and mistaken reviewers": lambda: made(min_precision=0.6, reviews=Reviews(mistaken=0.1)),
    "one score": lambda: made(None, np.zeros(5000), max_false_alarms=0.01),
    "all anomalous": lambda: made(np.r_[np.ones(4999), np.nan], np.arange(5000), max_false_alarms=0.01),
    "infinite scores": lambda: made(
        None, np.r_[np.full(300, np.inf), np.arange(5000)], max_false_alarms=0.01
    ),
}
LACKING: Final = {name for name in CASES if name.startswith(("no precision", "too few"))}


@pytest.fixture(params=CASES)
def certificate(request: pytest.FixtureRequest) -> Certificate:
    if request.param not in LACKING:
        return CASES[request.param]()
    with pytest.warns(VacuousWarning, match="Nothing is promised"):
        return CASES[request.param]()


def test_every_certificate_is_read_again_and_counts_its_alarms(certificate: Certificate) -> None:
    assert Certificate.from_json(certificate.to_json()) == certificate
    seen = certificate.traffic
    assert seen is not None
    for one in certificate.clauses:
        if one.of.label == "alarms" and one.kept:
            assert one.n == seen.alarms
            assert one.errors is not None
            assert seen.alarms - seen.right <= one.errors


def test_without_a_threshold_no_point_raises_an_alarm() -> None:
    certificate = CASES["infinite scores"]()
    assert certificate.traffic is not None
    assert certificate.traffic.alarms == 0
    assert certificate.verdicts([np.inf]).tolist() == [0]


def test_coins_that_drew_nobody_yet_prove_nothing() -> None:
    asked = {"max_false_alarms": "50 per 50,000", "reviews": Reviews(rate=0.5)}
    nobody = made(None, **asked)
    assert nobody.rule.anomaly_from == np.inf
    # of equal scores, one that was reviewed says nothing about the others
    ties = np.repeat(np.arange(2000.0), 10)
    one = np.where(np.arange(20_000) == 19_990, 1.0, np.nan)
    assert made(one, ties, **asked).rule.anomaly_from > ties.max()


def account(certificate: Certificate, **more: Any) -> Account:
    """Return the account of a certificate that `made` gave, with its scores and reviews."""
    scores, anomalous, found = GIVEN[certificate.checksum]
    return account_of(certificate, scores, anomalous, reviews=found, **more)


def numbers(text: str) -> list[float]:
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*\.?\d*", text)]


def test_the_account_says_it_in_the_unit_of_the_promise() -> None:
    told = account(made(FEW, max_false_alarms="50 per 50,000"))
    assert told.headline == (
        "In the long run, at most 50 of every 50,000 points raise a false alarm, with 95 % confidence."
    )
    texts = markdown(told).splitlines()
    assert (
        "43 of these 20,000 points raise an alarm, about 110 of every 50,000; 31 found right, 3 found wrong,"
        " 9 not reviewed." in texts
    )
    for row in (
        "| All alarms | 43 | about 110 | nothing |",
        "| Right | 31 | about 78 | nothing |",
        "| Wrong | 3 | about 7.5 | at most 50 |",
        "| Not reviewed | 9 | about 22 | nothing |",
        "| none | 3.79065 | 43 | about 110 |",
        "| 50, all right | 3.22496 | 93 | about 230 |",
        "| 50, 91.2 % of them right, as until now | 3.2504 | 89 | about 220 |",
        "| At most 50 of every 50,000 points raise a false alarm. | 95 % | 20,000 | 12 | 12 | 0 | 3.79065 |",
    ):
        assert row in texts


def test_the_next_points_are_told_where_a_number_follows() -> None:
    certificate = made(FEW, max_false_alarms="50 per 50,000")
    (said,) = account(certificate)["among_next"]
    assert said == f"A{str(certificate.among_next(50_000)[0])[1:]}."
    assert said.startswith("At most 52 of the next 50,000 points of traffic raise a false alarm")
    assert "among_next" not in dict(account(CASES["coins"]()).values())


def test_what_is_not_promised_depends_on_the_promises() -> None:
    missed = "The anomalies that raise no alarm."
    assert missed in account(made(max_false_alarms=PER))["not_promised"]
    assert missed not in account(CASES["fnr"]())["not_promised"]
    with pytest.warns(VacuousWarning):
        assert missed in account(CASES["too few for the fnr"]())["not_promised"]


def test_programs_read_the_numbers_of_the_certificate(certificate: Certificate) -> None:
    told, seen = json.loads(as_json(account(certificate))), certificate.traffic
    assert seen is not None
    assert told["certificate"] == json.loads(certificate.to_json())
    assert {
        name: told["practice"][name] for name in ("points", "alarms", "right", "wrong", "unreviewed")
    } == {
        "points": seen.points,
        "alarms": seen.alarms,
        "right": seen.right,
        "wrong": seen.wrong,
        "unreviewed": seen.unreviewed,
    }
    asked = [one for one in certificate.clauses if one.asked is not None]
    for one, record in zip(asked, told["promises"], strict=True):
        assert one.asked is not None
        assert (record["n"], record["allowed"]) == (one.n, one.errors)
        assert (record["ceiling"], record["delta"]) == (one.asked.ceiling, one.asked.delta)
        assert record["threshold"] == plain(one.threshold)
        # a certificate never exceeds its budgets
        assert record["left"] is None or (record["left"] >= 0 and one.kept)
    assert told["rule"]["anomaly_from"] == plain(certificate.rule.anomaly_from)


@pytest.mark.parametrize("rate", [0.0012345678, 0.00123449, 0.0199999, 1 / 300])
def test_ceilings_are_rounded_up_and_precision_down(rate: float) -> None:
    told = account(made(max_false_alarms=rate))
    assert rate <= numbers(told.headline)[0] / 100 <= 1.1 * rate
    (row,) = (line for line in markdown(told).splitlines() if line.startswith("| Wrong"))
    per = told["practice"]["per"]
    assert rate * per <= numbers(row)[-1] <= 1.1 * rate * per
    precise = account(made(min_precision=0.7 - rate))
    assert 0.98 * (0.7 - rate) <= numbers(precise.headline)[0] / 100 <= 0.7 - rate


def test_each_promise_is_told_in_one_unit() -> None:
    told = account(made(max_alarms="10 per 1,000", max_false_alarms=PER))
    texts = markdown(told).splitlines()
    assert "| Alarms | In these 20,000 points | In 1,000 points | Promised in 1,000 |" in texts
    assert [one.split(" | ")[-1] for one in texts if one.startswith(("| All alarms", "| Wrong"))] == [
        "at most 10 |",
        "at most 0.4 |",
    ]


def test_the_next_reviews_give_what_the_queue_would() -> None:
    certificate = made(FEW, max_false_alarms=0.001)
    told = account(certificate)["next_reviews"]
    queue = ReviewQueue(SCORES, certificate.guarantee, FEW)
    assert told["stop_after_wrong"] == queue.wrong_left == 10
    now, best, usual = (one["found"] for one in told["cases"])
    assert (now["anomaly_from"], now["alarms"]) == (certificate.rule.anomaly_from, 43)
    queue.add(queue.next(50), np.ones(50))
    after = queue.certificate
    assert after.traffic is not None
    assert (best["anomaly_from"], best["alarms"]) == (after.rule.anomaly_from, after.traffic.alarms)
    assert [one["right"] for one in told["cases"]] == [None, 50, round(50 * 31 / 34)]
    assert best["anomaly_from"] < usual["anomaly_from"] < now["anomaly_from"]


def test_where_reviews_cannot_help_the_account_says_so() -> None:
    told = account(made(max_false_alarms=PER))
    assert told["next_reviews"]["stop_after_wrong"] == 0
    assert ReviewQueue(SCORES, Guarantee(max_false_alarms=PER), REVIEWS).done
    assert "would change nothing" in told["next_steps"][0]
    # alarms need no review at all
    assert len(account(made(None, max_alarms=0.01))["next_reviews"]["cases"]) == 1


def test_what_the_coin_passed_over_is_not_reviewed_next() -> None:
    found = np.where(SCORES > 3.7, COINS, np.nan)
    certificate = made(found, max_false_alarms="50 per 50,000", reviews=Reviews(rate=0.5))
    told = account(certificate)
    now, best, _ = (one["found"] for one in told["next_reviews"]["cases"])
    # every second point below the lowest reviewed one is drawn
    assert told["next_reviews"]["cases"][1]["right"] == 50
    assert best["anomaly_from"] == np.nextafter(
        np.sort(SCORES[np.nanmin(np.where(found >= 0, SCORES, np.nan)) > SCORES])[-99], np.inf
    )
    assert now["anomaly_from"] > best["anomaly_from"]
    assert "passed over by the coin" in told["next_steps"][0]


def test_audits_without_a_review_come_first() -> None:
    drawn = RNG.random(20_000) < 0.2
    found = np.where((SCORES > 2.0) | drawn, ANOMALY, np.nan)
    found[np.flatnonzero(drawn)[:3]] = np.nan
    asked = Guarantee(max_false_alarms=0.001, max_fnr=0.5, reviews=Reviews(audits=0.2))
    certificate = calibrate_traffic(SCORES, found, asked, audits=drawn)
    told = account_of(certificate, SCORES, reviews=found, audits=drawn)
    assert "3 audits without a review counted as missed anomalies: review these first." in told["next_steps"]


def test_the_picture_counts_every_point_it_shows(certificate: Certificate) -> None:
    scores, _, found = GIVEN[certificate.checksum]
    verdicts = as_reviews(found, len(scores))
    shown = ByReview.of(certificate.rule.anomaly_from, np.asarray(scores, dtype=float), verdicts)
    threshold, seen = certificate.rule.anomaly_from, certificate.traffic
    assert seen is not None
    assert (np.diff(shown.edges) > 0).all()
    within = [part[part <= shown.edges[-1]] for part in shown.parts.values()]
    assert [int(one.sum()) for one in shown.counts.values()] == [part.size for part in within]
    drawn = np.concatenate(list(shown.parts.values()))
    if threshold in shown.window:
        assert threshold in shown.edges
        # to the right of the line there are exactly the alarms
        assert np.count_nonzero(drawn >= threshold) == seen.alarms
        beyond = np.count_nonzero(drawn > shown.edges[-1])
        counts = {name: int(np.count_nonzero(part >= threshold)) for name, part in shown.parts.items()}
        assert counts == {"right": seen.right, "wrong": seen.wrong, "not reviewed": seen.unreviewed}
        after = shown.edges[:-1] >= threshold
        assert sum(int(one[after].sum()) for one in shown.counts.values()) == seen.alarms - beyond


def test_the_bars_of_a_page_are_as_high_as_their_counts() -> None:
    certificate = made(FEW, max_false_alarms=0.001)
    verdicts = as_reviews(FEW, SCORES.size)
    drawn = alarms_picture(certificate.rule, SCORES, verdicts)
    shown = ByReview.of(certificate.rule.anomaly_from, SCORES, verdicts)
    top = 1.08 * np.sum([*shown.counts.values()], axis=0).max()
    for name, counts in shown.counts.items():
        heights = [height * top for kind, _, _, height in drawn["bars"] if kind == name]
        assert heights == pytest.approx(counts[counts > 0])
    # the bars of one place stand on each other, down to the axis
    for place in {at for _, at, _, _ in drawn["bars"]}:
        stack = [(y, height) for _, at, y, height in drawn["bars"] if at == place]
        assert min(y for y, _ in stack) + sum(height for _, height in stack) == pytest.approx(1.0)


@pytest.mark.parametrize("ending", ["html", "md", "json", "svg", "png"])
def test_every_format_is_written_with_the_scores(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    certificate, path = made(FEW, max_false_alarms=0.001), tmp_path / f"alarms.{ending}"
    certificate.report(path, SCORES, reviews=FEW)
    text = path.read_bytes()
    if ending == "png":
        assert text.startswith(b"\x89PNG")
    else:
        assert (b"not reviewed" if ending == "svg" else b"raise a false alarm") in text


def test_other_scores_or_reviews_are_refused(tmp_path: Path) -> None:
    certificate = made(FEW, max_false_alarms=0.001)
    for scores, found in ((SCORES + 1, FEW), (SCORES, REVIEWS), (SCORES, None)):
        with pytest.raises(InputError, match="made from other scores or reviews; pass all that calibrated"):
            certificate.report(tmp_path / "alarms.html", scores, reviews=found)
    with pytest.raises(InputError, match="know no prevalence and no metrics; leave them out"):
        certificate.report(tmp_path / "alarms.html", prevalence=0.1)
    groups = np.arange(20_000) % 2
    by_group = calibrate_traffic(SCORES, FEW, Guarantee(max_false_alarms=0.001), by=groups)
    with pytest.raises(InputError, match="groups of traffic draws no scores; leave them out"):
        by_group.report(tmp_path / "alarms.html", SCORES, FEW, groups)
    assert list(tmp_path.iterdir()) == []


def test_names_from_outside_are_escaped() -> None:
    told = account(made(FEW, max_false_alarms=0.001), source=FOREIGN, detector=HOSTILE)
    for text in (html(told), markdown(told)):
        assert HOSTILE not in text
        assert "<img src=x" not in text
    assert told.title == f"Alarms of {HOSTILE}"
    assert "Column of reviews" in markdown(told)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_word_is_broken_and_the_plain_case_is_short(certificate: Certificate, width: int) -> None:
    text, told = short(certificate, width), account_of(certificate, brief=True)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join([told.headline, *(f"{fact.name} {fact.text}" for fact in told.facts)])
    assert text.split() == words.split()
    if width == 80 and len(certificate.promises) < 3:
        assert len(text.splitlines()) <= 15


def test_groups_of_traffic_speak_of_alarms() -> None:
    groups = np.where(
        np.arange(20_000) < 12_000, "<b>api", np.where(np.arange(20_000) < 19_900, "login", "new")
    )
    certificate = calibrate_traffic(SCORES, REVIEWS, Guarantee(max_false_alarms="40 per 20,000"), by=groups)
    told = account_of(certificate)
    assert told.headline == (
        "In the long run, at most 40 of every 20,000 points raise a false alarm: in each certified group by"
        " itself, with 95 % confidence."
    )
    text = markdown(told)
    assert told["not_promised"][0].startswith("Groups that are not in the calibration table")
    for word in (
        "one kind or group of points",
        "normal label",
        "FPR",
        "normal points raise",
        "pool",
        "anomalous label",
    ):
        assert word not in text.split("## The certificate")[0]
    seen = certificate.certificates["login"].traffic
    assert seen is not None
    assert f"| 'login' | 7,900 | {seen.alarms} | {seen.right} | as asked |" in text
    assert "| 'new' | 100 | 0 | 0 | none; missing points: " in text
    alarms = [one.traffic for one in certificate.certificates.values() if one.traffic is not None]
    found = f"{sum(one.alarms for one in alarms)} of all 20,000 points raise an alarm"
    assert f"{found}; {sum(one.right for one in alarms)} found right." in text
    assert "<b>api" not in text.split("## The certificate")[0]
    assert "<b>api" not in html(told)


def test_a_notebook_draws_the_alarms() -> None:
    pytest.importorskip("matplotlib")
    axes = made(FEW, max_false_alarms=0.001).plot(SCORES, reviews=FEW)
    assert axes.get_ylabel() == "points of traffic"
    legend = axes.get_legend()
    assert legend is not None
    assert [one.get_text() for one in legend.get_texts()][:2] == ["right, 31", "wrong, 3"]
