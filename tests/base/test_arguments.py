from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from pac_wrap import Guarantee, PACWrap, calibrate_chunks, calibrate_labelled, evaluate
from pac_wrap.base.arguments import (
    as_anomaly_mask,
    as_class_mask,
    as_scores,
    check_aligned,
    check_choice,
    check_count,
    check_rate,
)
from pac_wrap.errors import InputError, LabelWarning, PACWrapError
from pac_wrap.method.calibrate import Request, certify
from pac_wrap.method.comparison import compare_scores
from pac_wrap.method.source import PartitionSource
from pac_wrap.series import window_points
from pac_wrap_paper.detectors import DevNet
from support.strategies import refusal

NAN = float("nan")


def test_an_input_error_is_a_value_error_and_one_of_ours() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, PACWrapError)


@pytest.mark.parametrize(
    "value",
    [
        *(0, 1, -1, 0.0, 1.0, 1.5, NAN, float("inf"), float("-inf"), True, False, np.True_, np.float64(1.0)),
        *("0.05", b"0.05", None, [0.05], np.array([0.05, 0.1]), 0.05j, pytest.param(10**400, id="huge")),
        Decimal("nan"),
        # as doubles these two are 1 and 0
        pytest.param(Fraction(10**30 - 1, 10**30), id="nearly 1"),
        pytest.param(Fraction(1, 10**400), id="nearly 0"),
    ],
)
def test_a_rate_outside_0_and_1_is_refused(value: Any) -> None:
    message = refusal(lambda: check_rate("max_fpr", value))
    assert message.startswith("max_fpr must lie strictly between 0 and 1, got ")
    assert repr(value)[:100] in message  # a long one is cut off
    assert message.endswith("write five percent as 0.05")


@pytest.mark.parametrize("value", [0.25, np.float64(0.25), np.float32(0.25), Fraction(1, 4), Decimal("0.25")])
def test_any_real_number_between_0_and_1_is_a_rate(value: Any) -> None:
    rate = check_rate("rate", value)
    assert rate == 0.25
    assert type(rate) is float


@pytest.mark.parametrize("value", [-1, 2.0, 2.5, NAN, "3", True, False, np.True_, None, np.int64(-4), [3]])
def test_what_is_not_a_count_is_refused(value: Any) -> None:
    message = refusal(lambda: check_count("n", value))
    assert message == f"n must be a whole number, 0 or more, got {value!r}"


@pytest.mark.parametrize("value", [2**63, np.uint64(2**63), 10**400])
def test_a_count_too_large_for_an_engine_is_refused(value: Any) -> None:
    assert refusal(lambda: check_count("n", value)).startswith("n must be less than 2^63, got ")
    assert check_count("n", 2**63 - 1) == 2**63 - 1


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_any_whole_number_is_a_count(value: Any) -> None:
    count = check_count("n", value)
    assert count == 3
    assert type(count) is int


@pytest.mark.parametrize("value", ["Double", "", 1, None, np.array(["double"]), ["double"]])
def test_what_is_not_a_choice_is_refused_with_the_list(value: Any) -> None:
    message = refusal(lambda: check_choice("growth", value, ("linear", "double")))
    assert message.startswith("growth must be one of 'linear', 'double'; got ")
    assert repr(value)[:100] in message  # a long one is cut off


@pytest.mark.parametrize("value", [1, 0, "True"])
def test_true_is_a_choice_only_as_itself(value: Any) -> None:
    assert "must be one of True, False" in refusal(lambda: check_choice("relax_delta", value, (True, False)))


def test_a_choice_passes() -> None:
    check_choice("relax_delta", np.False_, (True, False))
    check_choice("growth", np.str_("double"), ("linear", "double"))
    check_choice("growth", "double", ("linear", "double"))
    check_choice("correction", None, ("exact", None))
    check_choice("relax_delta", False, (True, False))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_scores_of_any_real_type_become_float64(kind: Any) -> None:
    scores = as_scores(np.array([0, 1, 1], dtype=kind))
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "values", [[1, 2], (1.0, 2.0), range(1, 3), pd.Series([1, 2], index=[7, 9]), np.ma.array([1.0, 2.0])]
)
def test_scores_come_in_any_container(values: Any) -> None:
    assert as_scores(values).tolist() == [1.0, 2.0]


