"""Parts of a certificate of groups: cut where a group ends, and put together in any order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.method.calibrate import Request, as_strategy
from pac_wrap.method.groups import calibrate as module
from pac_wrap.method.groups.calibrate import Block, Part, calibrated, whole_groups


def rows_of(sizes: list[int]) -> Any:
    rng = np.random.default_rng(sum(sizes))
    places = np.repeat(np.arange(len(sizes)) * 3, sizes)
    scores = np.round(rng.normal(size=places.size), 1)
    order = np.lexsort([scores, places])
    return places, scores[order], rng.random(places.size) < 0.5


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 40), st.integers(1, 60))
def test_blocks_hold_whole_groups_however_the_batches_fall(sizes: list[int], batch: int, least: int) -> None:
    places, scores, marks = rows_of(sizes)
    # in the order of the groups, and in none within them
    mixed = np.lexsort([np.random.default_rng(batch).random(places.size), places])
    scores, marks = scores[mixed], marks[mixed]
    starts = range(0, places.size, batch)
    batches = [tuple(one[start : start + batch] for one in (places, scores, marks)) for start in starts]
    batches.insert(1, (places[:0], scores[:0], marks[:0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", least)
        found = list(whole_groups(batches))
    assert np.concatenate([numbers for numbers, _ in found]).tolist() == np.unique(places).tolist()
    assert np.concatenate([np.diff(block.starts) for _, block in found]).tolist() == sizes
    ordered = np.lexsort([marks, scores, places])
    made = [np.concatenate([getattr(block, name) for _, block in found]) for name in ("scores", "marks")]
    assert made[0].tolist() == scores[ordered].tolist()
    assert made[1][np.lexsort([made[1], made[0], places])].tolist() == marks[ordered].tolist()
    assert all(block.keys.size < least + batch + max(sizes) for _, block in found)


@pytest.mark.parametrize("word", ["abstain", "raise", "hold_fnr", "algorithm1"])
def test_parts_travel_as_columns_and_come_back_in_order(word: str) -> None:
    places, scores, marks = rows_of([200, 3, 150, 1])
    request = Request(overlap=as_strategy(word))
    block = Block.of(scores, marks, places // 3, 4)
    whole = calibrated(request, block, "float64")
    parts = []
    for place in (2, 0, 3, 1):
        own = places == 3 * place
        one = Block.of(scores[own], marks[own], np.zeros(own.sum(), dtype=np.int64), 1)
        parts.append(Part.of(request, np.array([place]), one, "float64"))
    together = Part.joined(parts)
    assert together.columns == whole
    flat = [one.flat() for one in parts]
    assert {len(one) for one in flat} == {Part.ROWS}
    back = Part.from_flat(np.hstack(flat))
    assert back.columns == whole
    assert back.places.tolist() == [0, 1, 2, 3]
    assert np.array_equal(back.areas, block.areas(), equal_nan=True)
