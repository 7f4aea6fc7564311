"""HTTP, WSGI and raw TCP over real connections: what is accepted, refused and limited."""
