"""The dashboard: a page that uses the public API and `/ws`, and nothing else.

It is all in `static/`: plain ES modules that a browser runs as they are. `assets` reads them, for
the server to serve. `types/` describes the API to the type checker.
"""
