import pickle
import warnings
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from math import inf, nextafter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.arguments import label_text
from pac_wrap.errors import InputError, LabelWarning, UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import (
    WORDS,
    Request,
    as_strategy,
    calibrate,
    calibrate_chunks,
    calibrate_labelled,
    warn_of_scores,
)
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import Guarantee, as_guarantee
from pac_wrap.method.rule import Regime, Thresholds, Verdict
from pac_wrap.method.source import CLASSES, Source
from pac_wrap.method.strategies.interface import Abstain, Hold
from pac_wrap.method.strategies.raising import Algorithm1, Raise
from pac_wrap.ranks.memory import is_upside_down
from support.kept import kept as kept_by
from support.reports import facts_told
from support.strategies import (
    LARGEST,
    Floats,
    calibrate_quietly,
    every_rule,
    guarantee,
    refusal,
    scores,
    scores_of_any_type,
)

OVERLAPS = (
    "overlap must be one of 'abstain', 'abstain_always', 'raise', 'hold_fnr', 'hold_fpr',"
    " 'hold_fnr_if_needed', 'hold_fpr_if_needed', 'algorithm1'"
)
ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]


def sample(shift: float = 2.0, n: int = 300) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(11)
    return rng.normal(0.0, 1.0, n), rng.normal(shift, 1.0, n)


@given(scores_of_any_type(1, 40), scores_of_any_type(1, 40), guarantee)
def test_verdicts_on_the_calibration_scores_keep_the_budgets(
    normal: NDArray[Any], anomalous: NDArray[Any], guarantee: Guarantee
) -> None:
    certificate = calibrate_quietly(normal, anomalous, guarantee)
    alarms = np.count_nonzero(certificate.verdicts(normal) == Verdict.ANOMALY)
    misses = np.count_nonzero(certificate.verdicts(anomalous) == Verdict.NORMAL)
    for evidence, errors in ((certificate.fpr, alarms), (certificate.fnr, misses)):
        assert evidence.budget is not None
        assert errors <= (evidence.budget.errors or 0)


