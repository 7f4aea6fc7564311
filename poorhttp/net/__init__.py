"""Listening sockets: opened, inherited, kept over reloads, and closed.

sockets.py           opens the sockets of a configuration, or keeps them over a reload
listener.py          one listening socket
inherited.py         sockets opened by another process
proxy_protocol.py    addresses where connections begin with a PROXY protocol header
handshakes.py        completes TCP handshakes before a socket is closed
transport.py         what carries HTTP at addresses of a protocol that a plug-in adds
sock_diag.py         sockets as netlink lists them (sock_diag(7))
running_servers.py   finds what listens on an address, or has its port, in /proc
"""
