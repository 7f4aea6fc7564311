"""What the settings of other servers become: an option of ours, or an explanation.

plan.py             what was read, and what becomes of it: options and explanations
addresses.py        addresses, proxies and targets, which several servers have
log_formats.py      formats of access logs
known_names.py      settings without a rule here: names that our command line knows
gunicorn.py         the settings of gunicorn
uwsgi.py            those of uWSGI
uwsgi_families.py   those of uWSGI that have no equivalent, by the beginning of their names
more_servers.py     those of waitress, uvicorn and granian
"""
