"""Room for shift and for labels that are not clean, and points that are weighted."""
