"""Strategies for overlapping classes: one interface, and strategies that keep ceilings or raise them."""
