import io
import re

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from pac_wrap import Guarantee, calibrate, evaluate
from pac_wrap.comparison import compare_scores
from pac_wrap.demo import run_demo
from pac_wrap.report.terminal import picture, show_comparison, show_demo, show_evaluation


def text_of(shown: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_is_exceeded_is_said_whole_in_80_columns() -> None:
    metrics = evaluate(np.ones(2_000_000, dtype=int), np.repeat([0, 1], 1_000_000))
    shown = text_of(show_evaluation(calibrate(np.arange(100.0), np.arange(100.0) + 100), metrics))
    assert "…" not in shown
    assert "1,000,000 of 1,000,000  exceeded" in shown


def test_a_comparison_explains_its_stars_in_80_columns() -> None:
    labels = np.repeat([False, True], 100)
    columns = {name: (np.arange(200.0), labels) for name in ("forest", "boosting")}
    shown = text_of(show_comparison(compare_scores(columns, Guarantee())))
    first, *_, last = shown.splitlines()
    assert first.startswith("each with FPR <= 0.05 (confidence 0.9875), FNR <= 0.05 (confidence 0.9875)")
    assert last.startswith("* the best;")


def test_one_sided_promise_abstains_nowhere() -> None:
    demo = run_demo(
        guarantee=Guarantee(max_fpr=0.1, max_fnr=None), n_train=500, n_calibration=100, n_test=200
    )
    shown = text_of(show_demo(demo))
    assert "at most 10 % of normal points" in shown
    assert "anomalies are called normal" not in shown
    assert "?" not in shown.split("verdict")[1].split("\n")[0]
    assert "none" in shown


def test_promise_that_nothing_can_keep_is_shown_as_such() -> None:
    demo = run_demo(n_train=500, n_calibration=1, n_test=200)
    assert demo.single.certified is None
    shown = text_of(show_demo(demo))
    assert "1 normal scores cannot certify FPR <= 0.05" in shown
    assert "none" in shown
    assert "inf" in shown


def test_blocks_are_drawn_in_a_picture_and_rows_of_them_meet() -> None:
    svg = picture(Text(" ▄█\n▁██\nfull █"), "bars")
    drawn = re.findall(r'<path class="[^"]*" shape-rendering="crispEdges" d="([^"]*)"/>', svg)
    # cells of 12.2 by 24.4: half a cell and a whole one stand on what begins where the row below does
    assert drawn == [
        "M0.0 24.40 V24.40 h12.2 V12.20 h12.2 V0.00 h12.2 V24.40 Z",
        "M0.0 48.80 V45.75 h12.2 V24.40 h12.2 V24.40 h12.2 V48.80 Z",
    ]
    assert re.findall("[▁-█]", svg) == ["█"], "letters and blocks together stay text"
