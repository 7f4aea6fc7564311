"""Trac, a wiki and issue tracker: a browser with forms, uploads, attachments in archives, feeds."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path

from tests.programs.running.application import Application, Steps


class Trac(Application):
    # Trac needs `pkg_resources`, which later versions of setuptools do not have.
    requirements = ("Trac==1.6", "setuptools==80.9.0", "MechanicalSoup==1.4.0")
    wsgi = """
import trac.web.main
from trac.web.auth import BasicAuthentication
from trac.web.standalone import AuthenticationMiddleware

passwords = BasicAuthentication("passwords", "trac")
application = AuthenticationMiddleware(trac.web.main.dispatch_request, {"*": passwords}, "trac")
"""
    environ = ("TRAC_ENV=trac",)

    def prepare(self) -> None:
        digest = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
        Path("passwords").write_text(f"admin:{{SHA}}{digest}\n")
        self.run("trac-admin", "trac", "initenv", "Ours", "sqlite:db/trac.db?timeout=120000")
        self.run("trac-admin", "trac", "permission", "add", "admin", "TRAC_ADMIN")
        self.run("trac-admin", "trac", "config", "set", "trac", "base_url", self.url)
        self.run("trac-admin", "trac", "config", "set", "attachment", "max_size", "2000000")

    def drive(self) -> Steps:
        import mechanicalsoup

        browser = mechanicalsoup.StatefulBrowser(raise_on_404=True)
        visit = browser.session
        yield "without a password", visit.get(f"{self.url}/login").status_code
        visit.auth = ("admin", "secret")
        browser.open(f"{self.url}/login")
        visit.auth = None
        yield "login", [browser.url[len(self.url) :], browser.page.find(class_="first").text]
        browser.open(f"{self.url}/wiki/Käse?action=edit")
        browser.select_form("form#edit")
        browser["text"] = "= Käse =\n\n" + "'''wide''' ✓ [wiki:WikiStart start]\n" * 400
        browser.submit_selected("save")
        page = browser.page.find(id="wikipage")
        yield "wiki", [len(page.find_all("strong")), hashlib.sha256(page.encode()).hexdigest()]
        upload = Path("picture.bin")
        upload.write_bytes(bytes(range(256)) * 5_000)
        browser.open(f"{self.url}/attachment/wiki/Käse/?action=new")
        browser.select_form("form#attachment")
        with upload.open("rb") as file:
            browser["attachment"] = file
            browser.submit_selected()
        content = visit.get(f"{self.url}/raw-attachment/wiki/Käse/picture.bin").content
        yield "attachment", [content == upload.read_bytes(), len(content)]
        archive = visit.get(f"{self.url}/zip-attachment/wiki/Käse/").content
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            yield "archive of attachments", [zipped.testzip(), zipped.namelist()]
        browser.open(f"{self.url}/newticket")
        browser.select_form("form#propertyform")
        browser["field_summary"], browser["field_description"] = "Überschrift", "text"
        browser.submit_selected("submit")
        yield "ticket", [browser.url[len(self.url) :], browser.page.find(class_="summary").text]
        browser.open(f"{self.url}/ticket/1")
        browser.select_form("form#propertyform")
        browser["comment"] = "one\n" * 20_000
        browser.submit_selected("submit")
        yield "comment", len(browser.page.find(class_="comment").text.split())
        for name, path in (
            ("feed", "/timeline?format=rss&ticket=on&wiki=on"),
            ("list", "/query?status=new&format=csv&col=id&col=summary"),
            ("style", "/chrome/common/css/trac.css"),
            ("missing", "/wiki/Nothing?version=7"),
        ):
            seen = visit.get(f"{self.url}{path}")
            kind = seen.headers["Content-Type"]
            yield name, [seen.status_code, kind, len(seen.text.splitlines())]
        style = visit.get(f"{self.url}/chrome/common/css/trac.css")
        unchanged = {"If-Modified-Since": style.headers["Last-Modified"]}
        yield "unchanged", visit.get(style.url, headers=unchanged).status_code
