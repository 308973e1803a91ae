"""Benchmarks: each line of the table in README.md is one module of `benchmarks.lines`."""
