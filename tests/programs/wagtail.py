"""The content management system Wagtail: a new site, its administration by forms and uploads."""

from __future__ import annotations

import hashlib
import io
import os
import re
from typing import Any

from tests.programs.running.application import Application, Steps

#: Fields of the form that creates a page, beside those that a step fills in.
FORM = {
    "seo_title": "",
    "search_description": "",
    "go_live_at": "",
    "expire_at": "",
    "comments-TOTAL_FORMS": "0",
    "comments-INITIAL_FORMS": "0",
    "comments-MIN_NUM_FORMS": "0",
    "comments-MAX_NUM_FORMS": "",
    "action-publish": "action-publish",
}


class Wagtail(Application):
    requirements = ("wagtail==8.0.1", "requests==2.34.2")
    target = "shop.wsgi:application"

    def prepare(self) -> None:
        self.run("wagtail", "start", "shop", ".")
        self.run("python", "manage.py", "migrate")
        os.environ["DJANGO_SUPERUSER_PASSWORD"] = "a long secret"
        words = ("createsuperuser", "--noinput", "--username", "ann", "--email", "a@shop.example")
        self.run("python", "manage.py", *words)

    def drive(self) -> Steps:
        import requests
        from PIL import Image

        browser = requests.Session()

        def submit(form: str, fields: dict[str, str], **more: Any) -> requests.Response:
            """Fill in a form of a page, and send it."""
            page = browser.get(self.url + form).text
            found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
            assert found, page
            data = {"csrfmiddlewaretoken": found[1], **fields}
            return browser.post(self.url + form, data=data, allow_redirects=False, **more)

        yield "home", seen(browser.get(self.url))
        denied = browser.get(f"{self.url}/admin/", allow_redirects=False)
        yield "administration without a login", [denied.status_code, denied.headers["Location"]]
        user = {"username": "ann", "password": "a long secret", "next": "/admin/"}
        login = submit("/admin/login/", user)
        yield "login", [login.status_code, login.headers["Location"]]
        administration = browser.get(f"{self.url}/admin/")
        yield "administration", seen(administration)
        # More than a megabyte, in pieces of `wsgi.file_wrapper`.
        for path in sorted(set(re.findall(r'"(/static/[^"?]+\.(?:js|css))', administration.text))):
            file = browser.get(self.url + path)
            yield path, [file.status_code, file.headers["Content-Type"], digest(file)]
        unchanged = {"If-Modified-Since": file.headers["Last-Modified"]}
        yield "unchanged", browser.get(file.url, headers=unchanged).status_code
        add = "/admin/pages/add/home/homepage/3/"
        created = submit(add, {**FORM, "title": "Käse & Brot", "slug": "bread"})
        yield "publish", [created.status_code, created.headers["Location"]]
        yield "page", seen(browser.get(f"{self.url}/bread/"))
        slash = browser.get(f"{self.url}/bread", allow_redirects=False)
        yield "page without a slash", [slash.status_code, slash.headers["Location"]]

        picture = io.BytesIO()
        Image.linear_gradient("L").resize((2000, 1500)).save(picture, "PNG", compress_level=0)
        upload = {"files[]": ("gradient.png", picture.getvalue(), "image/png")}
        titled = {"title": "Gradient", "collection": "1"}
        ajax = {"X-Requested-With": "XMLHttpRequest"}
        answer = submit("/admin/images/multiple/add/", titled, files=upload, headers=ajax).json()
        yield "upload", [len(picture.getvalue()), answer["success"], answer["image_id"]]
        images = browser.get(f"{self.url}/admin/images/").text
        for path in sorted(set(re.findall(r'src="(/media/[^"]+)', images))):
            yield path, [browser.get(self.url + path).headers["Content-Type"], path]
        document = {"file": ("notes.txt", b"notes\n" * 100_000, "text/plain")}
        kept = submit("/admin/documents/add/", {**titled, "title": "Notes"}, files=document)
        yield "document", [kept.status_code, kept.headers.get("Location")]
        download = browser.get(f"{self.url}/documents/1/notes.txt")
        disposition = download.headers["Content-Disposition"]
        yield "download", [download.status_code, disposition, digest(download)]
        yield "search", seen(browser.get(f"{self.url}/search/?query=Käse"))
        yield "missing", browser.get(f"{self.url}/nothing/").status_code


def digest(answer: Any) -> str:
    """The digest of the content of a response."""
    return hashlib.sha256(answer.content).hexdigest()


def seen(answer: Any) -> list[object]:
    """Status, type, title and headings of a page."""
    text = answer.text
    kind = answer.headers["Content-Type"]
    found = re.findall(r"<(?:title|h1|h2)[^>]*>(.*?)</", text, re.DOTALL)
    return [answer.status_code, kind, [" ".join(each.split()) for each in found]]