def test_scores_share_memory_where_they_can_and_may_be_read_only() -> None:
    values = np.array([1.0, 2.0])
    values.flags.writeable = False
    assert np.shares_memory(as_scores(values), values)


def test_infinities_are_legal_scores() -> None:
    assert as_scores([float("inf"), float("-inf")]).tolist() == [float("inf"), float("-inf")]


@pytest.mark.parametrize("values", [[], (), np.array([], dtype=object), np.array([], dtype=np.float32)])
def test_no_scores_are_scores(values: Any) -> None:
    scores = as_scores(values)
    assert scores.shape == (0,)
    assert scores.dtype == np.float64


def test_nan_is_refused_with_its_count_and_first_position() -> None:
    values = np.zeros(5000)
    values[1234:2345] = NAN
    message = refusal(lambda: as_scores(values, "normal"))
    assert message.startswith("normal must not contain NaN, got 1,111 of 5,000, the first at position 1234;")
    assert "drop those points" in message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((3, 1)), ("one-dimensional", "(3, 1)", "scores.ravel()")),
        ([[]], ("one-dimensional", "(1, 0)")),
        (pd.DataFrame({"s": [1.0, 2.0]}), ("one-dimensional", "(2, 1)")),
        (5.0, ("one-dimensional", "shape ()")),
        (None, ("one-dimensional", "shape ()")),
        ("0.5", ("one-dimensional", "shape ()")),
        (["0.5", "x"], ("real numbers", "'0.5'", ".astype(float)")),
        ([0.5, "x"], ("real numbers", "dtype <U", ".astype(float)")),
        (np.array([0.5, None]), ("real numbers", "dtype object", "0.5")),
        (np.array([0.5, 1.5], dtype=object), ("real numbers", "dtype object", ".astype(float)")),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), ("real numbers", "datetime64")),
        ([1j, 2.0], ("must be real", "Complex", "real part")),
        (np.zeros((2, 2), dtype=complex), ("must be real", "Complex")),
        (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, True]), ("masked values", "got 2", ".compressed()")),
        ([[1.0], [1.0, 2.0]], ("array of numbers", "got list", "inhomogeneous")),
        (pd.Series([1.0, None], dtype="Float64"), ("NaN", "1 of 2", "position 1")),
    ],
)
def test_what_is_not_scores_is_refused(values: Any, words: tuple[str, ...]) -> None:
    message = refusal(lambda: as_scores(values))
    assert "scores" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 1],
        [0.0, 1.0, 1.0],
        [False, True, True],
        np.array([0, 1, 1], dtype=np.uint8),
        np.array([0, 1, 1], dtype=object),
        pd.Series([0, 1, 1], index=[5, 6, 7]),
    ],
)
def test_labels_are_0_and_1(labels: Any) -> None:
    mask = as_anomaly_mask(labels)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("labels", "anomaly_label", "mask"),
    [
        ([1, -1, 1], -1, [False, True, False]),
        ([1, 1], -1, [False, False]),
        ([-1, -1], -1, [True, True]),
        (["ok", "attack", "ok"], "attack", [False, True, False]),
        (["ok", "ok"], "attack", [False, False]),
        (np.array(["ok", "attack"], dtype=object), "attack", [False, True]),
        ([1, 0], 0, [False, True]),
        ([1, 2], 2, [False, True]),
        ([0, 1], True, [False, True]),
        ([5, 5], "attack", [False, False]),
        ([], 1, []),
        ([], "attack", []),
        (np.array([0.0, 0.0]), 10**80, [False, False]),
    ],
)
def test_the_label_of_anomalies_can_be_named(labels: Any, anomaly_label: object, mask: list[bool]) -> None:
    assert as_anomaly_mask(labels, anomaly_label).tolist() == mask


