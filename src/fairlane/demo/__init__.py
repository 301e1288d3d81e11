"""A made-up shop with many tasks, for `fairlane up --demo`.

Its handlers only pretend to work; queues, failures and retries are real. It is written like any
application of Fairlane.
"""
