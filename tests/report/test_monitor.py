"""A monitor for readers: JSON, metrics as Prometheus reads them, and a page that runs nothing."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from pac_wrap import Monitor, calibrate, calibrate_labelled, certify_curve
from pac_wrap.report.account import account_of
from pac_wrap.report.monitor import MOST_DRAWN, monitor_metrics
from pac_wrap.report.render import as_json, html

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(size=1000), RNG.normal(2.5, 1, size=1000)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
HOSTILE = 'a "b"\\\n<script>x</script>'


def monitored(drift: float = 1.5) -> Monitor:
    monitor = Monitor(CERTIFICATE, certify_curve(NORMAL, ANOMALOUS))
    scores = np.random.default_rng(1).normal(drift, 1, 1500)
    monitor.update(CERTIFICATE.verdicts(scores), np.zeros(1500), scores=scores, id=HOSTILE)
    return monitor


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
UNESCAPED = {r"\\": "\\", r"\n": "\n", r"\"": '"'}


def parsed(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """The metrics, read as the text format is defined: help and type first, then samples."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    named = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            named = line.split()[2]
            assert named not in found
            found[named] = {}
        elif line.startswith("# TYPE "):
            assert line.split()[2] == named
            assert line.split()[3] == ("counter" if named.endswith("_total") else "gauge")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample is not None
            assert sample[1] == named
            pairs = LABEL.findall(sample[2] or "")
            labels = [(name, re.sub(r"\\.", lambda one: UNESCAPED[one[0]], value)) for name, value in pairs]
            found[named][tuple(sorted(labels))] = float(sample[3])
    return found


