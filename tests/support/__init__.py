"""Clients, programs and pytest plugins with which tests are written, beside `tests.testkit`.

admin_address.py      The address `admin` of a server under test, as an operator uses it
admin_requests.py     Made-up requests to the address `admin`
browser.py            Headless Chromium, driven by Selenium
certificate.py        TLS certificate for `localhost`, with the authority that has issued it
check_each.py         Checks every case of a group within one test, and names all that fail
container.py          A container like conf/container/Containerfile by namespaces
development.py        `poorhttp dev`, and a project folder whose files tests change
durations.py          Pytest plugin that prints the tests that came nearest to their limit of time
each_value.py         Rows of parameters in which each value stands once
failure.py            Runs commands that must fail, and checks exit code and message
forked_command.py     Runs commands of `poorhttp`, each as a fork of a process that has imported it
fuse.py               A FUSE file system with one file, served by this process, that can be blocked
graphs.py             Graphs of what imports what: circles, what can be reached, arrows of rooms
h11_agreement.py      Comparison of our request parser with `h11`
hangs.py              Pytest plugin that reports and ends tests which exceed the timeout
health_probe.py       A health check like a load balancer's
http2_as_http1.py     A connection of HTTP/2 that takes requests as text of HTTP/1
http2_client.py       A client of HTTP/2 on `h2`: streams of one connection, what came on each
http2_agreement.py    Comparison of our HPACK and HTTP/2 with `hpack` and `h2`
http2_cases.py        Protocol cases of HTTP/1 as requests of HTTP/2
installed.py          The entry points of setup.cfg, as an installation declares them; their guide
library_program.py    A Python program under test that serves by `poorhttp.serve`
load.py               Steady load from well-behaved clients
network.py            Network namespaces as hosts for a test, where the system allows them
nobody.py             The unprivileged user `nobody`, for tests that run as root
otlp_receiver.py      A receiver of OpenTelemetry's metrics and traces
page_pictures.py      Pictures of the status page for the documents
plugin_names.py       Names of plug-ins in a source file of the core
plug_in.py            Plug-ins of others, as pip installs them: entry points and modules
postgres.py           A PostgreSQL server on a Unix socket, of a user without privileges
process_lock.py       A lock between processes, for which C code waits without being interrupted
proxies.py            Starts the web servers of proxy/ with their configurations, on other ports
python_imports.py     Which Python module depends on which
request_recorder.py   Run by gdb: writes each function that a server calls
rust_imports.py       Which file of a Rust crate names items of which other file
rust_program.py       Programs of the Rust workspace that answer calls over standard streams
scheduling.py         Pytest plugin: pytest-xdist's groups, corrected for workers that crash
services.py           The process tree of a main process with several services
status_documents.py   Made-up status documents, for tests of what renders them
status_reader.py     Reads the status document of a server under test
template_pages.py     Folders of template pages: written, changed and broken by tests
tls_client.py         TLS clients: contexts, requests, certificates and environ variables they get
binary_upgrade.py     A binary upgrade (USR2): the old main process, the new one, their end
without_netlink.py    Execute a command that may open no netlink socket
wsgi_call.py          One request to a WSGI application, checked by `wsgiref.validate`
"""
