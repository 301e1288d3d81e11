"""Live events: the journal, sent to clients as it grows.

One reader follows the journal while there are clients (`hub`), and gives each of them (`clients`)
the events that it wants (`subscriptions`), over server-sent events (`sse`) or WebSocket
(`websocket`).
"""
