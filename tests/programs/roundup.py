"""The issue tracker Roundup: a browser with forms and uploads, XML-RPC, REST."""

from __future__ import annotations

import hashlib
import xmlrpc.client
from pathlib import Path

from tests.programs.running.application import Application, Steps

SETTINGS = (
    "tracker_web={}/,mail_domain=example.org,mail_host=127.0.0.1,mail_debug=mail.log,"
    "rdbms_sqlite_timeout=120"
)


class Roundup(Application):
    requirements = ("roundup==2.6.0", "MechanicalSoup==1.4.0")
    wsgi = """
from roundup.cgi.wsgi_handler import RequestDispatcher
application = RequestDispatcher("tracker")
"""

    def prepare(self) -> None:
        admin = ("roundup-admin", "-i", "tracker")
        self.run(*admin, "install", "classic", "sqlite", SETTINGS.format(self.url))
        self.run(*admin, "initialise", "secret")

    def drive(self) -> Steps:
        import mechanicalsoup
        import requests

        browser = mechanicalsoup.StatefulBrowser(raise_on_404=True)
        browser.open(f"{self.url}/issue?@template=item")
        browser.select_form(nr=2)
        browser["__login_name"], browser["__login_password"] = "admin", "secret"
        browser.submit_selected()
        yield "login", browser.page.find(class_="ok-message").text.split()
        upload = Path("picture.bin")
        upload.write_bytes(bytes(range(256)) * 5_000)
        browser.open(f"{self.url}/issue?@template=item")
        browser.select_form('form[name="itemSynopsis"]')
        browser["title"], browser["priority"] = "Käse & Brot <b>", "3"
        browser["@note"] = "zwei\nZeilen ✓"
        with upload.open("rb") as file:
            browser["@file"] = file
            browser.submit_selected()
        yield "issue created", [browser.page.title.text.split(), browser.url[len(self.url) :][:7]]
        browser.open(f"{self.url}/issue1")
        yield "issue read", browser.page.find(class_="messages").pre.text.split()
        download = browser.session.get(f"{self.url}/file1/picture.bin")
        kind, digest = download.headers["Content-Type"], hashlib.sha256(download.content)
        yield "download", [download.status_code, kind, digest.hexdigest()]
        yield "missing", browser.session.get(f"{self.url}/issue77").status_code

        address = self.url.replace("//", "//admin:secret@") + "/xmlrpc"
        headers = [("X-Requested-With", "XMLHttpRequest")]
        with xmlrpc.client.ServerProxy(address, allow_none=True, headers=headers) as rpc:
            yield "XML-RPC create", rpc.create("issue", "title=by XML-RPC", "nosy=admin")
            yield "XML-RPC list", rpc.list("issue", "title")

        with requests.Session() as session:
            session.auth = ("admin", "secret")
            session.headers.update({"X-Requested-With": "rest", "Origin": self.url})
            issue = f"{self.url}/rest/data/issue/2"
            read = session.get(issue)
            yield "REST read", read.json()["data"]["attributes"]["title"]
            change, of = {"title": "by REST"}, {"If-Match": read.headers["ETag"]}
            written = session.put(issue, json=change, headers=of)
            yield "REST change", [written.status_code, written.json()["data"]["attribute"]]
            again = session.put(issue, json=change, headers=of)
            yield "REST change of an old version", again.status_code
            options = session.options(issue)
            yield "REST options", [options.status_code, options.headers["Allow"]]
