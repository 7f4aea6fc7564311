"""The tests: a folder for each part of the product, suites over real sockets in every mode.

__main__.py            The test command: `python -m tests`
packages.py            Debian packages that tests need: installed, or named
fuzz.py                Fuzzing of the protocol crate: `make fuzz`
h2spec.py              Conformance to HTTP/2 by `h2spec`: `make h2spec`
hpack_differences.py   Our HPACK against a library in Python: `make hpack`
rooms.py               The rooms of the source: sizes, arrows, faults: `make map`
request_path.py        The way of a kept request, recorded for a page: `make request-path`
refusals.py            The tables of docs/reference/refusals.md: `python -m tests.refusals`
mutants.py             Faults put into the Python core one by one: `make mutants-python`
plugin_contract.py     The names that plug-ins may import: `python -m tests.plugin_contract`
covering.py            The tests that cover changed files: `make test-for`
conftest.py            Fixtures and the two levels: modes, shared servers
test_architecture.py   Limits of the source: arrows between rooms, names of plug-ins, circles
commands/              The commands: arguments, files that they write, completion, man pages
unit/                  Parsers and other functions, called in the test's own process
protocol/              HTTP, WSGI and raw TCP: what is accepted, refused and limited
tls/                   TLS: connections and certificates
modes/                 The modes, their processes and threads, and applications that fail in them
supervisor/            The main process: workers, reloads, upgrades, signals, sockets, health
hooks/                 Hooks of applications: when they are called, where, with what
monitoring/            Metrics for Prometheus, StatsD and OpenTelemetry; alerts, runbooks
content/               What is served: files, CGI programs, template pages, mounts, hosts
proxies/               Servers behind web servers and balancers: gateways, peer trust
dev/                   `poorhttp dev`: reloads, discovery, error pages, terminal
entry_points/          Ways in for programs: PasteDeploy, Django, a plugin of pytest
logs/                  Access log, error log, slow log: formats, files, syslog, systemd's journal
system/                The program on a machine: commands, users, containers, conf/
manual/                The commands of the tutorial and of the guides, run as readers type them
lab/                   The load lab, loadtests/: its clients, servers, reports and studies
interop/               Clients of others speak HTTP/2 to the server: `make interop`
programs/              Programs of others with their real clients: `make programs`
support/               What tests are written with, beside `tests.testkit`
testkit/               What all tests are written with: clients, servers, processes, cases
apps/                  Applications that servers are tested with
cases/                 Test cases as data, read by Rust's tests too; `schema` describes them
"""
