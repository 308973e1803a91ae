"""Tails of the binomial and hypergeometric distributions, and what follows from them. They know no scores."""

from pac_wrap.tails.bounds import (
    Budget,
    Rate,
    error_budget,
    exact_confidence,
    interval,
    lower_bound,
    min_samples,
    upper_bound,
)

__all__ = [
    "Budget",
    "Rate",
    "error_budget",
    "exact_confidence",
    "interval",
    "lower_bound",
    "min_samples",
    "upper_bound",
]
