"""Fairlane on PostgreSQL: everything lives in a schema of its own, named fairlane."""
