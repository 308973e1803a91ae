"""Exact order statistics: of scores in memory, and of parts that are merged."""
