"""Detectors of our own, each a scikit-learn estimator whose scores are higher for anomalies."""

from pac_wrap.detectors.devnet import DevNet

__all__ = ["DevNet"]
