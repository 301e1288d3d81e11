"""Runs tasks: fetcher → executor → committer, beside heartbeat and maintenance."""
