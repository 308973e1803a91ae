"""Bounds that hold at every threshold together: boundary crossing, the band of a class, and the curve."""