@given(scores(max_size=40), scores(1, 40), guarantee)
def test_the_certificate_records_what_it_was_made_of(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    certificate = calibrate_quietly(normal, anomalous, guarantee)
    assert certificate.guarantee == kept_by(certificate) == guarantee
    assert (certificate.fpr.n, certificate.fnr.n) == (normal.size, anomalous.size)
    budgets = certificate.fpr.budget, certificate.fnr.budget
    assert budgets[0] is not None
    assert budgets[1] is not None
    too_few = budgets[0].errors is None or budgets[1].errors is None
    assert (certificate.regime is Regime.VACUOUS) == certificate.empty == too_few
    if not too_few:
        assert (certificate.regime is Regime.SEPARATED) == certificate.thresholds.separated
    low, high = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    assert low is not None
    assert high is not None
    if certificate.thresholds.separated:
        assert certificate.rule.single
        assert low <= certificate.rule.anomaly_from <= high
    else:
        assert certificate.rule == certificate.thresholds.rule
    assert certificate.overlap == Abstain()
    always = calibrate_quietly(normal, anomalous, guarantee, overlap="abstain_always")
    assert always.rule == always.thresholds.rule
    assert always.thresholds == certificate.thresholds


def test_separated_overlapping_and_vacuous() -> None:
    apart = calibrate(*sample(shift=8.0))
    assert apart.regime is Regime.SEPARATED
    tau = apart.rule.anomaly_from
    assert apart.verdicts([-5.0, nextafter(tau, -inf), tau, 12.0]).tolist() == [0, 0, 1, 1]
    always = calibrate(*sample(shift=8.0), overlap="abstain_always")
    assert always.verdicts([-5.0, 4.0, 12.0]).tolist() == [0, -1, 1]
    mixed = calibrate(*sample(shift=1.0))
    assert mixed.regime is Regime.OVERLAPPING
    assert mixed.verdicts([-5.0, 0.5, 12.0]).tolist() == [0, -1, 1]
    few = calibrate(*sample(shift=8.0, n=58))
    assert few.regime is Regime.VACUOUS


@pytest.mark.parametrize("size", [0, 1, 35, 58])
def test_too_few_labels_declare_nothing_and_say_how_many_are_missing(size: int) -> None:
    few, many = np.full(size, 0.0), np.full(100, 1.0)
    certificate = calibrate(few, many)
    assert certificate.regime is Regime.VACUOUS
    assert certificate.empty
    assert certificate.thresholds == Thresholds(inf, 1.0)
    assert not (certificate.verdicts(ENDS) == Verdict.ANOMALY).any()
    scores = "1 normal score" if size == 1 else f"{size} normal scores"
    sentence = f"{scores} cannot certify FPR <= 0.05 at delta = 0.05; at least 59 are needed"
    # with none wrong of n, a rate of 1 - 0.05 ** (1 / n) is what can be promised
    instead = {
        0: "",
        1: ", or a ceiling of 0.9501",
        35: ", or a ceiling of 0.08204",
        58: ", or a ceiling of 0.05034",
    }[size]
    assert certificate.diagnosis == (sentence + instead,)
    lacking = f"{size} label{'s' * (size != 1)}, too few: at least 59 are needed{instead}"
    assert facts_told(certificate)["normal"] == [lacking]
    other = calibrate(np.full(100, -1.0), few)
    assert other.thresholds == Thresholds(nextafter(-1.0, inf), -inf)
    assert not (other.verdicts(ENDS) == Verdict.NORMAL).any()
    assert facts_told(other)["anomalous"] == [lacking]


def test_too_few_labels_on_both_sides_abstain_even_at_infinity() -> None:
    certificate = calibrate([0.0, -inf], [1.0, inf])
    assert certificate.verdicts(ENDS).tolist() == [Verdict.ABSTAIN] * 5
    assert certificate.rule.ambiguity(ENDS) == 1.0
    assert len(certificate.diagnosis) == 2


def test_no_labels_at_all_are_refused() -> None:
    message = refusal(lambda: calibrate([], []))
    assert "normal and anomalous are both empty" in message
    assert "at least one labelled score" in message
    assert "both empty" in refusal(lambda: calibrate_labelled([], []))


@given(scores(max_size=40), scores(1, 40), guarantee, st.sampled_from(sorted(WORDS)), st.booleans())
def test_a_one_sided_promise_never_abstains(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, overlap: str, fpr: bool
) -> None:
    asked = replace(guarantee, max_fnr=None) if fpr else replace(guarantee, max_fpr=None)
    certificate = calibrate_quietly(normal, anomalous, asked, overlap=overlap)
    verdicts = certificate.verdicts([*normal, *anomalous, *ENDS])
    assert set(verdicts.tolist()) <= {0, 1}
    # nothing can overlap, so that nothing is done about it
    assert certificate.overlap == Abstain()
    assert certificate.rule.single
    if certificate.regime is Regime.VACUOUS:
        # the FPR can only be kept by no alarm at all, the FNR only by nothing but alarms
        assert set(verdicts.tolist()) == {0 if fpr else 1}


def test_integers_too_large_for_a_double_are_ties() -> None:
    normal = np.arange(2**53, 2**53 + 100)
    certificate = calibrate(normal, normal + 400, Guarantee(0.1, 0.1))
    assert certificate.fpr.budget is not None
    assert certificate.fpr.budget.errors is not None
    assert np.count_nonzero(certificate.verdicts(normal) == 1) <= certificate.fpr.budget.errors


@every_rule
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_scores_are_never_modified_and_may_be_read_only(options: dict[str, Any], kind: Any) -> None:
    normal, anomalous = (part.astype(kind) for part in sample())
    copies = normal.copy(), anomalous.copy()
    normal.flags.writeable = anomalous.flags.writeable = False
    certificate = calibrate(normal, anomalous, **options)
    certificate.verdicts(normal)
    certificate.prediction_sets(anomalous)
    assert certificate.verify(normal, anomalous)
    assert np.array_equal(normal, copies[0])
    assert np.array_equal(anomalous, copies[1])
    writeable = calibrate(*copies, **options)
    assert writeable == certificate
    assert np.array_equal(normal, copies[0])
    assert np.array_equal(anomalous, copies[1])


@every_rule
def test_the_order_of_the_scores_does_not_matter(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    certificate = calibrate(normal, anomalous, **options)
    assert calibrate(normal[::-1], np.sort(anomalous), **options) == certificate
    assert calibrate(list(normal), tuple(anomalous), **options) == certificate


@every_rule
@pytest.mark.parametrize("names", [(0, 1), (1, -1), ("ok", "attack")])
def test_one_array_with_labels_gives_the_same_certificate(options: dict[str, Any], names: Any) -> None:
    normal, anomalous = sample()
    mixed = np.random.default_rng(2).permutation(600)
    labels = np.repeat(names, 300)[mixed]
    together = np.concatenate([normal, anomalous])[mixed]
    found = calibrate_labelled(together, labels, anomaly_label=names[1], **options)
    assert found == calibrate(normal, anomalous, **options)


def test_one_missing_class_is_vacuous() -> None:
    certificate = calibrate_labelled(np.arange(100.0), np.zeros(100))
    assert certificate.fnr.n == 0
    assert certificate.regime is Regime.VACUOUS
    assert certificate.thresholds.clear_below == -inf


def test_scores_and_labels_are_checked() -> None:
    message = refusal(lambda: calibrate_labelled(np.zeros(1000), [0, 1]))
    assert message == "scores and labels must have the same length, got 1,000 and 2"
    assert "got 2;" in refusal(lambda: calibrate_labelled([0.1, 0.2], [0, 2]))
    assert "normal must not contain NaN" in refusal(lambda: calibrate([float("nan")], [1.0]))
    assert "anomalous must not contain NaN" in refusal(lambda: calibrate([1.0], [float("nan")]))
    assert "scores must not contain NaN" in refusal(lambda: calibrate_labelled([float("nan"), 1.0], [0, 1]))
    certificate = calibrate([1.0], [2.0])
    missing = refusal(lambda: certificate.verdicts([float("nan")], on_missing="stop"))
    assert "scores must not contain NaN" in missing


def test_options_are_those_of_the_strategy() -> None:
    normal, anomalous = sample()
    assert "growth must be" in refusal(
        lambda: calibrate(normal, anomalous, overlap=Algorithm1(growth="triple"))  # type: ignore[arg-type]
    )
    for word in ("best", "relaxed", "hold", "Abstain", ""):
        message = refusal(calibrate, normal, anomalous, overlap=word)
        assert OVERLAPS in message
        assert f"got {word!r}" in message


@pytest.mark.parametrize("options", [{}, {"overlap": "algorithm1"}, {"guarantee": Guarantee(max_fnr=None)}])
def test_upside_down_scores_raise_a_warning_that_says_what_to_do(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    with pytest.warns(UpsideDownWarning, match=r"AUC 0\.0\d\d.*negate them"):
        calibrate(-normal, -anomalous, **options)
    with pytest.warns(UpsideDownWarning, match="anomalies score lower"):
        calibrate_labelled([1.0, 0.0] * 7, [0, 1] * 7, **options)


@given(scores(1, 24), scores(1, 24))
def test_the_warning_comes_exactly_if_the_auc_is_significantly_below_one_half(
    normal: Floats, anomalous: Floats
) -> None:
    above = np.count_nonzero(anomalous[:, None] > normal)
    below = np.count_nonzero(anomalous[:, None] < normal)
    area = 0.5 + (above - below) / (2 * normal.size * anomalous.size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = calibrate(normal, anomalous)
    upside_down = is_upside_down(area, normal.size, anomalous.size)
    expected = {UpsideDownWarning.__name__: upside_down, VacuousWarning.__name__: certificate.empty}
    assert Counter(warning.category.__name__ for warning in caught) == Counter(expected)


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [([1.0, 1.0], [1.0]), ([1.0, 3.0], [2.0]), ([5.0], []), ([], [5.0]), ([-inf, inf], [-inf, inf])],
)
def test_scores_that_are_not_upside_down_raise_none(normal: list[float], anomalous: list[float]) -> None:
    # warnings are errors here, so a warning would end the test
    assert calibrate(normal, anomalous).regime is Regime.VACUOUS


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_both_classes_at_once_give_the_same(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    normal, anomalous = (random.normal(shift, 1.0, 200_000).astype(kind) for shift in (0.0, 3.0))
    alone = calibrate(normal, anomalous)
    monkeypatch.setattr("pac_wrap.ranks.kernels._MANY", 1)
    assert calibrate(normal, anomalous) == alone
    anomalous[199_999] = np.nan
    assert "anomalous must not contain NaN, got 1 of 200,000" in refusal(lambda: calibrate(normal, anomalous))


def test_each_word_stands_for_a_strategy_with_its_usual_options() -> None:
    expected: dict[str, Overlap] = {
        "abstain": Abstain(),
        "abstain_always": Abstain(always=True),
        "raise": Raise(),
        "hold_fnr": Hold("fnr"),
        "hold_fpr": Hold("fpr"),
        "hold_fnr_if_needed": Hold("fnr", always=False),
        "hold_fpr_if_needed": Hold("fpr", always=False),
        "algorithm1": Algorithm1(),
    }
    assert expected == WORDS
    normal, anomalous = sample(shift=1.0)
    for word, strategy in expected.items():
        assert as_strategy(word) == as_strategy(strategy) == strategy
        assert Request.of(overlap=word) == Request.of(overlap=strategy) == Request(overlap=strategy)
        assert calibrate(normal, anomalous, overlap=word) == calibrate(normal, anomalous, overlap=strategy)
        assert calibrate(normal, anomalous, overlap=word).overlap == strategy


def test_a_request_holds_what_is_asked_for() -> None:
    assert Request() == Request.of() == Request.of(None) == Request(Guarantee(), Abstain(), 1)
    asked, strategy = Guarantee(0.1, 0.2), Algorithm1(step=0.05)
    request = Request.of(asked, strategy, "attack")
    assert (request.guarantee, request.overlap, request.anomaly_label) == (asked, strategy, "attack")
    assert Request.of(request) is request
    assert pickle.loads(pickle.dumps(request)) == request
    with pytest.raises(FrozenInstanceError):
        request.anomaly_label = 1  # type: ignore[misc]  # frozen on purpose


@pytest.mark.parametrize("overlap", WORDS.values())
@pytest.mark.parametrize("asked", [Guarantee(max_fpr=None), Guarantee(max_fnr=None)])
def test_with_one_ceiling_nothing_can_overlap(asked: Guarantee, overlap: Overlap) -> None:
    assert Request(asked, overlap).overlap == Abstain()
    assert Request.of(asked, overlap.word) == Request(asked)
    assert Request(Guarantee(), overlap).overlap == overlap


@pytest.mark.parametrize(
    ("label", "text"), [(1, None), (0, "0"), (-1, "-1"), ("1", "1"), (True, "True"), (1.0, "1.0"), ("x", "x")]
)
def test_only_the_usual_label_needs_no_text(label: object, text: str | None) -> None:
    assert label_text(label) == text


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Request(0.05), "guarantee must be a Guarantee, got 0.05"),  # type: ignore[arg-type]
        (
            lambda: Request.of({"max_fpr": 0.05}),  # type: ignore[arg-type]
            "guarantee must be a Guarantee, got {'max_fpr': 0.05}",
        ),
        (
            lambda: Request(Guarantee(), "abstain or not"),  # type: ignore[arg-type]
            OVERLAPS,
        ),
        (
            lambda: Request.of(overlap=Hold),  # type: ignore[arg-type]
            "or a strategy such as Algorithm1(step=0.05); got <class",
        ),
        (
            lambda: Request.of(overlap=False),  # type: ignore[arg-type]
            "overlap must be one of .* got False",
        ),
        (lambda: Request.of(Guarantee(max_fnr=None), "nonsense"), "overlap must be one of .* got 'nonsense'"),
        (
            lambda: Request.of(Request(), overlap="abstain"),
            "a Request has its own overlap and anomaly_label; remove",
        ),
        (lambda: Request.of(Request(), overlap=Abstain()), "remove these arguments"),
        (lambda: Request.of(Request(), anomaly_label="attack"), "remove these arguments"),
        (lambda: Request.of(Request(), anomaly_label=True), "remove these arguments"),
    ],
)
def test_what_is_no_request_is_refused(ask: Any, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        ask()


@every_rule
def test_every_entrance_takes_a_whole_request(options: dict[str, Any]) -> None:
    normal, anomalous = sample()
    scores, labels = np.concatenate([normal, anomalous]), np.repeat(["ok", "attack"], 300)
    request = Request.of(options.get("guarantee"), options.get("overlap"), "attack")
    expected = calibrate(normal, anomalous, **options)
    assert calibrate(normal, anomalous, request) == expected
    assert calibrate_labelled(scores, labels, request) == expected
    assert calibrate_chunks(lambda: [(scores, labels)], request) == expected


def test_a_request_together_with_other_arguments_is_refused_at_every_entrance() -> None:
    normal, anomalous = sample()
    scores, labels = np.concatenate([normal, anomalous]), np.repeat([0, 1], 300)
    for ask in (
        lambda: calibrate(normal, anomalous, Request(), overlap="abstain"),
        lambda: calibrate_labelled(scores, labels, Request(), overlap="hold_fnr"),
        lambda: calibrate_labelled(scores, labels, Request(), anomaly_label=0),
        lambda: calibrate_chunks(lambda: [(scores, labels)], Request(), overlap=Hold("fnr")),
        lambda: calibrate_chunks(lambda: [(scores, labels)], Request(), anomaly_label="x"),
    ):
        assert "a Request has its own overlap" in refusal(ask)


@pytest.mark.parametrize("given", [0.05, "0.05", (0.05, 0.05), {"max_fpr": 0.05}])
def test_nothing_but_a_guarantee_is_one(given: Any) -> None:
    message = refusal(lambda: as_guarantee(given))
    assert "guarantee must be a Guarantee" in message
    assert "write Guarantee(max_fpr=0.05)" in message
    assert as_guarantee(None) == Guarantee()


def test_points_chosen_by_score_are_noticed_in_classes_of_one_size_too() -> None:
    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, 2000), random.normal(2, 1, 4000)
    reviewed = anomalous[anomalous >= 1.645][:2000]
    source = SimpleNamespace(auc=lambda *_: None, held=lambda: (normal, reviewed))
    with pytest.warns(LabelWarning, match="no anomaly scores below 1.6"):
        warn_of_scores(cast(Source, source), [CLASSES])
