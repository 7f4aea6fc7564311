"""pgAdmin 4 for several users: login, the main page with its files, events of socket.io."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from tests.programs.running.application import Application, Steps

SETTINGS = """
SERVER_MODE = True
DATA_DIR = {folder!r}
LOG_FILE = DATA_DIR + "/pgadmin4.log"
SQLITE_PATH = DATA_DIR + "/pgadmin4.db"
SESSION_DB_PATH = DATA_DIR + "/sessions"
STORAGE_DIR = DATA_DIR + "/storage"
AZURE_CREDENTIAL_CACHE_DIR = DATA_DIR + "/azure"
KERBEROS_CCACHE_DIR = DATA_DIR + "/kerberos"
MASTER_PASSWORD_REQUIRED = False
UPGRADE_CHECK_ENABLED = False
SHOW_GRAVATAR_IMAGE = False
"""

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36"
USER = {"email": "ann@example.com", "password": "a long secret"}


class Pgadmin(Application):
    requirements = ("pgadmin4==9.18", "requests==2.34.2", "websocket-client==1.9.2")
    # The commands and the application lie in the package, which has to be on the path.
    wsgi = """
import importlib.util
import sys
sys.path.insert(0, importlib.util.find_spec("pgadmin4").submodule_search_locations[0])
from pgAdmin4 import app as application
"""
    # Its configuration lies in the current folder; keys of users lie in its memory.
    environ = ("PYTHONPATH=.", "PGADMIN_SERVER_MODE=ON")
    workers = 1
    path = "/misc/ping"

    def prepare(self) -> None:
        Path("config_local.py").write_text(SETTINGS.format(folder=f"{Path.cwd()}/data"))
        os.environ |= {
            "PYTHONPATH": os.getcwd(),
            "PGADMIN_SETUP_EMAIL": USER["email"],
            "PGADMIN_SETUP_PASSWORD": USER["password"],
        }
        import pgadmin4

        self.run("python", Path(pgadmin4.__path__[0], "setup.py"), "setup-db")

    def drive(self) -> Steps:
        import requests
        import socketio

        browser = requests.Session()
        browser.headers["User-Agent"] = BROWSER

        def login(password: str) -> list[object]:
            page = browser.get(f"{self.url}/login")
            found = re.search(r'"csrfToken": "([^"]+)"', page.text)
            assert found, page.text
            fields = {"csrf_token": found[1], "language": "en", "internal_button": "Login"}
            fields |= {**USER, "password": password}
            to = f"{self.url}/authenticate/login"
            answer = browser.post(to, data=fields, allow_redirects=False)
            return [answer.status_code, answer.headers.get("Location")]

        start = browser.get(self.url, allow_redirects=False)
        yield "start", [start.status_code, start.headers["Location"]]
        yield "ping", browser.get(f"{self.url}/misc/ping").text
        yield "wrong password", login("wrong")
        yield "login", login(USER["password"])
        page = browser.get(f"{self.url}/browser/")
        title = re.findall(r"<title>(.*?)</title>", page.text, re.DOTALL)
        yield "main page", [page.status_code, page.headers["Content-Encoding"], title[0].split()]
        # Some are compressed, and have more than a megabyte.
        for path in sorted(set(re.findall(r'"(/[^"]+\.(?:js|css|png|svg|ico)[^"]*)"', page.text))):
            file = browser.get(self.url + path)
            digest = hashlib.sha256(file.content).hexdigest()
            kinds = [file.headers["Content-Type"], file.headers.get("Content-Encoding")]
            yield path, [file.status_code, kinds, len(file.content), digest]
        unchanged = {"If-None-Match": file.headers["ETag"]}
        yield "unchanged", browser.get(file.url, headers=unchanged).status_code
        script = browser.get(f"{self.url}/browser/js/utils.js")
        yield "script of the main page", [script.status_code, script.headers["Content-Type"]]
        found = re.search(r"""csrf_token'?\]?\s*[:=]\s*['"]([^'"]+)""", script.text)
        assert found, script.text[:2000]
        browser.headers["X-pgA-CSRFToken"] = found[1]
        group = {"name": "Käse ✓"}
        made = browser.post(f"{self.url}/browser/server_group/obj/", json=group)
        yield "new group", [made.status_code, made.json()["node"]["label"]]
        cookies = "; ".join(f"{each.name}={each.value}" for each in browser.cookies)
        for transport in ("polling", "websocket"):
            # One request at a time: what is sent may wait until a poll ends, after 25 s.
            with socketio.SimpleClient(request_timeout=90) as client:
                client.connect(
                    self.url,
                    namespace="/erd",
                    headers={"Cookie": cookies},
                    transports=[transport],
                    wait_timeout=90,
                )
                yield f"events by {transport}", [client.transport, client.receive()[0]]
        logout = browser.get(f"{self.url}/logout", allow_redirects=False)
        yield "logout", [logout.status_code, logout.headers["Location"]]
