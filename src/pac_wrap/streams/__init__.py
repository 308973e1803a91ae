"""Rows that come one after the other: verdicts for batches, CSV and JSON lines."""
