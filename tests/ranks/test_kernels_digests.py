"""The digest is the sum of xxhash64 over the scores, as Spark computes it."""

import re
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import calibrate
from pac_wrap.base.floats import flushes
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import SMALL, RankedInMemory
from pac_wrap.ranks.passes import survey
from support.sparksession import quiet, session
from support.strategies import Floats

pytestmark = pytest.mark.usefixtures("each_kernel")

RECORD = Path(__file__).parents[2] / "docs/decisions/0017-digest.md"
# from Spark 4: SELECT hex(xxhash64(CAST(... AS DOUBLE)))
PINNED = [
    (0.0, "b71b47ebda15746c"),
    (-0.0, "b71b47ebda15746c"),
    (inf, "50a4c53232a9cb04"),
    (-inf, "49eaaf247927a85f"),
    (5e-324, "9ed50fd59358d232"),
    (-5e-324, "d15598db1eb94666"),
    (1e-310, "480fb493846e7e8d"),
    (1.0, "e1fd6e07fee8ad53"),
    (-3.999999992553057, "4bb47426efc05afa"),
]


def any_bits(size: int) -> Floats:
    """Return scores of random bits, NaN left out, and every kind of special one."""
    bits = np.random.default_rng(17).integers(0, 1 << 64, size, dtype=np.uint64)
    # the exponent of every other one is zero: subnormal
    bits[::2] &= np.uint64(0x800F_FFFF_FFFF_FFFF)
    scores: Floats = np.concatenate([[score for score, _ in PINNED], bits.view(np.float64)])
    sound: Floats = scores[~np.isnan(scores)]
    return sound


@pytest.mark.parametrize(("score", "expected"), PINNED)
def test_the_digest_of_one_score_is_its_hash(score: float, expected: str) -> None:
    # more than the widest vectors hold, and a rest
    for size in (1, 7, 64, 1001, 70_001):
        total = size * int(expected, 16) % 2**64
        assert digest(np.full(size, score)) == f"{total:016x}"


def test_no_score_has_the_digest_zero() -> None:
    assert digest(np.zeros(0)) == "0" * 16
    assert digest(np.zeros(1)) != "0" * 16


@pytest.mark.slow
@quiet
def test_spark_gives_the_same_hashes_and_by_sql_the_same_digest(tmp_path: Path) -> None:
    scores = any_bits(2_000)
    found = re.search(r"```sql\n(.*?)```", RECORD.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert found is not None
    with session("local[1]", tmp_path) as spark:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        rows = spark.createDataFrame([(score,) for score in scores.tolist()], "score double")
        rows.createOrReplaceTempView("scores")
        hashes = [row[0] for row in rows.selectExpr("xxhash64(CAST(score AS DOUBLE))").collect()]
        (total,) = spark.sql(found[1]).collect()
    assert [digest(score) for score in scores.reshape(-1, 1)] == [f"{one % 2**64:016x}" for one in hashes]
    assert total["digest"] == digest(scores)


def test_scores_whose_squares_were_alike_are_told_apart() -> None:
    # the digest was a sum of squares once: these had the same
    assert digest(np.array([1.0])) != digest(np.array([-3.999999992553057]))
    normal, anomalous = np.linspace(0.0, 1.0, 2400), np.linspace(2.0, 3.0, 100)
    certificate = calibrate(normal, anomalous)
    # low ones, whose twins are lower still: no rank that matters moves
    changed = normal.copy()
    bits = changed[100:863].view(np.uint64)
    # the square of folded bits is that of their negative
    twins = ~(bits ^ bits >> np.uint64(40)) + np.uint64(1)
    bits[:] = twins ^ twins >> np.uint64(40)
    assert (changed[100:863] < 0.0).all()
    verification = certificate.verify(changed, anomalous)
    assert [text.split(" is ")[0] for text in verification.differences] == ["normal.digest"]


def test_two_scores_that_move_towards_each_other_are_noticed() -> None:
    scores = np.arange(1000.0)
    moved = scores.copy()
    moved[[3, 900]] += [1.0, -1.0]
    assert digest(moved) != digest(scores)


def test_hashes_are_spread_evenly() -> None:
    # round numbers, which differ in few bits: each bit is set in half of the hashes, within six deviations
    hashes = [int(digest(np.array([score])), 16) for score in np.arange(2_000.0)]
    assert len(set(hashes)) == 2_000
    for bit in range(64):
        assert abs(sum(one >> bit & 1 for one in hashes) - 1_000) < 6 * 22.4


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_every_way_to_a_digest_gives_the_same(kind: type[np.floating]) -> None:
    with np.errstate(over="ignore", under="ignore"):
        scores = np.resize(any_bits(999), SMALL + 9).astype(kind)
    wide = scores.astype(np.float64)
    expected = digest(wide)
    assert digest(scores) == digest(scores[::-1]) == expected
    assert RankedInMemory(scores, "normal", 5).digest == expected
    parts = survey(wide[:1000], wide[:0]) + survey(wide[1000:], wide[:5])
    assert parts.digests == (expected, digest(wide[:5]))


def test_digests_are_the_same_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    scores = any_bits(SMALL + 1)
    expected = digest(scores)
    flushing()
    assert flushes()
    assert (
        digest(scores)
        == RankedInMemory(scores, "normal", 5).digest
        == survey(scores, scores).digests[0]
        == expected
    )
    for score, text in PINNED:
        assert digest(np.array([score])) == text


def test_float32_scores_keep_their_digest_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    # every subnormal float32 is a normal double
    bits = np.array([0, 1, 2, 0x7FFFFF, 0x800000, 0x3F800000], dtype=np.uint32)
    few = np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)
    expected = [digest(few.astype(np.float64)), digest(np.resize(few, SMALL + 5).astype(np.float64))]
    anomalous = np.ones(9)
    flushing()
    for scores, text in zip((few, np.resize(few, SMALL + 5)), expected, strict=True):
        assert digest(scores) == digest(np.repeat(scores, 2)[::2]) == text
        assert calibrate(scores, anomalous).fpr.digest == text
