# Every target does its own set-up; nothing has to be installed first but Python >= 3.10.
#
#   make run                    serve apps/lightheavy on http://127.0.0.1:8080
#   make run MODE=forking BIND=127.0.0.1:8081 APP=dispatch:apps/lightheavy OPTIONS="--workers 4"
#   make modules                compiles the extension modules for TLS and compression too, which `make run` does only if OPTIONS
#                               or BIND ask for them
#   make test [TESTS=tests/protocol/test_wsgi.py] [PYTEST="-k close -x"] [JOBS=4]
#   make test-for PATH ...      the tests that cover a change of these files or folders; of none, of what git says is changed
#   make test-full              every test in every mode it has, too
#   make test-all               the same under every Python that is found
#   make programs [PROGRAMS="hgweb trac"]   programs of others with their real clients, under three modes and gunicorn
#   make interop [CLIENTS="go node"]   clients of others speak HTTP/2 to the server: curl, browser, Go, Java, Node and others
#   make lint   make format   make bench   make clean
#   make proxy-nginx            a proxy before two of them on http://127.0.0.1:8000; proxy-lighttpd, proxy-haproxy, …
#   make proxy-nginx CASE=site PORT=8443 SERVERS="8081 8082"   another of its configurations, other ports
#   make serial                 a study of the load lab, for a look; SCALE=full as it is reported, LAB="--servers …"
#                               docs/guides/load-lab.md names the others; compare: all
#   make advise APP=mine.py:app measures an application, and says which mode, workers and threads it wants
#   make instructions [BASE=HEAD]   instructions of a request in each mode, of a commit and of this tree, and the ratios
#   make footprint [BASE=HEAD]      memory of each mode, of a commit and of this tree; of a bare interpreter and of peers
#   make figures                draws all figures of the stored results of the lab into build/figures, and those that docs
#                               show into docs/figures; python -m loadtests docs writes the pages made of them
#   make map                    rooms of the source with their sizes, arrows between them, and what is wrong with these
#   make request-path           records the way of a kept request under gdb, and writes docs/internals/request.md: minutes
#   make docs                   the manual, as pages of a site: build/docs/index.html; VERSIONS="v1.0.0 v1.1.0" with the
#                               manuals of these releases, by default of all; VERSIONS= of none
#   make docs-links             asks whether the manual's links to other sites still lead somewhere
#   make soak [MINUTES=30] [MODES="threading asyncio"]   mixed load with every fault at once
#   make fuzz [TIME=900] [JOBS=2] [TARGETS="head h11"]    TIME seconds for each target
#   make corpus                 keeps what fuzzing found interesting
#   make hpack [COUNT=1000000] [SEED=1]     our HPACK and `hpack` of PyPI decode what the other encodes: COUNT lists of fields
#   make operate-http2 [MODES="forking threading"]   reloads, upgrades and kills under clients of HTTP/2: none loses a request
#   make h2spec [MODES="forking threading"] [H2SPEC=PATH]    tests of h2spec over TLS and without; it is built if Go is there
#   make miri                   the protocol crate under Rust's interpreter
#   make mutants                faults put into the protocol crate one by one, which its tests have to catch: 80 minutes
#   make mutants-python [SEED=1] [COUNT=60] [FIRST=17]   the same for the Python core, COUNT faults chosen by SEED: a minute each
#   make wheels [WHEELS="--python 3.13 --target x86_64-unknown-linux-musl"]   wheels for Linux into dist/: all, 40 minutes
#   make sdist                  the source with all crates into dist/: it builds without a network
#   make lab-wheel              the wheel of the load lab, poorhttp-lab, for this machine into dist/
#   make test PYTHON=python3.12 any of them with another Python

PYTHON  = python3
VENV    = .venv/$(notdir $(PYTHON))
APP     = dispatch:apps/lightheavy
MODE    = threading
BIND    = 127.0.0.1:8080
OPTIONS = --access-log -
TESTS   = tests
PYTEST  =
PROGRAMS =
CLIENTS =
MINUTES = 30
MODES   = threading asyncio
TIME    = 60
JOBS    =
SEED    = 1
COUNT   = 60
FIRST   = 1
TARGETS =
CASE    = balanced
PORT    =
SERVERS =
SCALE   = quick
LAB     =
BASE    = HEAD
WHEELS  =
H2SPEC  =

python  = $(VENV)/bin/python
# What is compiled: all extension modules at once if the goal needs them or somebody has asked for them before, else the one that
# every server loads.
all     = $(VENV)/modules.ready
built   = $(if $(wildcard $(all))$(filter-out run docs proxy-%,$(MAKECMDGOALS)),,CORE_BUILD_MODULES=_core)
asked   = $(findstring https,$(BIND) $(OPTIONS))$(findstring tls,$(OPTIONS))$(findstring compress,$(OPTIONS))
# A command with a Rust toolchain on its path, which is installed for this user if there is none.
rust    = $(python) core/bootstrap.py run
# Says what it does and how far it is. Quiet itself, so that a step is one line.
install = @$(built) $(python) core/bootstrap.py install
# What extras of setup.cfg name.
tools   = @$(python) core/bootstrap.py tools
sources = $(shell find core \( -name target -o -name fuzz \) -prune -o \( -name '*.rs' -o -name 'Cargo.*' \) -print)

