"""Mutation tests: does the quick suite notice a small change of the library?

`changes.csv` lists mutants, drawn once. Each changes one expression, found by its function and text.
"""
