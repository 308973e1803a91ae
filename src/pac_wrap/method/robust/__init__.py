"""Distribution shift and label noise that a promise tolerates, and weighted calibration points."""
