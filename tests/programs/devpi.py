"""devpi, an index of Python packages: the command `devpi` uploads, pip installs."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.programs.running.application import Application, Steps

METADATA = "Metadata-Version: 2.1\nName: greeting\nVersion: {}\nRequires-Python: >=3.8\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class Devpi(Application):
    requirements = ("devpi-server==6.20.3", "devpi-client==7.3.0")
    wsgi = """
from devpi_server.config import get_pluginmanager, parseoptions
from devpi_server.main import xom_from_config

words = ["devpi-server", "--serverdir", "server", "--offline-mode"]
server = xom_from_config(parseoptions(get_pluginmanager(), words))
application = server.create_app()
server.thread_pool.start()
"""
    # It keeps the state of its database in its memory.
    workers = 1
    environ = ("PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_CONFIG_FILE=/dev/null")
    path = "/+api"

    def prepare(self) -> None:
        self.run("devpi-init", "--serverdir", "server", "--no-root-pypi")
        for version in ("1.0", "1.1"):
            self._write_wheel(version)

    def _write_wheel(self, version: str) -> None:
        with zipfile.ZipFile(f"greeting-{version}-py3-none-any.whl", "w") as wheel:
            # More than a buffer has.
            wheel.writestr("greeting.py", f"VERSION = '{version}'\n" + "# more\n" * 400_000)
            info = f"greeting-{version}.dist-info"
            wheel.writestr(f"{info}/METADATA", METADATA.format(version))
            wheel.writestr(f"{info}/WHEEL", WHEEL)
            names = ("greeting.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
            wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))

    def drive(self) -> Steps:
        index = f"{self.url}/ann/dev/+simple/"
        self.run("devpi", "use", self.url)
        self.run("devpi", "login", "root", "--password", "")
        yield "user", self.run("devpi", "user", "-c", "ann", "password=secret").splitlines()
        self.run("devpi", "login", "ann", "--password", "secret")
        self.run("devpi", "index", "-c", "dev", "bases=", "volatile=True")
        self.run("devpi", "index", "-c", "prod", "bases=", "volatile=False")
        self.run("devpi", "use", "ann/dev")
        wheels = sorted(str(path) for path in Path().glob("*.whl"))
        uploaded = self.run("devpi", "upload", *wheels)
        yield "upload", [uploaded.count("file_upload of"), uploaded.count("200")]
        yield "list", self._local(self.run("devpi", "list", "--all", "greeting"))
        pip = ("python", "-m", "pip", "-q", "--isolated", "install", "-i", index)
        self.run(*pip, "--target", "newest", "greeting")
        yield "pip installs the newest", Path("newest/greeting.py").read_text()[:20]
        self.run(*pip, "--target", "first", "greeting==1.0")
        yield "pip installs a version", Path("first/greeting.py").read_text()[:20]
        try:
            self.run(*pip, "--target", "other", "nothing-of-this-name")
        except AssertionError as error:
            yield "pip finds nothing", "No matching distribution" in str(error)
        yield "push", self._local(self.run("devpi", "push", "greeting==1.0", "ann/prod"))

    def _local(self, text: str) -> list[str]:
        """The lines of an output, without the server's address."""
        return text.replace(self.url, "").splitlines()
