"""Promises about the kinds of a class, and about more than two classes: one threshold for each of them."""
