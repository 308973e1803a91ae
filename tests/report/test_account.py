"""One account for every format: words load no terminal library, and an ending chooses page or picture."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import InputError, calibrate, certify_curve
from pac_wrap.report.account import account_of
from pac_wrap.report.render import rendered, write

NORMAL, ANOMALOUS = range(500), range(450, 950)
SHOWN = """
import sys
from pac_wrap import calibrate, calibrate_labelled, certify_curve
scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
groups = calibrate_labelled(scores, labels, by=["a"] * 200 + ["b"] * 200)
made = calibrate(range(100), range(200, 300))
for one in (groups, made, certify_curve(range(100), range(200, 300))):
    assert str(one)
assert groups.diagnosis == ()
sys.exit(" ".join(name for name in ("rich", "typer", "matplotlib", "jinja2") if name in sys.modules))
"""


def test_words_need_no_terminal_library() -> None:
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "\n")


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_ending_chooses_a_picture(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    made, path = calibrate(NORMAL, ANOMALOUS), tmp_path / f"scores.{ending}"
    write(made, path, NORMAL, ANOMALOUS)
    assert path.read_bytes()[:8] == (b"<svg sty" if ending == "svg" else b"\x89PNG\r\n\x1a\n")
    drawn = rendered(account_of(certify_curve(NORMAL, ANOMALOUS)), "curve.svg")
    assert "the certified trade-off" in str(drawn)


def test_a_picture_without_scores_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be drawn without the scores"):
        write(calibrate(NORMAL, ANOMALOUS), tmp_path / "scores.svg")
    assert list(tmp_path.iterdir()) == []


def test_every_format_says_what_the_account_does() -> None:
    account = account_of(calibrate(NORMAL, ANOMALOUS), np.array(NORMAL), np.array(ANOMALOUS))
    for path in ("report.html", "report.md", "report.json"):
        text = str(rendered(account, path)).replace("\N{NO-BREAK SPACE}", " ")
        assert account.headline in text
        assert all(step in text for step in account["next_steps"][1:3])
