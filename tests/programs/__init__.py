"""Third-party programs and their clients under our server and a reference: `make programs`.

`python -m tests.programs [NAME …]` runs each of these under gunicorn, then under our server in
three modes, and compares what its clients saw (ASGI: under uvicorn, and in mode `asyncio`). To add
one, write a file with a subclass of `Application`; it needs no entry elsewhere but a line here.

asgi.py       Frameworks of ASGI: Starlette, FastAPI, Channels, Gradio and others
devpi.py      An index of packages: `devpi` uploads, pip installs
dokuwiki.py   A wiki by php-cgi, beside lighttpd: forms, uploads, XML-RPC, feeds
hgweb.py      Mercurial's web server, with `hg`: clone, push, pull, archives
httpbin.py    httpbin under the tests of `requests`, also over TLS
isso.py       Comments for web pages: the API as their script uses it
kinto.py      JSON storage on PostgreSQL, with kinto-http: records, batches, permissions
mlflow.py     MLflow with its client: runs, metrics, artifacts, models
moto.py       Amazon's services with boto3: uploads in parts, queues
pgadmin.py    pgAdmin 4 for several users: login, files, events by WebSocket
pytest_django.py   The live server of pytest-django: its tests with its own and with ours
pytest_flask.py    The live server of pytest-flask, likewise
pywb.py       A web archive: replay, index, recording
radicale.py   Calendars and contacts, with caldav and vdirsyncer
roundup.py    An issue tracker: forms, uploads, XML-RPC, REST
trac.py       A wiki and issue tracker: forms, attachments, feeds
wagtail.py    A content management system: pages, images, documents, static files
zope.py       An application server: management pages, scripts, XML-RPC, WebDAV
running/      What runs them: environments, servers, clients, the comparison
"""
