"""Fairlane: a task queue for Python with priority lanes that never starve."""

__all__ = ["__version__"]

__version__ = "0.1.0"