studies = $(filter-out bench,$(shell sed -n 's/^    "\(.*\)": .*,$$/\1/p' loadtests/studies/catalogue.py)) compare

.PHONY: run fetch modules test test-for test-full test-all compile-tests programs interop packages lint lint-rust lint-python format bench $(studies) advise instructions footprint figures map request-path docs docs-links peers soak fuzz corpus hpack h2spec operate-http2 miri mutants mutants-python wheels sdist lab-wheel clean

run: $(VENV)/run.ready $(if $(asked),$(all))
	@echo "start: $(APP) on http://$(BIND), at once; Ctrl-C ends it" >&2
	$(python) -m poorhttp serve $(APP) --mode $(MODE) --bind $(BIND) $(OPTIONS)

modules: $(all)

# Every folder of proxy/ is one: proxy-lighttpd, proxy-nginx, proxy-haproxy, proxy-apache2, proxy-caddy.
proxy-%: $(VENV)/run.ready
	@echo "start: two servers behind $*, in a few seconds; Ctrl-C ends them" >&2
	$(python) -m proxy $* $(CASE) $(PORT:%=--port %) $(if $(SERVERS),--servers $(SERVERS))

tests = $(rust) $(python) -m tests $(JOBS:%=--jobs %) $(if $(PYTEST),--options="$(PYTEST)") $(TESTS)

test: packages $(VENV)/test.ready
	$(tests)

test-full: packages $(VENV)/test.ready
	$(tests) --full

# The same cargo build that `make test` begins with; .ci/run has it done beside that of the modules.
compile-tests: $(VENV)/venv.ready
	@$(rust) $(python) -m tests --compile

# The words behind it are paths, for which nothing is made, and make is not to say so.
ifeq ($(firstword $(MAKECMDGOALS)),test-for)
paths = $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(paths): ; @:
MAKEFLAGS += --silent
endif
changed = $(shell git diff --name-only HEAD; git ls-files --others --exclude-standard)

test-for: packages $(VENV)/test.ready
	$(rust) $(python) -m tests $(JOBS:%=--jobs %) $(if $(PYTEST),--options="$(PYTEST)") --changed $(or $(paths),$(changed))

# Installs each program once, into .venv/programs; then no network is needed.
programs: $(all)
	@$(python) tests/packages.py programs || true
	$(python) -m tests.programs $(PROGRAMS)

interop: packages $(VENV)/test.ready
	$(python) -m tests.interop $(CLIENTS)

# What is missing in the end is named, and tests that need it are skipped.
packages:
	@$(or $(wildcard $(python)),$(PYTHON)) tests/packages.py || true

# pyenv hides every interpreter that is not chosen: all of them are.
test-all: $(VENV)/lint.ready
	PYENV_VERSION="$$(pyenv versions --bare 2>/dev/null | paste -sd: -)" $(VENV)/bin/nox

lint: lint-rust lint-python

lint-rust: $(VENV)/venv.ready
	$(rust) cargo fmt --manifest-path core/Cargo.toml --all --check
	PYO3_PYTHON=$(abspath $(python)) $(rust) cargo clippy --manifest-path core/Cargo.toml --workspace --all-targets -- -D warnings

lint-python: $(VENV)/test.ready $(VENV)/lint.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/lint.ready
	$(rust) cargo fmt --manifest-path core/Cargo.toml --all
	$(VENV)/bin/ruff check --fix-only .
	$(VENV)/bin/ruff format .

bench: $(VENV)/peers.ready
	$(python) -m loadtests bench $(BENCH)

# The other servers are installed first, once; those that cannot be are named, and left out.
$(studies): $(VENV)/peers.ready
	$(python) -m loadtests $@ --$(SCALE) $(LAB)

advise: $(VENV)/lab.ready
	$(python) -m loadtests advise $(APP) $(LAB)

instructions: $(VENV)/lab.ready
	$(rust) $(python) -m loadtests instructions $(BASE) $(LAB)

footprint: $(VENV)/peers.ready
	$(rust) $(python) -m loadtests footprint $(BASE) $(LAB)

figures: $(VENV)/lab.ready
	$(python) -m loadtests figures

map: $(VENV)/venv.ready
	@$(python) -m tests.rooms

request-path: $(VENV)/test.ready
	$(rust) $(python) -m tests.request_path

docs: $(VENV)/docs.ready
	$(python) docs/manual_site/build.py $(if $(filter undefined,$(origin VERSIONS)),,--versions $(VERSIONS))

docs-links: $(VENV)/docs.ready
	$(python) -m sphinx --builder linkcheck --quiet --keep-going docs build/docs-links

peers: $(VENV)/lab.ready
	$(python) -m loadtests peers
	@touch $(VENV)/peers.ready

