"""Several detectors on the same labels: delta is shared, and the best is on top."""

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import Algorithm1, Guarantee, InputError, Regime, UpsideDownWarning, calibrate
from pac_wrap.method.comparison import Contender, compare_curves, compare_scores
from statistical.enumeration import Answers
from support.shell import GOLDEN, command, invoke, refused, succeeded, write

RNG = np.random.default_rng(0)
LABELS = np.arange(600) % 2 == 1
BASE = RNG.normal(0, 1, 600)
Columns = dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]]


def columns(**gaps: float) -> Columns:
    """Return one detector per gap between the classes."""
    return {name: (BASE + gap * LABELS, LABELS) for name, gap in gaps.items()}


def test_delta_is_shared_among_all_certificates_and_the_ceilings_are_not() -> None:
    asked = Guarantee(0.1, 0.2, 0.08, 0.16)
    contenders = compare_scores(columns(a=1, b=2, c=3, d=4), asked)
    for one in contenders:
        for certificate in (one.abstaining, one.single):
            assert certificate.guarantee == Guarantee(0.1, 0.2, 0.01, 0.02)
    spent = (one.abstaining.guarantee.joint_delta + one.single.guarantee.joint_delta for one in contenders)
    assert sum(spent) == pytest.approx(asked.joint_delta)


def test_each_certificate_is_what_calibrating_alone_with_the_share_gives() -> None:
    contenders = compare_scores(
        columns(a=2, b=3), Guarantee(delta_fpr=0.2, delta_fnr=0.2), one_threshold=Algorithm1(0.05)
    )
    for one in contenders:
        scores = BASE + {"a": 2, "b": 3}[one.name] * LABELS
        normal, anomalous = scores[~LABELS], scores[LABELS]
        assert one.abstaining == calibrate(normal, anomalous, Guarantee())
        assert one.single == calibrate(normal, anomalous, Guarantee(), overlap=Algorithm1(step=0.05))
        assert one.abstained == pytest.approx(
            (one.abstaining.ambiguity(normal) + one.abstaining.ambiguity(anomalous)) / 2
        )


def test_one_detector_shares_delta_between_its_two_certificates() -> None:
    (one,) = compare_scores(columns(only=3), Guarantee())
    assert one.abstaining.guarantee == one.single.guarantee == Guarantee(0.05, 0.05, 0.025, 0.025)
    assert one.name == "only"


@pytest.mark.parametrize("asked", [Guarantee(max_fnr=None), Guarantee(max_fpr=None)])
def test_one_detector_with_one_side_promised_keeps_all_of_delta(asked: Guarantee) -> None:
    (one,) = compare_scores(columns(only=3), asked)
    assert one.abstaining == one.single
    assert one.abstaining.guarantee == asked


@pytest.mark.parametrize(
    ("n", "m", "asked"),
    [(7, 2, Guarantee(0.374, 0.499, 0.2, 0.2)), (4, 3, Guarantee(0.249, 0.374, 0.32, 0.32))],
)
def test_no_fpr_shown_is_broken_more_often_than_delta(n: int, m: int, asked: Guarantee) -> None:
    """On every sample of every small population; with delta for each certificate it is .236 and .332."""

    def one_of(normal: list[float], anomalous: list[float]) -> Contender:
        scores, labels = np.array(normal + anomalous), np.repeat([False, True], [n, m])
        return compare_scores(
            {"a": (scores, labels)}, asked, one_threshold=Algorithm1(0.25 if n == 7 else 0.125)
        )[0]

    abstaining = Answers(n, m, lambda normal, anomalous: one_of(normal, anomalous).abstaining)
    single = Answers(n, m, lambda normal, anomalous: one_of(normal, anomalous).single)
    broken = abstaining.too_many_alarms() | single.too_many_alarms()
    assert abstaining.worst(abstaining.count_alarms(broken)) <= Fraction(asked.delta_fpr)
    # something is promised all the same
    assert abstaining.worst(abstaining.count_alarms(single.too_many_alarms())) > 0


def test_the_one_that_abstains_least_comes_first() -> None:
    contenders = compare_scores(columns(poor=1, best=2.5, middle=2), Guarantee())
    assert [one.name for one in contenders] == ["best", "middle", "poor"]
    assert sorted(one.abstained for one in contenders) == [one.abstained for one in contenders]


