"""The detectors of the paper, whose public address is `pac_wrap.detectors`, and what they draw from."""

from typing import Any

import numpy as np


def random_generator(seed: Any) -> np.random.Generator:
    """Return a generator for an int, a RandomState, a Generator or None; NumPy's global state is not touched.

    >>> random_generator(0).integers(10) == random_generator(0).integers(10)
    np.True_
    """
    # check_random_state would take the global state for None, and NumPy 2.0 takes no RandomState
    return np.random.default_rng(seed.randint(2**31) if isinstance(seed, np.random.RandomState) else seed)
