"""Listening sockets: opened, inherited, kept over reloads, closed.

sockets.py           opens the sockets that the settings ask for
listener.py          one listening socket
inherited.py         sockets opened by another process
systemd.py           socket activation and notification (sd_notify)
proxy_protocol.py    addresses where connections begin with a PROXY protocol header
handshakes.py        completes TCP handshakes before a socket is closed
sock_diag.py         TCP sockets as netlink lists them
running_servers.py   finds the server that listens on an address, in /proc
"""
