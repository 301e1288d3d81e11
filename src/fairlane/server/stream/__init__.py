"""Live events: the journal, told to whoever listens.

One reader follows the journal while there are clients (`hub`), and hands what it finds to each of
them (`clients`) that wants it (`subscriptions`). They are reached by
server-sent events (`sse`) or by WebSocket (`fairlane.server.sockets`).
"""
