"""The rules of the queue: pure, without a clock, a socket or an engine."""
