"""Protocol upgrade: the application gets the connection of a request (WebSocket and others).

protocol_upgrade.py   the socket in the environ, and the end of the request
gevent_websocket.py   `wsgi.websocket`
"""
