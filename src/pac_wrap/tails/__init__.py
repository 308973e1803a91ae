"""Binomial and hypergeometric tails: error budgets, bounds of error rates, sample sizes. No scores needed."""

from pac_wrap.tails.batches import batch_envelope, batch_tail
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
    "batch_envelope",
    "batch_tail",
    "error_budget",
    "exact_confidence",
    "interval",
    "lower_bound",
    "min_samples",
    "upper_bound",
]
