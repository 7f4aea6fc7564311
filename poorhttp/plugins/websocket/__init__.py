"""Protocol upgrades: gives applications the connection of a request, for WebSocket and others.

worker_hooks.py       what a worker calls: offers the connection of a request, and ends it
protocol_upgrade.py   the socket in the environ, which takes the connection at its first use
gevent_websocket.py   `wsgi.websocket` of the package gevent-websocket, on that socket
"""
