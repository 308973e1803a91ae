"""A certificate shows itself: as a report with or without its scores, as a figure, and in a notebook."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Certificate, calibrate, evaluate
from support.strategies import refusal

RANDOM = np.random.default_rng(2)
NORMAL, ANOMALOUS = RANDOM.normal(0, 1, 400), RANDOM.normal(2, 1, 200)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return calibrate(NORMAL, ANOMALOUS)


def test_a_report_with_scores_has_pictures_and_one_without_is_whole_too(
    certificate: Certificate, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    certificate.report(path, NORMAL, ANOMALOUS, detector="forest")
    page = path.read_text(encoding="utf-8")
    assert "Error rates of forest" in page
    assert 'id="explorer"' in page
    certificate.report(path)
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "not counted" in page
    assert "Undecided" in page
    for suffix in ("md", "json"):
        certificate.report(tmp_path / f"report.{suffix}")
    told = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert told["thresholds"] is None
    assert told["practice"]["prevalence"] == [1 / 3, 1 / 3]


def test_a_stated_prevalence_is_used(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    metrics = evaluate(certificate.verdicts(NORMAL), np.zeros(400))
    certificate.report(path, prevalence=(0.01, 0.03), metrics=metrics)
    told = json.loads(path.read_text(encoding="utf-8"))
    work = certificate.workload((0.01, 0.03))
    assert told["practice"]["alarms"] == {"from": work.alarms.low, "to": work.alarms.high}
    assert "if 1 % to 3 % are anomalous:" in told["practice"]["said"]
    assert told["held_out"]["fpr"]["n"] == 400
    assert "share between 0 and 1" in refusal(lambda: certificate.report(path, prevalence=2.0))


def test_a_plot_is_that_of_the_scores(certificate: Certificate) -> None:
    ax = certificate.plot(NORMAL, ANOMALOUS)
    assert ax.get_xlabel() == "score (higher is more anomalous)"
    assert certificate.plot(NORMAL, ANOMALOUS, ax=ax) is ax


def test_a_notebook_shows_a_few_escaped_lines_that_run_nothing(certificate: Certificate) -> None:
    foreign = certificate.with_provenance(score="<img src=x onerror=alert(1)>")
    text = foreign._repr_html_()
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            assert {name for name, _ in attrs} <= {"class", "scope"}

    Tags().feed(text)
    assert set(tags) == {"div", "p", "strong", "table", "tr", "th", "td"}
    assert "<strong>Certified.</strong> In the long run, at most 5 % of normal points" in text
    assert len(text) < 5000