@pytest.mark.parametrize(
    ("labels", "anomaly_label", "words"),
    [
        ([0, 2], 1, ("must be 0 (normal) or 1 (anomalous)", "got 2")),
        ([1, -1], 1, ("must be 0 (normal) or 1 (anomalous)", "got -1", "scikit-learn")),
        ([0.0, NAN, 1.0], 1, ("must be 0 (normal) or 1 (anomalous)", "got nan")),
        ([0, None, 1], 1, ("must be 0 (normal) or 1 (anomalous)", "got None")),
        ([0, 0.5], 1, ("got 0.5",)),
        (["0", "1"], 1, ("got '0'",)),
        ([0, -1], -1, ("must be 1 (normal) or -1 (anomalous)", "got 0")),
        ([1, NAN], -1, ("must be 1 (normal) or -1 (anomalous)", "got nan")),
        (["ok", "attack", "odd"], "attack", ("must be 'attack' (anomalous) or one other value", "got 'odd'")),
        (["ok", "Attack"], "attack", ("'attack'", "got 'Attack'")),
        ([0, 1], "attack", ("'attack'", "got 1")),
        ([NAN, "attack"], "attack", ("got",)),
        ([NAN, 2.0], 2, ("got nan",)),
    ],
)
def test_strange_labels_are_refused(labels: Any, anomaly_label: object, words: tuple[str, ...]) -> None:
    message = refusal(lambda: as_anomaly_mask(np.array(labels, dtype=object), anomaly_label))
    assert message.startswith("labels must be")
    assert "anomaly_label" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([[0], [1]], ("one-dimensional", "(2, 1)", "labels.ravel()")),
        (1, ("one-dimensional", "shape ()")),
        ([0, 1j], ("Complex", "must be real")),
        (np.ma.array([0, 1], mask=[False, True]), ("masked values", "got 1")),
        ([[0], [0, 1]], ("array of numbers", "inhomogeneous")),
        ([0.0, NAN], ("0 (normal) or 1 (anomalous)", "got nan")),
        (["0", "1"], ("0 (normal) or 1 (anomalous)", "got '0'")),
        (pd.Series([0, 1, None], dtype="Int64"), ("0 (normal) or 1 (anomalous)",)),
        (np.array([0, 1, pd.NA], dtype=object), ("missing", "NA", "drop")),
        (pd.Series([True, None], dtype="boolean"), ("missing", "NA", "drop")),
    ],
)
def test_what_is_not_a_list_of_labels_is_refused(labels: Any, words: tuple[str, ...]) -> None:
    message = refusal(lambda: as_anomaly_mask(labels))
    assert "labels" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("check", [as_scores, as_anomaly_mask])
def test_what_cannot_become_an_array_is_refused_by_its_name(check: Callable[..., object]) -> None:
    class Sealed:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("this tensor needs its gradient")

    message = refusal(lambda: check(Sealed(), name="column"))
    assert message.startswith("column must be an array of numbers, got Sealed")
    assert "needs its gradient" in message


@pytest.mark.parametrize("classes", [(1, 2), (4, 5), (2**62, 2**62 + 1)])
def test_two_consecutive_classes_are_read_in_scikit_learns_order_with_a_warning(
    classes: tuple[int, int],
) -> None:
    low, high = classes
    with pytest.warns(LabelWarning, match=f"{high} is taken for the anomalies.*anomaly_label={high}"):
        assert as_class_mask([high, low, low, high]).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("y", "anomaly_label", "mask"),
    [
        ([0, 1, 0], 1, [False, True, False]),
        ([1, 2, 2], 2, [False, True, True]),
        ([1, -1, 1], -1, [False, True, False]),
        (["ok", "attack"], "attack", [False, True]),
    ],
)
def test_declared_classes_are_read_without_a_warning(y: Any, anomaly_label: object, mask: list[bool]) -> None:
    assert as_class_mask(y, anomaly_label).tolist() == mask


