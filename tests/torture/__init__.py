"""Attacks on everything around the method: generated faults, counted, with what happened to each.

An attack is tried with one number at a time and returns what happened; an AssertionError is a fault of ours.
"""
