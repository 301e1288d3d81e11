"""What clients, handlers and a store did, and whether it was right.

Clients and handlers write lines (`lines`); at the end the store is dumped (`dump`); `checker.check`
holds the two against the invariants of `keeping`, `fencing` and `timing`. Nothing here knows how
tasks were submitted, nor what went wrong meanwhile.
"""
