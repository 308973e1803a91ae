import re
import sys
from pathlib import Path

import pytest
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "guide"))
from run import PAGES, RECORD, has_data, recorded, run_page, versions

NUMBER = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")
DECIMAL = re.compile(r"\d+\.\d+(e[+-]?\d+)?")


def masked(text: str) -> list[str]:
    """Return the lines with every number masked: they hang on the versions of the detectors."""
    lines = (
        re.sub(r"[ ─]+", " ", NUMBER.sub("#", line)).strip() for line in RECORD.sub("", text).splitlines()
    )
    return [re.sub(r"(overlapping|separated): .*", "regime", line) for line in lines]


def rounded(text: str) -> list[str]:
    """Return the lines with six digits of each decimal, as the last ones hang on the processor."""
    return DECIMAL.sub(lambda found: f"{float(found[0]):.6g}", text).splitlines()


def same_numbers(page: str, made: str, here: str) -> str | None:
    """Return why the numbers of two runs of a page are not compared; None if they are, and are the same."""
    if (there := recorded(page)) != here:
        return f"numbers are masked: the page was printed with {there or 'unknown versions'}, here are {here}"
    assert rounded(made) == rounded(page), "run `make guide`"
    return None


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=pytest.mark.slow if PAGES[page] else ()) for page in PAGES],
)
def test_what_a_page_shows_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    made = run_page(page, tmp_path)
    assert masked(made) == masked(text), "run `make guide`"
    if "--report report.html" in text and has_data(page):
        assert (tmp_path / "report.html").stat().st_size < 1_000_000
    if not has_data(page):
        pytest.skip(f"only the Python was run, without the data {', '.join(PAGES[page])}")
    if reason := same_numbers(text, made, versions()):
        pytest.skip(reason)


def test_a_count_that_is_stale_is_found_under_the_versions_of_the_page_and_masked_under_others() -> None:
    page = "17 of 805 scores, threshold 2.20382412345\n\n<!-- printed with numpy 2.0 -->\n"
    assert same_numbers(page, page.replace("12345", "12346"), "numpy 2.0") is None
    stale = page.replace("805", "809")
    with pytest.raises(AssertionError, match="make guide"):
        same_numbers(stale, page, "numpy 2.0")
    assert masked(stale) == masked(page)
    reason = "numbers are masked: the page was printed with numpy 2.0, here are numpy 2.1"
    assert same_numbers(stale, page, "numpy 2.1") == reason


def test_every_page_says_what_printed_it() -> None:
    assert [page.name for page in PAGES if recorded(page.read_text(encoding="utf-8")) is None] == []


def test_blocks_are_drawn_and_rows_of_them_meet() -> None:
    from pictures import screen_svg

    svg = screen_svg(Text(" ▄█\n▁██\nfull █"), "bars")
    drawn = re.findall(r'<path class="[^"]*" shape-rendering="crispEdges" d="([^"]*)"/>', svg)
    # cells of 12.2 by 24.4: half a cell and a whole one stand on what begins where the row below does
    assert drawn == [
        "M0.0 24.40 V24.40 h12.2 V12.20 h12.2 V0.00 h12.2 V24.40 Z",
        "M0.0 48.80 V45.75 h12.2 V24.40 h12.2 V24.40 h12.2 V48.80 Z",
    ]
    assert re.findall("[▁-█]", svg) == ["█"], "letters and blocks together stay text"
