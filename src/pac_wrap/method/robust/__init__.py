"""Distribution shift and label noise that a promise tolerates, and points that are weighted."""
