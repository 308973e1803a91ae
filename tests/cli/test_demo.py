import numpy as np

from pac_wrap import Guarantee, Regime
from pac_wrap.cli.demo import Demo, run_demo, show_demo
from pac_wrap_paper.data.dataset import two_gaussians
from support.shell import text_of


def small(seed: int = 0, margin: float = 5.0, guarantee: Guarantee | None = None) -> Demo:
    return run_demo(seed, margin, guarantee, n_train=2_000, n_calibration=500, n_test=4_000)


def test_seed_fixes_everything() -> None:
    first, again, other = small(), small(), small(seed=1)
    assert np.array_equal(first.normal, again.normal)
    assert first.abstaining == again.abstaining
    assert first.abstaining != other.abstaining


def test_measured_rates_belong_to_the_certificates() -> None:
    demo = small(margin=3.0)
    assert demo.abstaining.regime is Regime.OVERLAPPING
    flagged = int(np.count_nonzero(demo.abstaining.verdicts(demo.normal) == 1))
    assert (demo.abstaining_metrics.fpr.count, demo.abstaining_metrics.fpr.n) == (flagged, 4_000)
    assert demo.single_metrics.ambiguity.count == 0
    assert not demo.single.uncertified
    assert demo.single.fpr.ceiling is not None
    assert demo.single_metrics.fpr.value <= demo.single.fpr.ceiling


def test_progress_tells_each_stage() -> None:
    said: list[str] = []
    run_demo(n_train=300, n_calibration=60, n_test=60, progress=said.append)
    assert [text.split()[0] for text in said] == ["training", "calibrating", "checking"]


def test_margin_is_the_distance_of_the_means_in_standard_deviations() -> None:
    X, y = two_gaussians(40_000, 40_000, np.random.default_rng(0), sigma=3.0, margin=5.0)
    distance = np.linalg.norm(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) / 3.0
    # the standard error of each of the six coordinates is 0.007 standard deviations
    assert abs(distance - 5.0) < 0.05
    assert abs(X[y == 0].std() - 3.0) < 0.05


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
    assert demo.single.uncertified
    shown = text_of(show_demo(demo))
    assert "1 normal score cannot certify FPR <= 0.05" in shown
    assert "none" in shown
    assert "inf" in shown
