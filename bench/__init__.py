"""Benchmarks: one file per question, run by `make bench`."""
