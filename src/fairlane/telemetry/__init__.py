"""Metrics, logs of transitions, and traces."""
