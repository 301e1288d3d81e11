"""Fairlane on Redis or Valkey: every operation is one atomic script."""
