"""Django views for all kinds of forms and responses: files, streams."""

from __future__ import annotations

from collections.abc import Iterator

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

settings.configure(
    SECRET_KEY="only for tests",
    ALLOWED_HOSTS=["test"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    USE_TZ=True,
    # So small that the larger of the test's files is kept on disk.
    FILE_UPLOAD_MAX_MEMORY_SIZE=65_536,
)
django.setup()


@csrf_exempt
def form(request: HttpRequest) -> HttpResponse:
    """The fields of a form and the files sent with it."""
    files = {
        name: [file.name, file.content_type, file.read().decode("latin-1")]
        for name, file in request.FILES.items()
    }
    return JsonResponse({"fields": dict(request.POST.lists()), "files": files})


def stream(request: HttpRequest) -> StreamingHttpResponse:
    def pieces() -> Iterator[str]:
        for number in range(1_000):
            yield f"{number} {request.path}\n"

    return StreamingHttpResponse(pieces(), content_type="text/plain")


def url(request: HttpRequest) -> HttpResponse:
    """The address that the framework puts together from the environ."""
    return JsonResponse(
        {"url": request.build_absolute_uri(), "remote": request.META["REMOTE_ADDR"]}
    )


urlpatterns = [path("form", form), path("stream", stream), path("url", url)]

application = get_wsgi_application()
