"""A server as an engine: the same operations over its HTTP API."""