class Page(HTMLParser):
    """Texts, and elements by name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_metrics_are_those_of_the_format_and_foreign_text_is_escaped() -> None:
    metrics = parsed(monitor_metrics(monitored()))
    assert metrics["pac_wrap_monitor_rows_total"][()] == 1500.0
    assert metrics["pac_wrap_monitor_alarm"][(("watch", "FPR"),)] == 1.0
    assert metrics["pac_wrap_monitor_alarm"][(("watch", "FNR"),)] == 0.0
    assert (("batch", HOSTILE), ("watch", "FPR")) in metrics["pac_wrap_monitor_alarm_row"]
    assert "pac_wrap_monitor_alarm_row" not in parsed(monitor_metrics(Monitor(CERTIFICATE)))


def grouped(groups: int = 3) -> Monitor:
    names = [HOSTILE, None, *range(groups - 2)]
    labels, scores = np.repeat([0, 1], 200), np.r_[NORMAL[:200], ANOMALOUS[:200] + 2.0]
    column = [name for name in names for _ in range(400)]
    certificate = calibrate_labelled(np.tile(scores, groups), np.tile(labels, groups), by=column)
    monitor = Monitor(certificate)
    monitor.update([1] * 20 + [0] * 20, [0] * 40, groups=[HOSTILE] * 20 + [None] * 20, id=HOSTILE)
    return monitor


def test_metrics_and_json_of_groups_name_the_group() -> None:
    metrics = parsed(monitor_metrics(grouped()))
    assert metrics["pac_wrap_monitor_rows_total"][()] == 40.0
    alarms = metrics["pac_wrap_monitor_alarm"]
    assert alarms[(("group", HOSTILE), ("watch", "FPR"))] == 1.0
    assert alarms[(("missing", "true"), ("watch", "FPR"))] == 0.0
    row = (("batch", HOSTILE), ("group", HOSTILE), ("watch", "FPR"))
    assert metrics["pac_wrap_monitor_alarm_row"][row] == 3.0
    content = json.loads(as_json(account_of(grouped())))
    assert [(one["group"], one["rows"]) for one in content["groups"]] == [(None, 20), (HOSTILE, 20)]
    assert content["groups"][1]["alarms"][0]["watch"] == "FPR"
    assert "FPR alarm at row 3" in content["alarm"]


def test_a_group_of_no_name_and_rows_without_a_group_are_two_series() -> None:
    scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    monitor = Monitor(calibrate_labelled(scores, labels, by=[None] * 200 + [""] * 200))
    rows: list[object] = [None, ""] * 20
    monitor.update([1] * 40, [0] * 40, groups=np.array(rows))
    lines = [line.split(" ")[0] for line in monitor_metrics(monitor).splitlines() if line[0] != "#"]
    # to Prometheus an empty label is none
    series = [line.replace('group="",', "") for line in lines]
    assert len(set(series)) == len(series)


def test_a_page_of_many_groups_draws_those_nearest_to_an_alarm() -> None:
    monitor = grouped(20)
    monitor.update([0] * 18, [0] * 18, groups=list(range(18)))
    page = Page(html(account_of(monitor)))
    figures = [tag for tag, _ in page.tags].count("figure")
    assert figures == MOST_DRAWN * len(monitor.members[(HOSTILE,)].watches)
    shown = " ".join(page.texts)
    assert "so not drawn: 8 groups." in shown
    assert "counted within each group" in shown


def test_the_page_says_what_alpha_is_of_and_when_nothing_is_known() -> None:
    monitor = Monitor(CERTIFICATE, alpha=0.03)
    assert "No data yet" in Page(html(account_of(monitor))).texts
    monitor.update([0, -1], [0, 0], scores=[0.0, np.nan])
    shown = " ".join(Page(html(account_of(monitor))).texts)
    assert "No alarm" in shown
    assert "any alarm is ever raised is at most 0.03, which the rates share" in shown
    assert "nor the order of the labels may depend on scores or verdicts" in shown
    assert "Not counted: 1 row without a score." in shown
    assert json.loads(as_json(account_of(monitor)))["unscored"] == 1
    assert "pac_wrap_monitor_unscored_total 1\n" in monitor_metrics(monitor)


def test_rows_of_groups_that_are_not_watched_are_shown_everywhere() -> None:
    monitor = grouped()
    monitor.update([0] * 3, groups=["never seen"] * 3)
    assert (
        "Not monitored: 3 rows of groups never seen at calibration." in Page(html(account_of(monitor))).texts
    )
    content = json.loads(as_json(account_of(monitor)))
    assert (content["unseen"], content["unpromised"], content["points"]) == (3, 0, monitor.points)
    metrics = parsed(monitor_metrics(monitor))
    assert metrics["pac_wrap_monitor_unwatched_total"][(("reason", "never seen"),)] == 3.0


def test_json_has_every_watch_and_every_alarm() -> None:
    content = json.loads(as_json(account_of(monitored())))
    assert [one["name"] for one in content["watches"]] == ["FPR", "FNR", "undecided", "scores"]
    assert content["watches"][0]["limit"] == 0.05
    assert content["alarms"][0]["id"] == HOSTILE
    assert json.loads(as_json(account_of(Monitor(CERTIFICATE))))["alarm"] is None


@pytest.mark.parametrize(
    "monitor", [monitored(), monitored(0.0), Monitor(CERTIFICATE)], ids=["alarm", "none", "new"]
)
def test_the_page_shows_every_watch_and_runs_nothing(monitor: Monitor) -> None:
    page = Page(html(account_of(monitor)))
    names = [tag for tag, _ in page.tags]
    assert names.count("figure") == len(monitor.watches)
    assert "script" not in names
    policy = next(
        one["content"] for _, one in page.tags if one.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert any("<script>x</script>" in text for text in page.texts) == (monitor.alarm is not None)
    assert not any("src" in one or "href" in one or "style" in one for _, one in page.tags)
    numbers = re.findall(
        r"-?[0-9.]+", " ".join(one["d"] for tag, one in page.tags if one.get("class") == "bound fpr")
    )
    assert all(0.0 <= float(number) <= 1000.0 for number in numbers)
    # text that is scaled with its picture is too small to read on a telephone
    plots = [one for _, one in page.tags if one.get("class") == "plot"]
    assert len(plots) == len(monitor.watches)
    assert not any("viewbox" in {name.lower() for name in one} for one in plots)
