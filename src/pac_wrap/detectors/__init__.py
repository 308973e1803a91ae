"""Scores out of detectors, and detectors of our own, which are scikit-learn estimators.

DevNet and the two LSTMs are those of the paper and live in `paper/detectors`. They load on first use:
scikit-learn and torch take seconds to import, and DevNet works without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pac_wrap.paper.detectors.devnet import DevNet as DevNet
    from pac_wrap.paper.detectors.lstm import LSTMEncoderDecoder as LSTMEncoderDecoder
    from pac_wrap.paper.detectors.lstm import LSTMForecaster as LSTMForecaster

_HOME = {"DevNet": "devnet", "LSTMEncoderDecoder": "lstm", "LSTMForecaster": "lstm"}

__all__ = ["DevNet", "LSTMEncoderDecoder", "LSTMForecaster"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pac_wrap.detectors' has no attribute {name!r}")
    if name != "DevNet":
        import_module("pac_wrap.paper.detectors.lstm_network").import_torch()  # or say how to get it
    globals()[name] = value = getattr(import_module(f"pac_wrap.paper.detectors.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
