"""Tests of the dashboard in a real browser; `kit` says how to write one."""
