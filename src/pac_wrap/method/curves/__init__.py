"""Bounds that hold at every threshold at once: boundary crossing, the band of a class, and the curve."""
