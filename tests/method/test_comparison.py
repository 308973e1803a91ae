"""Several detectors on the same labels: delta is shared, and the best is on top."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import Guarantee, InputError, TotalVariation, UpsideDownWarning, certify_curve
from pac_wrap.method.comparison import compare_scores
from support.shell import GOLDEN, command, invoke, refused, succeeded, write

RNG = np.random.default_rng(0)
LABELS = np.arange(600) % 2 == 1
BASE = RNG.normal(0, 1, 600)
Columns = dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]]


def columns(**gaps: float) -> Columns:
    """Return one detector per gap between the classes."""
    return {name: (BASE + gap * LABELS, LABELS) for name, gap in gaps.items()}


def test_delta_is_shared_once_among_the_detectors() -> None:
    contenders = compare_scores(columns(a=1, b=2, c=3, d=4), Guarantee(0.1, 0.2, 0.08, 0.16))
    for one in contenders:
        assert one.curve.normal.delta == pytest.approx(0.02)
        assert one.curve.anomalous.delta == pytest.approx(0.04)
        scores = BASE + {"a": 1, "b": 2, "c": 3, "d": 4}[one.name] * LABELS
        alone = certify_curve(scores[~LABELS], scores[LABELS], 0.08 / 4, 0.16 / 4)
        assert one.curve == alone


def test_a_share_too_small_for_a_band_is_refused_as_a_share() -> None:
    with pytest.raises(InputError, match=r"delta_fnr / 2 must be at least 1e-05 for a curve, got 5e-06"):
        compare_scores(columns(a=1, b=2), Guarantee(delta_fnr=1e-5))


def test_what_is_shown_is_what_the_curve_certifies() -> None:
    for one in compare_scores(columns(poor=1, best=3, middle=2), Guarantee(0.1, 0.2)):
        kept = one.curve.balanced().guarantee
        assert one.common_ceiling == max(kept.max_fpr or 1.0, kept.max_fnr or 1.0)
        assert one.fnr_at(0.2) == one.curve.choose(max_fpr=0.2).guarantee.max_fnr
        assert one.fpr_at(0.2) == one.curve.choose(max_fnr=0.2).guarantee.max_fpr
        assert one.fnr_at(1e-9) == one.fpr_at(1e-9) == 1.0


@pytest.mark.parametrize("gap", [0.0, 1.0, 2.0, 3.0, 6.0])
def test_abstained_points_lie_where_neither_ceiling_is_kept(gap: float) -> None:
    """A point is decided if some threshold at or below its score keeps the FPR, or one above it the FNR."""
    asked = Guarantee(0.1, 0.15)
    ((scores, labels),) = columns(a=gap).values()
    (one,) = compare_scores({"a": (scores, labels)}, asked)
    alarm = np.array([one.curve.fpr(score) <= 0.1 for score in scores])
    clear = np.array([one.curve.fnr(np.nextafter(score, np.inf)) <= 0.15 for score in scores])
    # one threshold does if some place keeps both
    _, fpr, fnr = one.curve.steps()
    decided = alarm | clear if not ((fpr <= 0.1) & (fnr <= 0.15)).any() else np.ones(600, dtype=bool)
    assert one.abstained == pytest.approx(np.mean([1 - decided[labels == side].mean() for side in (0, 1)]))
    assert (one.abstained == 0.0) == (gap >= 3.0)


def test_the_one_that_abstains_least_comes_first() -> None:
    contenders = compare_scores(columns(poor=1, best=2.5, middle=2), Guarantee())
    assert [one.name for one in contenders] == ["best", "middle", "poor"]
    assert sorted(one.abstained for one in contenders) == [one.abstained for one in contenders]


def test_abstention_comes_before_the_common_ceiling() -> None:
    # a few points far on the wrong side leave all undecided, many in the middle only those
    labels = np.repeat([False, True], 1000)
    scores = np.concatenate((np.linspace(0.0, 1.0, 1000), np.linspace(2.0, 3.0, 1000)))
    few, many = scores.copy(), scores.copy()
    few[:100], few[1000:1100] = 4.0, -1.0
    many[400:1000] = many[1000:1600] = np.linspace(1.0, 2.0, 600)
    first, second = compare_scores({"few": (few, labels), "many": (many, labels)}, Guarantee())
    assert first.name == "many"
    assert first.abstained < second.abstained
    assert first.common_ceiling > second.common_ceiling


def test_a_bound_that_just_keeps_the_ceiling_counts() -> None:
    contender = compare_scores(columns(a=2), Guarantee())[0]
    _, fpr, fnr = contender.curve.steps()
    for bound in sorted(set(fpr))[:3]:
        assert contender.fnr_at(bound) == fnr[fpr == bound].min()
    for bound in sorted(set(fnr))[:3]:
        assert contender.fpr_at(bound) == fpr[fnr == bound].min()


def test_equal_detectors_are_in_the_order_of_their_names() -> None:
    contenders = compare_scores(columns(b=3, a=3, c=3), Guarantee())
    assert [one.name for one in contenders] == ["a", "b", "c"]


def test_abstention_is_the_mean_of_the_classes_so_that_their_sizes_do_not_count() -> None:
    scores = np.r_[np.arange(900.0), np.arange(800.0, 900.0)]
    (one,) = compare_scores({"a": (scores, np.arange(1000) >= 900)}, Guarantee(0.05, 0.5))
    normal = np.mean(scores[:900] >= one.curve.anomalous.score_within(0.5))
    assert 0 < one.abstained < 1
    assert one.abstained != pytest.approx(normal)


@pytest.mark.parametrize("label", [False, True])
def test_one_class_only_has_no_auc_and_bounds_one_rate(label: bool) -> None:
    labels = np.full(200, label)
    (one,) = compare_scores({"a": (np.arange(200.0), labels)}, Guarantee())
    assert one.auc is None
    assert one.common_ceiling == 1.0
    assert one.abstained > 0.9


@pytest.mark.parametrize("asked", [Guarantee(0.05, None), Guarantee(None, 0.05)])
def test_one_sided_promises_are_compared(asked: Guarantee) -> None:
    contenders = compare_scores(columns(a=2, b=3), asked)
    assert all(one.abstained == 0.0 for one in contenders)
    assert [one.name for one in contenders] == ["b", "a"]


@pytest.mark.parametrize("labels", [[], [False] * 9, [True] * 9])
def test_a_class_without_scores_has_no_area(labels: list[bool]) -> None:
    mask = np.array(labels, dtype=bool)
    if not labels:
        with pytest.raises(InputError, match="both empty"):
            compare_scores({"a": (np.zeros(0), mask)}, Guarantee())
        return
    (one,) = compare_scores({"a": (np.arange(9.0), mask)}, Guarantee())
    assert one.auc is None


@pytest.mark.parametrize(("size", "warned"), [(6, False), (7, True)])
def test_only_what_is_significantly_upside_down_is_warned_of(size: int, warned: bool) -> None:
    scores, labels = np.arange(100.0), np.arange(100) < size
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (one,) = compare_scores({"a": (scores, labels)}, Guarantee())
    assert one.auc == 0.0
    assert [(warning.category, warning.filename) for warning in caught] == (
        [(UpsideDownWarning, __file__)] if warned else []
    )


def test_scores_upside_down_come_last() -> None:
    with pytest.warns(UpsideDownWarning):
        contenders = compare_scores(columns(good=3, bad=-3), Guarantee())
    assert [one.name for one in contenders] == ["good", "bad"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    names = {"forest": 2.0, "lof": 4.0, "[red]x[/red]": 1.0}
    lines = [",".join([*names, "label"])]
    lines += [
        ",".join([*(repr(float(base + gap * label)) for gap in names.values()), str(int(label))])
        for base, label in zip(BASE, LABELS, strict=True)
    ]
    return write(tmp_path / "scores.csv", "\n".join(lines) + "\n")


def rows(out: str) -> dict[str, str]:
    return {line.split()[0]: line for line in out.splitlines() if line.split()}


def test_the_command_puts_the_best_on_top_and_marks_it(table: Path) -> None:
    options = ["--score", "forest", "--score", "lof", "--score", "[red]x[/red]", "--label", "label"]
    out = succeeded("compare", table, *options)
    found = rows(out)
    assert [name for name in found if name in ("forest", "lof", "[red]x[/red]")] == [
        "lof",
        "forest",
        "[red]x[/red]",
    ]
    assert found["lof"].count("*") == 4
    assert found["forest"].count("*") == found["[red]x[/red]"].count("*") == 0
    assert "hold together, at every threshold, with 90 % confidence" in " ".join(out.split())


def test_equally_good_detectors_are_all_marked(table: Path) -> None:
    text = table.read_text().replace("forest,lof", "a,b", 1).splitlines()
    doubled = [
        text[0].replace("a,b", "a,b,c"),
        *(line.replace(",", f",{line.split(',')[1]},", 1) for line in text[1:]),
    ]
    path = write(table.with_name("twins.csv"), "\n".join(doubled) + "\n")
    found = rows(succeeded("compare", path, "--score", "b", "--score", "c", "--label", "label"))
    assert found["b"].count("*") == found["c"].count("*") == 4


def test_one_class_only_gets_no_star_for_a_ceiling(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,0\n")
    out = succeeded("compare", path, "--score", "score", "--label", "label")
    assert "too few labels for FPR <= 0.05 (2 normal): the lowest bound is" in out
    assert "too few labels for FNR <= 0.05 (0 anomalous): the lowest bound is 1" in out
    assert "1 *" not in out
    assert "nan" not in out


def test_the_real_command_compares() -> None:
    done = command(
        "compare", GOLDEN / "scores.csv", "--score", "score", "--label", "label", "--max-fnr", "0.1"
    )
    assert (done.code, done.err) == (0, "")
    # 119 are needed at every threshold
    assert "too few labels for FPR <= 0.05 (60 normal): the lowest bound is 0.09" in done.out


@pytest.mark.filterwarnings("default")
def test_each_detector_that_looks_upside_down_is_one_note_with_its_name(table: Path) -> None:
    text = table.read_text().splitlines()
    upside = [f"{text[0]},upside", *(f"{line},{-float(line.split(',')[1])!r}" for line in text[1:])]
    path = write(table.with_name("upside.csv"), "\n".join(upside) + "\n")
    done = invoke("compare", path, "--score", "lof", "--score", "upside", "--label", "label")
    assert done.code == 0
    assert done.err.count("pac-wrap: note:") == 1
    assert "upside" in done.err.removeprefix("pac-wrap: note:").replace("upside down", "")


def test_a_missing_column_among_several_is_refused(table: Path) -> None:
    sentence = refused(
        table.parent, "compare", table, "--score", "lof", "--score", "forst", "--label", "label"
    )
    assert "there is no column 'forst'; did you mean 'forest'?" in sentence


def test_room_is_refused_and_the_advice_keeps_its_promise() -> None:
    # the labels that chose a detector cannot certify it once more
    with pytest.raises(InputError, match=r"calibrate the detector of your choice with it on other labels$"):
        compare_scores(columns(one=1, two=2), Guarantee(shift=TotalVariation(0.01)))
