"""Tasks as Python functions: how they are defined, and how one run of a handler is executed.

Workers and the client's inline mode execute handlers through this package. It knows no engine.
"""
