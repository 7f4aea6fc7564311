"""Other protocols on the connection of a request, which the application gets.

offered.py            the socket in the environ, and the end of the request
gevent_websocket.py   `wsgi.websocket`
"""
