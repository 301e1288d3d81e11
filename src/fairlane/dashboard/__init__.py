"""The dashboard: a page that is a client of the public API and `/ws`, and of nothing else.

All of it is in `static/`: plain ES modules that a browser runs as they are. Here is only what it
takes to hand them out.
"""
