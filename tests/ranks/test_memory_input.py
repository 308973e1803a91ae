"""Which arrays are taken as they are, where NaN is looked for, and that a memory map is not copied."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import calibrate
from pac_wrap.ranks.memory import SMALL, RankedInMemory, unchecked
from support.strategies import refusal

pytestmark = pytest.mark.usefixtures("each_kernel")

every_width = pytest.mark.parametrize("kind", [np.float64, np.float32])


@every_width
@pytest.mark.parametrize("size", [SMALL - 1, SMALL, SMALL + 1])
def test_nan_is_found_on_both_sides_of_the_size_from_which_it_is_looked_for_later(
    kind: Any, size: int
) -> None:
    values = np.zeros(size, dtype=kind)
    place = size // 3
    values[place] = np.nan
    message = refusal(lambda: RankedInMemory(unchecked(values, "normal"), "normal", 1))
    assert message.startswith(
        f"normal must not contain NaN, got 1 of {size:,}, the first at position {place};"
    )


def test_only_large_columns_of_floats_are_taken_as_they_are() -> None:
    for kind in (np.float64, np.float32):
        values = np.full(SMALL + 1, np.nan, dtype=kind)
        assert unchecked(values, "normal") is values
    for other in (np.int64, np.float16, ">f4", bool):
        wide = unchecked(np.ones(SMALL + 1, dtype=other), "normal")
        assert wide.dtype == np.float64
        assert (wide == 1.0).all()
    assert unchecked(np.zeros(SMALL, dtype=np.float32), "normal").dtype == np.float64
    assert "one-dimensional" in refusal(lambda: unchecked(np.zeros((SMALL, 2)), "normal"))


@every_width
def test_memory_maps_are_calibrated_on_without_a_copy(kind: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(mean, 1, 1_000_000).astype(kind) for mean in (0, 4)]
    mapped = []
    for place, scores in enumerate(arrays):
        scores.tofile(tmp_path / str(place))
        mapped.append(np.memmap(tmp_path / str(place), dtype=kind, mode="r"))
    tracemalloc.start()
    certificate = calibrate(mapped[0], mapped[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert certificate == calibrate(arrays[0], arrays[1])
    # one class as float64 alone would take 8 MB
    assert peak < 6_000_000
