"""Real worker processes, a load, and trouble: what the tests in this folder are made of."""
