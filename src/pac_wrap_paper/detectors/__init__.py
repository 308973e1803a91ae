"""The detectors of the paper, which are scikit-learn estimators: DevNet and two LSTMs.

They load on first use: scikit-learn and torch take seconds to import, and DevNet works without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pac_wrap_paper.detectors.devnet import DevNet as DevNet
    from pac_wrap_paper.detectors.lstm import LSTMEncoderDecoder as LSTMEncoderDecoder
    from pac_wrap_paper.detectors.lstm import LSTMForecaster as LSTMForecaster

_HOME = {"DevNet": "devnet", "LSTMEncoderDecoder": "lstm", "LSTMForecaster": "lstm"}

__all__ = ["DevNet", "LSTMEncoderDecoder", "LSTMForecaster"]


def random_generator(seed: Any) -> np.random.Generator:
    """Return a generator for an int, a RandomState, a Generator or None, not NumPy's global state."""
    # check_random_state would take the global state for None, and NumPy 2.0 takes no RandomState
    return np.random.default_rng(seed.randint(2**31) if isinstance(seed, np.random.RandomState) else seed)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pac_wrap_paper.detectors' has no attribute {name!r}")
    module = import_module(f"pac_wrap_paper.detectors.{_HOME[name]}")
    if name != "DevNet":
        module.import_torch()  # or say how to get it
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
