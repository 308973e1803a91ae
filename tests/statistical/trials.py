"""Many calibrations of fresh samples, and the binomial tails they are compared with."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from pac_wrap import Certificate, Guarantee, UpsideDownWarning, calibrate
from pac_wrap.method.certificate import Overlap
from statistical.populations import Population, Values

Classes = tuple[Population, Population]
Sizes = tuple[int, int]


def repeat(
    classes: Classes,
    sizes: Sizes,
    guarantee: Guarantee,
    trials: int,
    observe: Callable[[Certificate], Sequence[float | None]],
    *,
    seed: int,
    overlap: str | Overlap = "abstain",
) -> list[Values]:
    """Return one array per observed value, an entry per calibration; None becomes NaN."""
    rng = np.random.default_rng(seed)
    rows: list[Any] = []
    with warnings.catch_warnings():
        # where the classes overlap much, a random sample may look upside down
        warnings.simplefilter("ignore", UpsideDownWarning)
        while len(rows) < trials:
            block = min(500, trials - len(rows))
            samples = [side.draw(rng, (block, n)) for side, n in zip(classes, sizes, strict=True)]
            for normal, anomalous in zip(*samples, strict=True):
                rows.append(observe(calibrate(normal, anomalous, guarantee, overlap=overlap)))
    return list(np.array(rows, dtype=np.float64).T)


def budget(n: int, ceiling: float, delta: float) -> int | None:
    """Return max{k : F(k; n, ceiling) <= delta}, by a library of its own."""
    allowed = np.flatnonzero(binom.cdf(np.arange(n), n, ceiling) <= delta)
    return int(allowed[-1]) if allowed.size else None


def tail(k: int | None, n: int, rate: float) -> float:
    """Return F(k; n, rate), 0 without a budget."""
    return 0.0 if k is None else float(binom.cdf(k, n, rate))