def test_equal_detectors_are_in_the_order_of_their_names() -> None:
    contenders = compare_scores(columns(b=3, a=3, c=3), Guarantee())
    assert [one.name for one in contenders] == ["a", "b", "c"]


def test_abstention_is_the_mean_of_the_classes_so_that_their_sizes_do_not_count() -> None:
    few = np.r_[np.arange(60), np.arange(300, 310)]  # sixty of both classes and ten more: LABELS alternates
    (one,) = compare_scores({"a": (BASE[few] + 2 * LABELS[few], LABELS[few])}, Guarantee(0.1, 0.1))
    scores, labels = BASE[few] + 2 * LABELS[few], LABELS[few]
    shares = [one.abstaining.ambiguity(scores[labels == side]) for side in (False, True)]
    assert one.abstained == pytest.approx(sum(shares) / 2)


@pytest.mark.parametrize("label", [False, True])
def test_one_class_only_has_no_auc_and_certifies_nothing(label: bool) -> None:
    labels = np.full(200, label)
    (one,) = compare_scores({"a": (np.arange(200.0), labels)}, Guarantee())
    assert str(one.auc) in ("None", "nan")
    assert one.abstaining.regime is Regime.VACUOUS
    assert one.single.certified is None
    assert one.common_ceiling == 1.0


def test_the_common_ceiling_is_the_larger_of_the_two() -> None:
    (one,) = compare_scores(columns(a=2), Guarantee(0.05, 0.1))
    assert one.single.certified is not None
    assert one.common_ceiling == max(one.single.certified.max_fpr or 1, one.single.certified.max_fnr or 1)


@pytest.mark.parametrize("asked", [Guarantee(0.05, None), Guarantee(None, 0.05)])
def test_one_sided_promises_are_compared(asked: Guarantee) -> None:
    contenders = compare_scores(columns(a=2, b=3), asked)
    assert all(one.abstained == 0.0 for one in contenders)
    # nothing is promised about the other rate, which may be anything up to 1
    assert all(one.common_ceiling == 1.0 for one in contenders)


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
    assert found["lof"].count("*") == 2
    assert found["forest"].count("*") == found["[red]x[/red]"].count("*") == 0
    assert "confidence 0.991666)" in " ".join(out.split())  # 1 - 0.05 / 6, rounded down


def test_equally_good_detectors_are_all_marked(table: Path) -> None:
    text = table.read_text().replace("forest,lof", "a,b", 1).splitlines()
    doubled = [
        text[0].replace("a,b", "a,b,c"),
        *(line.replace(",", f",{line.split(',')[1]},", 1) for line in text[1:]),
    ]
    path = write(table.with_name("twins.csv"), "\n".join(doubled) + "\n")
    found = rows(succeeded("compare", path, "--score", "b", "--score", "c", "--label", "label"))
    assert found["b"].count("*") == found["c"].count("*") == 2


def test_one_class_only_gets_no_star_for_a_ceiling(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,0\n")
    out = succeeded("compare", path, "--score", "score", "--label", "label")
    assert "vacuous" in out
    assert "nothing" in out
    assert "nothing *" not in out
    assert "nan" not in out


def test_the_real_command_compares() -> None:
    done = command(
        "compare", GOLDEN / "scores.csv", "--score", "score", "--label", "label", "--max-fnr", "0.1"
    )
    assert (done.code, done.err) == (0, "")
    assert "vacuous" in done.out  # 60 normal scores are too few for 0.05 at delta 0.025


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


def test_curves_share_each_delta_once_among_the_detectors() -> None:
    contenders = compare_curves(columns(poor=1, best=3, middle=2), 0.06, 0.03)
    assert [one.name for one in contenders] == ["best", "middle", "poor"]
    for one in contenders:
        assert one.curve.normal.delta == pytest.approx(0.02)
        assert one.curve.anomalous.delta == pytest.approx(0.01)
        kept = one.curve.balanced().guarantee
        assert one.common_ceiling == max(kept.max_fpr or 1.0, kept.max_fnr or 1.0)
        assert one.fnr_at(0.2) == one.curve.choose(max_fpr=0.2).guarantee.max_fnr
        assert one.fnr_at(1e-9) == 1.0


def test_curves_of_one_class_bound_one_rate() -> None:
    (one,) = compare_curves({"a": (np.arange(200.0), np.zeros(200, dtype=bool))})
    assert one.auc is None
    assert one.common_ceiling == 1.0
