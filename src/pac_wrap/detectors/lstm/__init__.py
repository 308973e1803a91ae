"""Detectors for time series: recurrent networks that reconstruct, or predict, each step."""

from pac_wrap.detectors.lstm.backend import import_torch
from pac_wrap.detectors.lstm.encoder_decoder import LSTMEncoderDecoder
from pac_wrap.detectors.lstm.forecaster import LSTMForecaster

__all__ = ["LSTMEncoderDecoder", "LSTMForecaster", "import_torch"]
