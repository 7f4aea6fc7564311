"""Programs of others under our server and a reference, with their real clients: `make programs`.

`python -m tests.programs [NAME …]` runs each of these under gunicorn, then under our server in
three modes, and compares what its clients saw. To add one, write a file with a subclass of
`Application`; it needs no entry elsewhere but a line here.

hgweb.py   Mercurial's web server, with `hg`: clone, push, pull, archives
running/   What runs them: environments, servers, clients, the comparison
"""
