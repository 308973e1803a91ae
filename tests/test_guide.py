import os
import re
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
NUMBER = re.compile(r"-?\d[\d,.]*(e-?\d+)?")


def masked(text: str) -> list[str]:
    """Return the lines with every number masked: the last digits hang on the versions of the detectors."""
    lines = (re.sub(r"[ ─]+", " ", NUMBER.sub("#", line)).strip() for line in text.splitlines())
    return [re.sub(r"(overlapping|separated): .*", "regime", line) for line in lines]


@pytest.mark.slow
def test_the_commands_of_the_guide_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.environ.get("PAC_WRAP_DATA")
    needed = ("annthyroid_21feat_normalised.csv", "census-income.data.gz", "census-income.test.gz")
    if data is None or not all((Path(data) / name).exists() for name in needed):
        pytest.skip(f"PAC_WRAP_DATA does not point at a folder with {', '.join(needed)}")
    monkeypatch.syspath_prepend(GUIDE)
    from run import PAGE, run_guide

    page = PAGE.read_text(encoding="utf-8")
    assert masked(run_guide(page, tmp_path)) == masked(page), "run `make guide`"
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    assert (tmp_path / "verdicts.parquet").exists()
    del sys.modules["run"]
