import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "guide"))
from run import PAGES, has_data, run_page

NUMBER = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")


def masked(text: str) -> list[str]:
    """Return the lines with every number masked: the last digits hang on the versions of the detectors."""
    lines = (re.sub(r"[ ─]+", " ", NUMBER.sub("#", line)).strip() for line in text.splitlines())
    return [re.sub(r"(overlapping|separated): .*", "regime", line) for line in lines]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=pytest.mark.slow if PAGES[page] else ()) for page in PAGES],
)
def test_what_a_page_shows_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert masked(run_page(page, tmp_path)) == masked(text), "run `make guide`"
    if "--report report.html" in text and has_data(page):
        assert (tmp_path / "report.html").stat().st_size < 1_000_000
