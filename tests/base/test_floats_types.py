"""Where the rounding of scores lies, against the rounding that NumPy does."""

from functools import partial
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Guarantee, calibrate, calibrate_chunks, calibrate_labelled
from pac_wrap.base.arguments import score_type
from pac_wrap.base.floats import ScoreType, is_narrower, represents, rounded, rounding_edge, straddled
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.rule import Thresholds
from pac_wrap.ranks.kernels import digest
from support.strategies import calibrate_quietly, refusal

NARROW: list[ScoreType] = ["float32", "float16"]
LARGEST = {"float32": float(np.finfo(np.float32).max), "float16": float(np.finfo(np.float16).max)}
# numbers around which rounding changes its steps, its parity or its sign, for both types
CORNERS = [
    0.0,
    5e-324,
    2.0**-1022,
    *(2.0**power for power in (-150, -149, -148, -127, -126, -25, -24, -23, -15, -14, 0, 15, 16, 127, 128)),
    *LARGEST.values(),
    65519.999,
    65520.0,
    1e300,
    np.finfo(float).max,
    inf,
    0.3,
    1.0 + 2.0**-24,
    1.0 + 3 * 2.0**-24,
    1.0 + 2.0**-11,
    2.0 - 2.0**-24,
]
a_double = st.floats(allow_nan=False) | st.sampled_from([*CORNERS, *(-corner for corner in CORNERS)])

# evenly spaced scores break off where they end
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")


def as_numpy(value: float, kind: ScoreType) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(value).astype(kind))


def check_edge(threshold: float, kind: ScoreType) -> None:
    """The edge is the least double whose rounding reaches the threshold."""
    edge = rounding_edge(threshold, kind)
    assert as_numpy(edge, kind) >= threshold
    if edge > -inf:
        assert as_numpy(nextafter(edge, -inf), kind) < threshold


@pytest.mark.parametrize("kind", NARROW)
@given(threshold=a_double, side=st.sampled_from([-inf, inf, None]))
def test_an_edge_is_the_least_double_that_rounds_to_the_threshold(
    kind: ScoreType, threshold: float, side: float | None
) -> None:
    check_edge(threshold if side is None else nextafter(threshold, side), kind)


@pytest.mark.parametrize("kind", NARROW)
def test_edges_in_every_corner(kind: ScoreType) -> None:
    for corner in CORNERS:
        for value in (corner, -corner):
            for threshold in (nextafter(value, -inf), value, nextafter(value, inf)):
                check_edge(threshold, kind)


def test_edges_at_every_number_of_two_bytes() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    known = np.sort(every[~np.isnan(every)]).astype(np.float64)
    edges = np.array([rounding_edge(value, "float16") for value in known.tolist()])
    with np.errstate(over="ignore", under="ignore"):
        assert (edges.astype(np.float16) >= known).all()
        assert (np.nextafter(edges[known > -inf], -inf).astype(np.float16) < known[known > -inf]).all()


@pytest.mark.parametrize("kind", NARROW)
def test_edges_at_random_bits(kind: ScoreType) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 63, 3_000, dtype=np.uint64) << np.uint64(1)
    for threshold in bits.view(np.float64)[~np.isnan(bits.view(np.float64))].tolist():
        check_edge(threshold, kind)


def test_doubles_have_no_edges_but_themselves() -> None:
    assert rounding_edge(0.3, "float64") == 0.3
    assert rounding_edge(-inf, "float32") == -inf


@pytest.mark.parametrize("kind", NARROW)
@given(alarm=a_double | st.none(), clear=a_double, scores=st.lists(a_double, min_size=1))
def test_a_rule_before_rounding_says_what_it_says_of_rounded_scores(
    kind: ScoreType, alarm: float | None, clear: float, scores: list[float]
) -> None:
    rule = Thresholds(alarm, clear).rule
    decides = rule.before_rounding(kind)
    near = [decides.normal_below, decides.anomaly_from]
    given_scores = [*scores, *near, *(nextafter(edge, -inf) for edge in near)]
    narrow = np.array([as_numpy(score, kind) for score in given_scores])
    assert decides.verdicts(given_scores).tolist() == rule.verdicts(narrow).tolist()
    # what was rounded already is decided in the same way, in its own type too
    assert decides.verdicts(narrow).tolist() == rule.verdicts(narrow).tolist()
    assert decides.verdicts(narrow.astype(kind)).tolist() == rule.verdicts(narrow).tolist()


@pytest.mark.parametrize("kind", NARROW)
@given(edge=a_double)
def test_a_number_is_straddled_if_doubles_on_both_sides_round_to_it(kind: ScoreType, edge: float) -> None:
    found = straddled(edge, kind)
    if found is None:
        assert as_numpy(nextafter(edge, -inf), kind) < as_numpy(edge, kind) or edge == -inf
    else:
        assert as_numpy(nextafter(edge, -inf), kind) == as_numpy(edge, kind) == found


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ">f4", "int8", "uint64", "bool", "g"])
def test_the_type_of_scores(dtype: str) -> None:
    known: dict[str, ScoreType] = {"float32": "float32", ">f4": "float32", "float16": "float16"}
    assert score_type(dtype) == known.get(dtype, "float64")


def test_types_are_ordered_by_their_digits() -> None:
    assert [is_narrower("float32", other) for other in ("float64", "float32", "float16")] == [
        True,
        False,
        False,
    ]
    assert represents("float16", 0.5)
    assert not represents("float16", 1.0 + 2.0**-11)
    assert rounded([0.3], "float64").tolist() == [0.3]


NORMAL, ANOMALOUS = np.linspace(0.0, 0.4, 300), np.linspace(0.3, 1.0, 300)