@pytest.mark.parametrize(
    "y", [[0, 2], [2, 2], [-1, 0], [1, -1], [1, 2, 3], [1.0, 2.0], ["a", "b"], [[1], [2]]]
)
def test_other_classes_are_refused(y: Any) -> None:
    message = refusal(lambda: as_class_mask(y))
    assert message.startswith("y must be")


def test_a_wrong_anomaly_label_is_not_overruled() -> None:
    assert "got 2" in refusal(lambda: as_class_mask([1, 2, 3], 3))


INDICES: dict[str, tuple[Any, Any, str]] = {
    "another order": ([2, 0, 1], [0, 1, 2], "in position 0 they have 2 and 0"),
    "others": ([0, 1, 2], [0, 1, 3], "in position 2 they have 2 and 3"),
    "names": (["a", "b", "c"], ["a", "c", "b"], "in position 1 they have 'b' and 'c'"),
    "twins": ([0, 0, 1], [0, 1, 0], "in position 1 they have 0 and 1"),
}


@pytest.mark.parametrize(("one", "other", "where"), INDICES.values(), ids=INDICES)
def test_indices_that_differ_are_refused(one: Any, other: Any, where: str) -> None:
    scores, labels = pd.Series([0.1, 0.2, 0.9], index=one), pd.Series([0, 0, 1], index=other)
    for values in (scores, scores.to_frame()):
        message = refusal(check_aligned, "scores", values, "labels", labels)
        assert where in message
        assert "labels.loc[scores.index]" in message
        assert "\n" not in message


def test_equal_indices_and_what_has_none_go_together() -> None:
    index = pd.Index([3, 1, 2])
    scores = pd.Series([0.1, 0.2, 0.9], index=index)
    for labels in (
        pd.Series([0, 0, 1], index=index.rename("id")),
        pd.Series([0, 0, 1], index=[3.0, 1.0, 2.0]),
        scores.to_numpy(),
        [0, 0, 1],
        (0, 0, 1),
        pd.Index([0, 0, 1]),
        pd.Series([0, 1]),  # of another length, which is refused as that of an array is
    ):
        check_aligned("scores", scores, "labels", labels)
        check_aligned("labels", labels, "scores", scores)
    check_aligned("scores", pd.Series([1, 2]), "labels", pd.Series([1, 2]))


def test_every_entrance_refuses_scores_and_labels_in_another_order() -> None:
    """A sorted column beside an unsorted one was certified: nonsense, without a word."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"label": np.repeat([0, 1], [300, 100])})
    frame["score"] = rng.normal(3.0 * frame.label)
    tangled, label = frame.score.sort_values(), frame.label
    X = tangled.to_frame()
    fitted = PACWrap(lambda rows: rows["score"]).fit(frame[["score"]], label)
    guarantee = Guarantee(0.2, 0.2)
    refusals: list[Callable[[], object]] = [
        lambda: calibrate_labelled(tangled, label),
        lambda: calibrate_chunks(lambda: [(tangled, label)]),
        lambda: certify(PartitionSource(lambda task: task(0, tangled, label), 1), Request()),
        lambda: evaluate(fitted.certificate_.verdicts(tangled) + 0 * tangled, label),
        lambda: window_points(tangled, label),
        lambda: compare_scores({"one": (tangled, label == 1)}, guarantee),
        lambda: PACWrap("precomputed").fit(tangled, label),
        lambda: PACWrap(lambda rows: rows["score"]).fit(X, label),
        lambda: fitted.calibrate(X, label),
        lambda: fitted.score(X, label),
        lambda: DevNet().fit(X, label),
    ]
    for action in refusals:
        assert "must have the same index in the same order" in refusal(action)
    # aligned as the sentence says, or split together, they are what they were
    whole = calibrate_labelled(frame.score, label)
    assert calibrate_labelled(tangled, label.loc[tangled.index]) == whole
    assert calibrate_labelled(frame.score.to_numpy(), label) == whole
    X_train, _, y_train, _ = train_test_split(frame[["score"]], label, random_state=0)
    PACWrap(lambda rows: rows["score"]).fit(X_train, y_train)
