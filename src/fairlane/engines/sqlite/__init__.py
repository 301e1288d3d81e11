"""Fairlane on SQLite: embedded, in one file or in memory."""
