"""What can be seen from outside: metrics, logs of transitions, traces. Nothing here decides."""
