"""DokuWiki by php-cgi, compared with lighttpd: a browser with forms and uploads, XML-RPC, feeds."""

from __future__ import annotations

import hashlib
import shutil
import xmlrpc.client
from pathlib import Path
from typing import Any

from tests.programs.running.application import Application, Steps

LIGHTTPD = """
server.modules = ("mod_access", "mod_cgi")
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{folder}/wiki"
cgi.assign = (".php" => "/usr/bin/php-cgi")
mimetype.assign = (".gif" => "image/gif", ".png" => "image/png")
"""

SETTINGS = """<?php
$conf['savedir'] = '{folder}/data';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['remote'] = 1;
$conf['remoteuser'] = '';
$conf['updatecheck'] = 0;
$conf['send404'] = 1;
$conf['allowdebug'] = 1;
"""

FOLDERS = "pages attic media media_attic media_meta meta cache index locks tmp log"


class Dokuwiki(Application):
    requirements = ("MechanicalSoup==1.4.0",)
    needs = ("/usr/share/dokuwiki/doku.php", "php-cgi", "lighttpd")
    target = "cgi:wiki"
    options = (
        *("--cgi-pass-authorization", "--static", "/lib/images=wiki/lib/images"),
        *("--static", "/lib/tpl/dokuwiki/images=wiki/lib/tpl/dokuwiki/images"),
    )
    reference = "lighttpd"
    path = "/doku.php"

    def prepare(self) -> None:
        folder = Path.cwd()
        shutil.copytree("/usr/share/dokuwiki", "wiki")
        # Its links lead to what only the web server's user may read.
        shutil.copytree("/etc/dokuwiki", "conf", ignore=shutil.ignore_patterns("*.auth.php"))
        Path("conf/local.php").write_text(SETTINGS.format(folder=folder))
        password = hashlib.md5(b"secret").hexdigest()
        Path("conf/users.auth.php").write_text(f"admin:{password}:Admin:a@example.org:admin,user\n")
        Path("conf/acl.auth.php").write_text("* @ALL 1\n* @user 16\n")
        Path("wiki/inc/preload.php").write_text(f"<?php define('DOKU_CONF', '{folder}/conf/');\n")
        for name in FOLDERS.split():
            Path("data", name).mkdir(parents=True)
        for script in [*Path("wiki").glob("*.php"), *Path("wiki/lib/exe").glob("*.php")]:
            script.write_bytes(b"#!/usr/bin/php-cgi\n" + script.read_bytes())
            script.chmod(0o755)
        port = self.url.rpartition(":")[2]
        Path("lighttpd.conf").write_text(LIGHTTPD.format(port=port, folder=folder))

    def command(self) -> list[str]:
        if self.server == self.reference:
            return ["lighttpd", "-D", "-f", "lighttpd.conf"]
        return super().command()

    def drive(self) -> Steps:
        import mechanicalsoup

        wiki = f"{self.url}/doku.php"
        browser = mechanicalsoup.StatefulBrowser(raise_on_404=False)
        visit = browser.session
        browser.open(wiki)
        yield "empty", [browser.page.title.text.split(), sorted(visit.cookies.keys())]
        browser.open(wiki, params={"id": "start", "do": "login"})
        browser.select_form("form#dw__login")
        browser["u"], browser["p"] = "admin", "secret"
        browser.submit_selected()
        yield "login", browser.page.find(class_="user").text.split()
        browser.open(wiki, params={"id": "käse", "do": "edit"})
        browser.select_form("form#dw__editform")
        browser["wikitext"] = "====== Käse ======\n" + "**wide** ✓ [[start]] ''&amp;''\n\n" * 3_000
        browser.submit_selected("do[save]")
        bold = browser.page.find_all("strong")
        yield "page", [browser.url[len(self.url) :], browser.page.title.text.split(), len(bold)]
        raw = visit.get(wiki, params={"id": "käse", "do": "export_raw"})
        yield "raw", [raw.headers["Content-Type"], hashlib.sha256(raw.content).hexdigest()]
        # The page asks for this, without `debug`, whose response comes after the work is done.
        visit.get(f"{self.url}/lib/exe/taskrunner.php", params={"id": "kaese", "debug": "1"})
        browser.open(wiki, params={"id": "start", "do": "search", "q": "wide"})
        found = browser.page.find(class_="search_fullpage_result")
        yield "search", found.dt.text.split()
        yield "missing", visit.get(wiki, params={"id": "nothing"}).status_code

        picture = Path("wiki/lib/images/throbber.gif").read_bytes() * 300
        address = self.url.replace("//", "//admin:secret@") + "/lib/exe/xmlrpc.php"
        rpc: Any = xmlrpc.client.ServerProxy(address)
        yield "XML-RPC", rpc.dokuwiki.getTitle()
        rpc.wiki.putAttachment("a:picture.gif", xmlrpc.client.Binary(picture), {"ow": True})
        fetched = visit.get(f"{self.url}/lib/exe/fetch.php", params={"media": "a:picture.gif"})
        kind = fetched.headers["Content-Type"]
        yield "media", [fetched.status_code, kind, fetched.content == picture]
        wanted = {"Range": "bytes=100-199"}
        part = visit.get(fetched.url, headers=wanted)
        yield "range", [part.status_code, part.content == picture[100:200]]
        unchanged = {"If-None-Match": fetched.headers["ETag"]}
        yield "unchanged", visit.get(fetched.url, headers=unchanged).status_code
        for path in ("lib/exe/css.php", "lib/exe/js.php", "lib/images/throbber.gif", "feed.php"):
            seen = visit.get(f"{self.url}/{path}")
            # lighttpd makes `text/javascript` of `application/javascript`.
            kind = seen.headers["Content-Type"].partition("/")[2]
            yield path, [seen.status_code, kind, len(seen.content) > 0]
