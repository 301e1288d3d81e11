"""Queues to be measured alike, Fairlane among them: one file each, one protocol (`peer.py`).

They run in environments of their own (`make bench-peers`), so a file here imports its queue, the
standard library, and its neighbours that do the same.
"""
