"""Tests of probabilistic claims: every assertion states its false-alarm rate and proves its power."""
