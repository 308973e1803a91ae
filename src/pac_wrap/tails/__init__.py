"""Tails of the binomial and hypergeometric distributions, and what follows from them. They know no scores."""

from pac_wrap.tails.bounds import (
    Budget,
    Rate,
    achievable_rate,
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
    "achievable_rate",
    "error_budget",
    "exact_confidence",
    "interval",
    "lower_bound",
    "min_samples",
    "upper_bound",
]
