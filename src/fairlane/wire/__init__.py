"""Shapes at the edges: how the core's tasks look in the words of each specification."""
