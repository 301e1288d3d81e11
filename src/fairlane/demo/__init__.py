"""A shop that does not exist, and that has a lot to do: for `fairlane up --demo`.

What it does is made up; that it waits its turn, fails, is retried and gets done is not. Written as
any application of Fairlane would be.
"""
