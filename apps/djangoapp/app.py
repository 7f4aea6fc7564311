"""A small Django application in one file: a page, a form, JSON, and its own page for 404."""

from __future__ import annotations

import json
import os
import secrets

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

settings.configure(
    # Several processes or a restart would each make up another one; then it has to be given.
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY") or secrets.token_urlsafe(32),
    ALLOWED_HOSTS=["localhost", "127.0.0.1", "[::1]", "testserver"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    USE_TZ=True,
)
django.setup()


def hello(request: HttpRequest, name: str = "world") -> HttpResponse:
    """Greet, and ask for another name."""
    return HttpResponse(
        format_html(
            "<!doctype html>\n<title>Greetings</title>\n<h1>Hello, {}!</h1>\n"
            '<form method="post" action="{}">\n'
            '<input name="name" aria-label="name"> <button>Greet</button>\n</form>\n',
            name,
            reverse("greet"),
        )
    )


def greet(request: HttpRequest) -> HttpResponse:
    """Go to the page of the name that was sent."""
    target = HttpResponseRedirect(reverse("hello", args=[request.POST["name"] or "nobody"]))
    target.status_code = 303
    return target


def total(request: HttpRequest) -> HttpResponse:
    """Add up `{"numbers": [...]}`."""
    return JsonResponse({"sum": sum(json.loads(request.body)["numbers"])})


def lost(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say so politely."""
    return HttpResponse(
        "<!doctype html>\n<title>Not here</title>\n<h1>Nobody of that name</h1>\n", status=404
    )


urlpatterns = [
    path("", require_safe(hello)),
    path("hello/<str:name>", require_safe(hello), name="hello"),
    path("greet", require_POST(greet), name="greet"),
    path("sum", require_POST(total)),
]
handler404 = lost

application = get_wsgi_application()
