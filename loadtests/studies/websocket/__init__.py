"""The study `websocket`: servers whose applications echo on WebSockets.

- `study`: CPU time of a message, memory of idle WebSockets, verdicts of the protocol cases.
- `cases`: the protocol cases of the Autobahn test suite, which `cases.txt` has.
"""
