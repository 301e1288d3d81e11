"""What clients, handlers and a store did, and whether it was right.

Clients and handlers write lines (`lines`); meanwhile somebody looks again and again at what workers
hold (`holding`); at the end the store is dumped (`dump`). `checker.check` holds it all against the
invariants of `keeping`, `fencing` and `timing`. Nothing here knows how
tasks were submitted, nor what went wrong meanwhile.
"""
