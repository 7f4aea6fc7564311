"""The whole test suite under every Python that is found: `make test-all`."""

import nox

nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "venv"


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Build the core for this interpreter, then run the tests: `nox -- ARGUMENT ...` of these."""
    session.install("setuptools>=77", "setuptools-rust>=1.10")
    pip = ("python", "-m", "pip", "install", "--quiet", "--no-build-isolation")
    extras = ".[gevent,uvloop,test,lab]"
    session.run("python", "core/bootstrap.py", "run", *pip, "--editable", extras)
    session.run("python", "core/bootstrap.py", "run", "python", "-m", "tests", *session.posargs)
