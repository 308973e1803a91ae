"""Detectors: getting scores from them, checking them, and wrapping them with a promise."""
