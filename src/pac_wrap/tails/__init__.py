"""Tails of the binomial and hypergeometric distributions, and what follows from them. They know no scores."""