soak: $(VENV)/lab.ready
	$(python) -m loadtests soak --minutes $(MINUTES) --modes "$(MODES)"

fuzz: $(VENV)/test.ready
	$(python) -m tests.fuzz --seconds $(TIME) $(JOBS:%=--jobs %) $(TARGETS)

corpus: $(VENV)/test.ready
	$(python) -m tests.fuzz --keep

hpack: COUNT = 1000000
hpack: $(VENV)/test.ready
	$(rust) $(python) -m tests.hpack_differences --count $(COUNT) --seed $(SEED) $(JOBS:%=--jobs %)

h2spec: MODES =
h2spec: $(VENV)/test.ready
	$(python) -m tests.h2spec $(H2SPEC:%=--program %) $(MODES)

# 200 reloads, 40 kills, 50 upgrades and more in each mode, under clients of HTTP/2 over TLS, and without TLS.
operate-http2: MODES = single forking threading gevent
operate-http2: SCALE = full
operate-http2: $(VENV)/lab.ready
	$(python) -m loadtests operate reload upgrade kill recycle stop --$(SCALE) $(LAB) \
		--servers "$$(printf ',poorhttp %s h2' $(MODES) | cut -c2-)"

# Reading the cases needs the file system, which Miri hides by default. The tests that feed every case octet by octet
# are left out: they take a second, and an interpreter takes hours.
miri: $(VENV)/venv.ready
	$(rust) rustup toolchain install nightly --profile minimal --component miri,rust-src
	for tests in "--lib" "--test protocol -- head:: answers::"; do \
	    MIRIFLAGS=-Zmiri-disable-isolation $(rust) cargo +nightly miri test --quiet --manifest-path core/Cargo.toml \
	        --target-dir core/target/miri -p poorhttp-http $$tests || exit 1; done

# In a clone, because the case files are outside of the workspace. Needs `cargo install cargo-mutants`.
mutants:
	rm -rf build/mutants && git clone -q . build/mutants
	cd build/mutants/core && nice cargo mutants --in-place -p poorhttp-http

mutants-python:
	rm -rf build/mutants-python && git clone -q . build/mutants-python
	$(MAKE) -C build/mutants-python $(VENV)/test.ready
	cd build/mutants-python && $(rust) $(VENV)/bin/python -m tests.mutants --seed $(SEED) --count $(COUNT) --first $(FIRST)

wheels: $(VENV)/wheels.ready
	PATH="$(abspath $(VENV))/bin:$$PATH" $(rust) $(python) core/wheels.py $(WHEELS)

sdist: $(VENV)/wheels.ready
	$(rust) $(python) -m build --sdist --no-isolation
	$(python) -m twine check --strict dist/*.tar.gz

lab-wheel: $(VENV)/venv.ready
	$(python) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./loadtests

clean:
	rm -rf .venv .nox build dist *.egg-info core/target
	rm -rf .mypy_cache .pytest_cache .ruff_cache poorhttp/_core.*.so poorhttp/plugins/*/_*.so
	find . -name __pycache__ -prune -exec rm -rf {} +

# Set-up. An empty file stands for each step that is done.

$(VENV)/venv.ready: core/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here. Install Python 3.10 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) tests/packages.py build || true
	@$(PYTHON) core/bootstrap.py venv $(VENV)
	@touch $@

# An installation from when the distribution had the name of another project, `poorhttp`, goes first: pip would delete
# the command, which is both theirs, when it went later.
$(VENV)/run.ready: $(VENV)/venv.ready setup.cfg pyproject.toml $(sources)
	@$(python) -m pip --quiet uninstall --yes poorhttp 2>/dev/null
	$(install) --editable .
	@touch $@ $(if $(built),,$(all))

# Perhaps they have just been made together with the one that every server loads.
$(all): $(VENV)/run.ready
	@[ -e $@ -a ! $@ -ot $< ] || CORE_BUILD_MODULES= $(python) core/bootstrap.py install --editable .
	@touch $@

$(VENV)/test.ready: setup.cfg | $(all)
	$(tools) gevent uvloop test lab docs
	@touch $@

$(VENV)/lint.ready: setup.cfg | $(VENV)/run.ready
	$(tools) lint
	@touch $@

$(VENV)/docs.ready: setup.cfg | $(VENV)/run.ready
	$(tools) docs
	@touch $@

# What tests and lint need from pip, without the source: .ci/run has it fetched while the source is compiled.
fetch: $(VENV)/venv.ready
	$(tools) gevent uvloop test lab docs lint
	@touch $(VENV)/test.ready $(VENV)/lint.ready

# Only its tools: the source is not built for this machine.
$(VENV)/wheels.ready: setup.cfg | $(VENV)/venv.ready
	$(tools) wheels
	@touch $@

$(VENV)/lab.ready: setup.cfg | $(all)
	$(tools) dev gevent pages lab
	@touch $@

$(VENV)/peers.ready: loadtests/servers/peers.txt | $(VENV)/lab.ready
	$(python) -m loadtests peers
	@touch $@
