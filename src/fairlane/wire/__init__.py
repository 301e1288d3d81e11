"""JSON shapes of the HTTP API and of `--json`, encoded from the core and decoded to it."""
