"""Scores out of detectors: how a trained detector is called, checked, and wrapped with a promise."""
