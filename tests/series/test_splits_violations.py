"""Repeated divisions of a series against the same divisions made one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.method.metrics import ViolationRate
from pac_wrap.method.promise import Guarantee
from pac_wrap.series import SeriesSplit, window_points
from pac_wrap.tails import Rate
from pac_wrap.tails.bounds import interval
from support.points import points_at
from support.strategies import Floats, calibrate_quietly, guarantee, scores

TRIALS = 5
SIZE = 48
LABELS = np.arange(SIZE) % 12 < 3
POSITIONS = np.arange(SIZE) * 2
BLOCKS: dict[str, int] = {"block": 8, "gap": 3}


def one_by_one(values: Floats, promise: Guarantee, splits: list[SeriesSplit]) -> ViolationRate:
    """Return what calibrations on these splits do, by certificates and plain counts."""
    fpr, fnr, ambiguity, separated = [], [], [], 0
    for split in splits:
        drawn, labels = values[split.calibration], LABELS[split.calibration]
        certificate = calibrate_quietly(drawn[~labels], drawn[labels], promise, overlap="abstain_always")
        tested, labels = values[split.test], LABELS[split.test]
        if promise.max_fpr is not None:
            fpr.append(float(certificate.thresholds.y_fp(tested[~labels]).mean()))
        if promise.max_fnr is not None:
            fnr.append(float((certificate.thresholds.y_fn(tested[labels]) == 0).mean()))
        ambiguity.append(certificate.rule.ambiguity(tested))
        separated += certificate.thresholds.separated

    def share(count: int) -> Rate:
        return Rate(count, len(splits), *interval(count, len(splits)))

    return ViolationRate(
        None if promise.max_fpr is None else share(sum(rate > promise.max_fpr for rate in fpr)),
        None if promise.max_fnr is None else share(sum(rate > promise.max_fnr for rate in fnr)),
        None if promise.max_fpr is None else sum(fpr) / len(fpr),
        None if promise.max_fnr is None else sum(fnr) / len(fnr),
        sum(ambiguity) / len(ambiguity),
        share(separated),
    )


def assert_same(found: ViolationRate, expected: ViolationRate) -> None:
    assert (found.fpr, found.fnr, found.separated) == (expected.fpr, expected.fnr, expected.separated)
    for name in ("mean_fpr", "mean_fnr", "ambiguity"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12)


ONE_SIDED = st.sampled_from([Guarantee(0.3, None, 0.3), Guarantee(None, 0.3, delta_fnr=0.3)])


@given(scores(SIZE, SIZE), guarantee | ONE_SIDED, st.integers(0, 2**32))
def test_resampling_does_what_its_divisions_do_one_by_one(
    values: Floats, promise: Guarantee, seed: int
) -> None:
    # the next double after the largest stands for "never", which is looked at elsewhere
    assume(np.abs(values[np.isfinite(values)]).max(initial=0.0) < 1e308)
    points = points_at(POSITIONS, LABELS, values, extent=2)
    options: list[dict[str, Any]] = [BLOCKS, {"calibration": 0.5}]
    for chosen in options:
        random = np.random.default_rng(seed)
        splits = [points.divided(random, **chosen) for _ in range(TRIALS)]
        found = points.violation(promise, np.random.default_rng(seed), trials=TRIALS, **chosen)
        assert_same(found, one_by_one(values, promise, splits))


def test_the_interval_has_the_confidence_asked_for() -> None:
    random = np.random.default_rng(0)
    points = window_points(np.arange(SIZE), LABELS)
    found = points.violation(Guarantee(), random, trials=TRIALS, confidence=0.5).separated
    assert (found.low, found.high) == interval(found.count, TRIALS, 0.5)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"trials": 0}, "trials must be a whole number, 1 or more, got 0"),
        ({"guarantee": 0.05}, r"guarantee must be a Guarantee, got 0.05; write Guarantee\(max_fpr=0.05\)"),
        ({"random": 7}, "random must be a NumPy generator, got 7"),
        ({"confidence": 1}, "confidence must lie strictly between 0 and 1, got 1"),
        ({"calibration": 2}, "calibration must lie strictly between 0 and 1, got 2"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {
        "guarantee": Guarantee(),
        "random": np.random.default_rng(0),
        "trials": 2,
        **changed,
    }
    points = window_points(np.arange(SIZE), LABELS)
    with pytest.raises(InputError, match=text):
        points.violation(**given)
    with pytest.raises(InputError, match=text):
        points.violation(**{**given, **BLOCKS})
