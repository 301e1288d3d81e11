"""The Python API: an application's tasks, submitted and looked at."""
