"""The live server of pytest-django: its own tests, with its own server and with ours."""

from __future__ import annotations

from pathlib import Path

from tests.programs.running.application import Application, Steps

#: The server of the setting `poorhttp_live_server`: it runs in the process of the tests.
OURS = ("-p", "poorhttp.plugins.testing.pytest_plugin", "-o", "poorhttp_live_server=true")


class PytestDjango(Application):
    requirements = ("pytest-django==4.14.0", "django==5.2.19", "pytest==9.2.0")
    sources = ("pytest-django==4.14.0",)
    target = ""
    reference = "its own"
    modes = ("threading",)

    def drive(self) -> Steps:
        tests = self.source("pytest-django") / "tests" / "test_fixtures.py"
        words = ["python", "-m", "pytest", "-p", "no:cacheprovider", str(tests)]
        words += ["--junit-xml", "report.xml"]
        self.run(*words, *(OURS if self.server != self.reference else ()), cwd=Path.cwd())
        yield from self.report()
