"""The Python API: submit the tasks of an application, query them, and wait for their results."""
