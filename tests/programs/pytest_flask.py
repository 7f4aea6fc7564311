"""The live server of pytest-flask: its own tests, with its own server and with ours."""

from __future__ import annotations

from pathlib import Path

from tests.programs.running.application import Application, Steps

#: The server of the setting `poorhttp_live_server`: it runs in the process of the tests.
OURS = ("-p", "poorhttp.plugins.testing.pytest_plugin", "-o", "poorhttp_live_server=true")

#: Tests of the process in which pytest-flask's own server runs: its private attributes, how long it
#: may take to start, how it is ended.
PROCESS = (
    *("test_server_is_alive", "test_start_live_server", "test_respect_wait_timeout"),
    *("test_clean_stop_live_server", "test_stop_cleanly_join_exception"),
)


class PytestFlask(Application):
    requirements = ("pytest-flask==1.3.0", "flask==3.1.3", "pytest==9.2.0")
    sources = ("pytest-flask==1.3.0",)
    target = ""
    reference = "its own"
    modes = ("threading",)

    def drive(self) -> Steps:
        tests = self.source("pytest-flask") / "tests"
        words = ["python", "-m", "pytest", "-p", "no:cacheprovider", str(tests)]
        words += ["--junit-xml", "report.xml", "-k", f"not {' and not '.join(PROCESS)}"]
        self.run(*words, *(OURS if self.server != self.reference else ()), cwd=Path.cwd())
        yield from self.report()
