"""Repeated divisions of a series against the same divisions made one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.method.metrics import ViolationRate
from pac_wrap.method.promise import Guarantee
from pac_wrap.series import SeriesSplit, block_split, block_violation, random_split, random_violation
from pac_wrap.tails import Rate
from pac_wrap.tails.bounds import interval
from support.strategies import Floats, calibrate_quietly, guarantee, scores

TRIALS = 5
SIZE = 48
LABELS = np.arange(SIZE) % 12 < 3
POSITIONS = np.arange(SIZE) * 2
BLOCKS: dict[str, int] = {"block": 8, "gap": 3, "extent": 2}


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
        ambiguity.append(certificate.ambiguity(tested))
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
    random = np.random.default_rng(seed)
    splits = [block_split(POSITIONS, LABELS, random, **BLOCKS) for _ in range(TRIALS)]
    random = np.random.default_rng(seed)
    found = block_violation(values, LABELS, POSITIONS, promise, random, trials=TRIALS, **BLOCKS)
    assert_same(found, one_by_one(values, promise, splits))

    random = np.random.default_rng(seed)
    splits = [random_split(LABELS, random, calibration=0.5) for _ in range(TRIALS)]
    random = np.random.default_rng(seed)
    found = random_violation(values, LABELS, promise, random, trials=TRIALS, calibration=0.5)
    assert_same(found, one_by_one(values, promise, splits))


def test_the_interval_has_the_confidence_asked_for() -> None:
    random = np.random.default_rng(0)
    found = random_violation(
        np.arange(SIZE), LABELS, Guarantee(), random, trials=TRIALS, confidence=0.5
    ).separated
    assert (found.low, found.high) == interval(found.count, TRIALS, 0.5)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"trials": 0}, "trials must be a whole number, 1 or more, got 0"),
        ({"guarantee": 0.05}, r"guarantee must be a Guarantee, got 0.05; write Guarantee\(max_fpr=0.05\)"),
        ({"random": 7}, "random must be a NumPy generator, got 7"),
        ({"confidence": 1}, "confidence must lie strictly between 0 and 1, got 1"),
        ({"scores": np.zeros(3)}, "scores and labels must have the same length, got 3 and 48"),
        ({"scores": np.full(SIZE, np.nan)}, "scores must not contain NaN, got 48 of 48"),
        ({"labels": np.zeros(SIZE)}, "labels mark no anomaly|at least 2 anomalous points"),
        ({"calibration": 2}, "calibration must lie strictly between 0 and 1, got 2"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {
        "scores": np.arange(SIZE),
        "labels": LABELS,
        "guarantee": Guarantee(),
        "random": np.random.default_rng(0),
        "trials": 2,
        **changed,
    }
    with pytest.raises(InputError, match=text):
        random_violation(**given)
    with pytest.raises(InputError, match=text):
        block_violation(**{**given, **BLOCKS, "positions": POSITIONS})
