"""Zope with its object database: the management pages in a browser, scripts, XML-RPC, WebDAV."""

from __future__ import annotations

import xmlrpc.client
from pathlib import Path

from tests.programs.running.application import Application, Steps


class Zope(Application):
    requirements = ("Zope[wsgi]==6.3", "Products.PythonScripts==5.3.1", "MechanicalSoup==1.4.0")
    wsgi = """
from paste.deploy import loadapp
application = loadapp("config:instance/etc/zope.ini", relative_to=".")
"""
    # One process has the database open.
    workers = 1

    def prepare(self) -> None:
        self.run("mkwsgiinstance", "-d", "instance", "-u", "admin:secret")
        with Path("instance/etc/zope.conf").open("a") as configuration:
            configuration.write("enable-xmlrpc on\n")

    def command(self) -> list[str]:
        """Ours reads the ini file itself."""
        words = super().command()
        if self.server != self.reference:
            words[words.index(self.target)] = "paste:instance/etc/zope.ini"
        return words

    def drive(self) -> Steps:
        import mechanicalsoup

        browser = mechanicalsoup.StatefulBrowser(raise_on_404=True)
        visit = browser.session
        yield "without a password", visit.get(f"{self.url}/manage_main").status_code
        visit.auth = ("admin", "secret")
        browser.open(f"{self.url}/manage_main")
        yield "management", browser.page.title.text.split()
        factories = f"{self.url}/manage_addProduct"
        browser.open(f"{factories}/OFSP/folderAdd")
        browser.select_form('form[action="manage_addFolder"]')
        browser["id"], browser["title"] = "folder", "Übersicht"
        browser.submit_selected()
        upload = Path("picture.bin")
        upload.write_bytes(bytes(range(256)) * 5_000)
        browser.open(f"{self.url}/folder/manage_addProduct/OFSP/fileAdd")
        browser.select_form('form[enctype="multipart/form-data"]')
        browser["id"] = "picture"
        with upload.open("rb") as file:
            browser["file"] = file
            browser.submit_selected()
        picture = f"{self.url}/folder/picture"
        content = visit.get(picture).content
        yield "upload", [len(content), content == upload.read_bytes()]
        for name, ranges in ("range", "bytes=1000-1999"), ("ranges", "bytes=0-9,-10"):
            seen = visit.get(picture, headers={"Range": ranges})
            length = seen.headers["Content-Length"]
            yield name, [seen.status_code, length, seen.content.count(bytes(range(246, 256)))]
        changed = visit.get(picture).headers["Last-Modified"]
        unchanged = visit.get(picture, headers={"If-Modified-Since": changed})
        yield "unchanged", [unchanged.status_code, unchanged.content.decode()]
        head = visit.head(picture)
        yield "head", [head.status_code, head.headers["Content-Length"], len(head.content)]
        yield "missing", visit.get(f"{self.url}/nothing").status_code

        add = f"{factories}/PythonScripts/manage_addPythonScript"
        visit.post(add, {"id": "double"})
        change = {"params": "text", "body": "return text + text", "title": ""}
        visit.post(f"{self.url}/double/ZPythonScriptHTML_editAction", change)
        yield "script", visit.get(f"{self.url}/double", params={"text": "ä&"}).text
        with xmlrpc.client.ServerProxy(f"{self.url}/") as rpc:
            yield "XML-RPC", rpc.double("✓" * 50_000) == "✓" * 100_000

        # Of other types, Zope needs a body that can be read again, which gunicorn does not give.
        note = f"{self.url}/folder/note.html"
        kind = {"Content-Type": "text/html"}
        yield "WebDAV put", visit.put(note, data="<p>a note</p>", headers=kind).status_code
        listed = visit.request("PROPFIND", f"{self.url}/folder", headers={"Depth": "1"})
        yield "WebDAV list", [listed.status_code, listed.text.count("<d:href>")]
        to = {"Destination": f"{self.url}/folder/moved.html"}
        yield "WebDAV move", visit.request("MOVE", note, headers=to).status_code
        yield "WebDAV delete", visit.delete(to["Destination"]).status_code
        yield "options", visit.options(note).headers["Allow"]
