"""Encryption at rest: a layer around any engine, there only when keys are given."""
