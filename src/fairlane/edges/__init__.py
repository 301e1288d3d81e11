"""Two further styles of the Python API over the same core. Nothing here but translation."""
