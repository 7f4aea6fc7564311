"""Common parts of the studies after the one of 2005, Uniserve beside Apache.

``site`` has its five pages, ``contestants`` who serves them, ``remote`` the ways between client and
server, ``past`` what was measured then.
"""