@pytest.mark.parametrize(
    ("normal", "anomalous", "kind"),
    [
        ("float32", "float32", "float32"),
        ("float16", "float16", "float16"),
        ("float32", "float64", "float64"),
        ("float32", "float16", "float64"),
        ("int64", "float32", "float64"),
        ("float64", "float64", "float64"),
    ],
)
def test_a_certificate_tells_the_type_of_its_scores(normal: str, anomalous: str, kind: str) -> None:
    low, high = NORMAL.astype(normal), ANOMALOUS.astype(anomalous)
    certificate = calibrate(low, high)
    assert certificate.score_type == kind
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert ("rounded to" in str(certificate)) == (kind != "float64")
    assert certificate.verify(low, high)


def test_an_empty_class_takes_the_type_of_the_other() -> None:
    narrow = NORMAL.astype(np.float32)
    assert calibrate(narrow, []).score_type == "float32"
    assert calibrate([], narrow).score_type == "float32"
    assert calibrate(NORMAL.tolist(), []).score_type == "float64"


def test_labelled_scores_and_chunks_tell_the_type_too() -> None:
    scores, labels = np.concatenate([NORMAL, ANOMALOUS]), np.repeat([0, 1], 300)
    for kind in ("float64", "float32", "float16"):
        narrow = scores.astype(kind)
        whole = calibrate_labelled(narrow, labels)
        assert whole.score_type == kind
        parts: list[tuple[Any, Any]] = [(narrow[::2], labels[::2]), ([], []), (narrow[1::2], labels[1::2])]
        assert calibrate_chunks(partial(list, parts)).to_json() == whole.to_json()
        mixed: list[tuple[Any, Any]] = [(narrow, labels), ([1], [1])]
        assert calibrate_chunks(partial(list, mixed)).score_type == "float64"


@pytest.mark.parametrize("kind", NARROW)
def test_verify_rounds_what_comes_wider(kind: ScoreType) -> None:
    low, high = NORMAL.astype(kind), ANOMALOUS.astype(kind)
    certificate = calibrate(low, high)
    # as texts with as many digits as the type needs
    assert certificate.verify([float(str(x)) for x in low], [float(str(x)) for x in high])
    assert certificate.verify(low.astype(float), high.astype(float))
    assert certificate.fpr.digest == digest(low.astype(np.float64))
    wrong = low.astype(float)
    wrong[0] = 0.1
    assert not certificate.verify(wrong, high)


def test_verify_takes_narrow_scores_as_they_are() -> None:
    certificate = calibrate(NORMAL, ANOMALOUS)
    assert "normal.digest" in str(certificate.verify(NORMAL.astype(np.float32), ANOMALOUS))
    halves = calibrate(np.arange(0.0, 50.0, 0.5), np.arange(25.0, 75.0, 0.5))
    narrow = np.arange(0, 50, 0.5, dtype=np.float32), np.arange(25, 75, 0.5, dtype=np.float32)
    assert halves.verify(*narrow)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"overlap": "algorithm1"},
        {"overlap": "hold_fnr"},
        {"guarantee": Guarantee(None, 0.4, 0.4, 0.4)},
    ],
    ids=str,
)
@given(
    values=st.lists(st.floats(-2.0, 2.0, width=16) | st.sampled_from([inf, -inf, -0.0]), min_size=20),
    data=st.data(),
)
def test_verdicts_of_any_text_of_a_narrow_score_are_those_of_the_score(
    options: dict[str, Any], values: list[float], data: st.DataObject
) -> None:
    narrow = np.array(values, dtype=np.float16)
    cut = data.draw(st.integers(1, len(values) - 1))
    asked = {"guarantee": Guarantee(0.4, 0.4, 0.4, 0.4), **options}
    certificate = calibrate_quietly(narrow[:cut], narrow[cut:], **asked)
    expected = (
        certificate.verdicts(narrow).tolist()
        if certificate.rule.single or certificate.overlap.single
        else certificate.thresholds.rule.verdicts(narrow).tolist()
    )
    for same in (narrow, narrow.astype(np.float32), narrow.astype(float), [float(str(x)) for x in narrow]):
        assert certificate.verdicts(same).tolist() == expected


def test_scores_that_lost_digits_are_known_by_the_threshold_between_them() -> None:
    certificate = calibrate(NORMAL + 1e-12, ANOMALOUS + 1e-12)
    found = certificate.undecidable("float32")
    behind = nextafter(certificate.thresholds.alarm_from or inf, -inf), certificate.thresholds.clear_below
    assert found == tuple(sorted(float(np.float32(score)) for score in behind if score is not None))
    assert certificate.undecidable("float64") == ()


@pytest.mark.parametrize("options", [{}, {"overlap": "algorithm1"}], ids=str)
def test_scores_that_never_had_more_digits_lost_none(options: dict[str, Any]) -> None:
    low, high = NORMAL.astype(np.float32).astype(float), ANOMALOUS.astype(np.float32).astype(float)
    certificate = calibrate(low, high, **options)
    assert certificate.score_type == "float64"
    assert certificate.undecidable("float32") == ()
    assert certificate.undecidable("float16") != ()


def test_one_threshold_between_scores_that_lost_digits_is_undecidable() -> None:
    certificate = calibrate(NORMAL + 1e-12, ANOMALOUS + 1 + 1e-12, overlap="algorithm1")
    assert certificate.rule.single
    assert certificate.undecidable("float32") == (float(np.float32(certificate.rule.anomaly_from)),)


def test_nothing_is_undecidable_where_nothing_is_decided() -> None:
    assert calibrate([0.1], [0.9]).undecidable("float32") == ()


def test_masked_scores_are_still_refused() -> None:
    masked = np.ma.array(np.zeros(3, dtype=np.float32), mask=[True, False, False])
    assert "must not contain masked values" in refusal(lambda: calibrate(masked, [1.0]))
