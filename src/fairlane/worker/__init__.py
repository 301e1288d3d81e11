"""Runs tasks: fetcher → executor → committer, beside leases and maintenance."""
