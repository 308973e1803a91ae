"""A stream gives the verdicts of the whole, batch by batch, and reads no further than it is asked to."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import (
    Certificate,
    InputError,
    MissingScoreWarning,
    Monitor,
    Rule,
    VerdictStream,
    calibrate,
    certify_curve,
)
from pac_wrap.method.rule import Thresholds
from support.strategies import Floats, every_rule, refusal, scores, scores_of_any_type

RULE = Rule(normal_below=0.3, anomaly_from=0.7)


def certificate(**options: Any) -> Certificate:
    rng = np.random.default_rng(0)
    return calibrate(rng.normal(0, 1, 300), rng.normal(2, 1, 300), **options)


MADE: dict[str, Certificate] = {}


def made_once(name: str, options: dict[str, Any]) -> Certificate:
    """Return the certificate of a rule, which all examples share."""
    return MADE.get(name) or MADE.setdefault(name, certificate(**options))


@every_rule
@given(whole=scores(), cuts=st.lists(st.integers(0, 30)))
def test_any_chunking_gives_the_verdicts_of_the_whole(
    options: dict[str, Any], whole: Floats, cuts: list[int]
) -> None:
    made = made_once(repr(options), options)
    batches = np.split(whole, sorted(cut for cut in cuts if cut <= whole.size))
    stream = VerdictStream(made, batches)
    found = list(stream)
    assert [one.size for one in found] == [batch.size for batch in batches]
    expected = made.verdicts(whole)
    assert np.array_equal(np.concatenate(found), expected)
    counts = [int((expected == verdict).sum()) for verdict in (0, 1, -1)]
    assert [stream.normal, stream.anomalous, stream.abstained] == counts
    assert stream.rows == whole.size


@given(batches=st.lists(scores_of_any_type()))
def test_batches_of_any_type_are_decided_as_doubles(batches: list[Any]) -> None:
    for found, batch in zip(VerdictStream(RULE, batches), batches, strict=True):
        assert found.dtype == np.int8
        assert np.array_equal(found, RULE.verdicts(batch))


def test_lists_tuples_series_and_rows_of_an_array_are_batches() -> None:
    for batches in (
        [[0.1, 0.9]],
        [(0.1, 0.9)],
        [pd.Series([0.1, 0.9], index=[7, 8])],
        np.array([[0.1, 0.9]]),
    ):
        assert [found.tolist() for found in VerdictStream(RULE, batches)] == [[0, 1]]


def test_nothing_is_pulled_before_it_is_asked_for() -> None:
    pulled = []

    def batches() -> Iterator[list[float]]:
        for score in (0.1, 0.5, 0.9):
            pulled.append(score)
            yield [score]

    stream = VerdictStream(RULE, batches())
    assert pulled == []
    for asked in (1, 2, 3):
        next(stream)
        assert len(pulled) == asked
    assert next(stream, None) is None
    assert next(stream, None) is None


def test_batches_without_an_end_are_decided() -> None:
    def endless() -> Iterator[Floats]:
        while True:
            yield np.array([0.1, 0.5, 0.9])

    stream = VerdictStream(RULE, endless())
    for _ in range(1000):
        next(stream)
    assert repr(stream) == "VerdictStream(rows=3000, normal=1000, anomalous=1000, abstained=1000)"


def test_a_stream_without_batches_or_with_empty_ones_is_no_error() -> None:
    assert list(VerdictStream(RULE, [])) == []
    stream = VerdictStream(RULE, [[], np.empty(0, dtype=np.float32)])
    assert [(found.size, found.dtype.name) for found in stream] == [(0, "int8")] * 2
    assert stream.rows == 0


@pytest.mark.parametrize(
    ("bad", "what", "place"),
    [
        ([0.1, "x"], "batch 2 must be real numbers", 4),
        ([10**400], "batch 2 must be real numbers", 3),
        ([0.1, None], "batch 2 must be real numbers", 4),
        (np.ma.masked_equal([1.0, 2.0, 3.0], 2.0), "batch 2 must not contain masked values", 4),
        ("text", "batch 2 must be one-dimensional", 3),
        (0.5, "batch 2 must be one-dimensional", 3),
        ([[0.5]], "batch 2 must be one-dimensional", 3),
        ([[0.5], [0.1, 0.2]], "batch 2 must be an array of numbers", 3),
        (None, "batch 2 must be one-dimensional", 3),
        (iter([0.5]), "batch 2 must be one-dimensional", 3),
    ],
)
def test_a_bad_batch_is_named_with_its_place_and_the_stream_goes_on(bad: Any, what: str, place: int) -> None:
    stream = VerdictStream(RULE, [[0.1, 0.5], [0.9], bad, [0.2]])
    assert [next(stream).tolist(), next(stream).tolist()] == [[0, -1], [1]]
    sentence = refusal(lambda: next(stream))
    assert sentence.startswith(what)
    assert sentence.endswith(f"(position {place} of the stream)")
    assert (stream.rows, stream.normal, stream.anomalous, stream.abstained) == (3, 1, 1, 1)
    assert next(stream).tolist() == [0]
    assert stream.rows == 4


def test_missing_scores_are_abstained_on_counted_and_said_once() -> None:
    stream = VerdictStream(RULE, [[0.1], [0.9, np.nan, 0.5], np.array([np.nan], dtype=np.float32), [0.9]])
    assert next(stream).tolist() == [0]
    assert repr(stream) == "VerdictStream(rows=1, normal=1, anomalous=0, abstained=0)"
    with pytest.warns(
        MissingScoreWarning, match="batch 1 has .* first at position 2 of the stream"
    ) as warned:
        assert [found.tolist() for found in stream] == [[1, -1, -1], [-1], [1]]
    assert len(warned) == 1
    assert repr(stream) == "VerdictStream(rows=6, normal=1, anomalous=2, abstained=3, missing=2)"


@pytest.mark.parametrize(
    ("bad", "what", "place"),
    [
        ([0.1, 0.2, np.nan], "batch 1 must not contain NaN, got 1 of 3", 4),
        (np.array([np.nan, 1], dtype=np.float32), "batch 1 must not contain NaN, got 1 of 2", 2),
        ([True, np.nan], "batch 1 must not contain NaN", 3),
    ],
)
def test_a_stream_may_stop_at_missing_scores(bad: Any, what: str, place: int) -> None:
    stream = VerdictStream(RULE, [[0.1, 0.5], bad, [0.2]], on_missing="stop")
    next(stream)
    sentence = refusal(lambda: next(stream))
    assert sentence.startswith(what)
    assert sentence.endswith(f"(position {place} of the stream)")
    assert next(stream).tolist() == [0]
    assert "on_missing must be one of" in refusal(VerdictStream, RULE, [], "drop")


def test_what_the_batches_raise_passes_through() -> None:
    def broken() -> Iterator[list[float]]:
        yield [0.9]
        raise ConnectionError("gone")

    stream = VerdictStream(RULE, broken())
    assert next(stream).tolist() == [1]
    with pytest.raises(ConnectionError, match="gone"):
        next(stream)
    assert stream.rows == 1
    assert list(stream) == []


@pytest.mark.parametrize("rule", ["certificate.json", None, 0.5, Rule, Thresholds(0.7, 0.3)])
def test_only_a_certificate_or_a_rule_is_followed(rule: Any) -> None:
    assert "rule must be a Certificate or a Rule" in refusal(lambda: VerdictStream(rule, []))


def test_batches_have_to_be_an_iterable() -> None:
    assert "batches must be an iterable" in refusal(VerdictStream, RULE, 0.5)
    with pytest.raises(InputError, match="one-dimensional"):
        list(VerdictStream(RULE, np.array([0.1, 0.9])))


def test_a_monitor_has_to_watch_the_rule_that_decides() -> None:
    made, other = (calibrate(range(100), range(start, start + 100)) for start in (200, 300))
    monitor = Monitor(other)
    assert "monitor must follow the rule that decides" in refusal(
        lambda: VerdictStream(made, [[1.0]], monitor=monitor)
    )
    assert "monitor must be a Monitor, got str" in refusal(
        lambda: VerdictStream(made, [[1.0]], monitor="watch.json")  # type: ignore[arg-type]
    )
    assert list(VerdictStream(other.rule, [[1.0]], monitor=monitor))
    assert monitor.rows == 1


def test_a_monitor_sees_what_is_handed_out() -> None:
    rng = np.random.default_rng(1)
    normal, anomalous = rng.normal(0, 1, 300), rng.normal(2, 1, 300)
    made, curve = calibrate(normal, anomalous + 1.5), certify_curve(normal, anomalous + 1.5)
    batches = [rng.normal(0.0, 1, 1000), np.array([np.nan, 0.5]), rng.normal(1.5, 1, 1000)]
    monitor, alone = Monitor(made, curve), Monitor(made, curve)
    with pytest.warns(MissingScoreWarning):
        found = list(VerdictStream(made, batches, monitor=monitor))
    alone.update(np.concatenate(found), scores=np.concatenate(batches))
    assert monitor.watches == alone.watches
    assert monitor.alarms == alone.alarms
    assert monitor.alarm is not None
    assert monitor.rows == 2002


@pytest.mark.slow
def test_a_monitored_stream_is_fast_and_its_memory_flat() -> None:
    """A million rows a second on a machine that does nothing else; half of that is asked for here."""
    rng = np.random.default_rng(1)
    normal, anomalous = rng.normal(0, 1, 1000), rng.normal(3, 1, 1000)
    made = calibrate(normal, anomalous)
    monitor, batch = Monitor(made, certify_curve(normal, anomalous)), rng.normal(0, 1, 100_000)
    for _ in VerdictStream(made, [batch] * 10, monitor=monitor):
        pass
    size, started = len(monitor.to_json()), process_time()
    for _ in VerdictStream(made, (batch for _ in range(40)), monitor=monitor):
        pass
    assert 4_000_000 / (process_time() - started) > 500_000
    assert len(monitor.to_json()) < 1.1 * size
