"""Detectors of our own, each a scikit-learn estimator whose scores are higher for anomalies."""

from typing import TYPE_CHECKING, Any

from pac_wrap.detectors.devnet import DevNet

if TYPE_CHECKING:
    from pac_wrap.detectors.lstm import LSTMEncoderDecoder as LSTMEncoderDecoder
    from pac_wrap.detectors.lstm import LSTMForecaster as LSTMForecaster

__all__ = ["DevNet", "LSTMEncoderDecoder", "LSTMForecaster"]


def __getattr__(name: str) -> Any:
    # on first use only: torch takes seconds to import, and DevNet works without it
    if name not in __all__:
        raise AttributeError(f"module 'pac_wrap.detectors' has no attribute {name!r}")
    from pac_wrap.detectors import lstm

    lstm.import_torch()
    globals()[name] = value = getattr(lstm, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
