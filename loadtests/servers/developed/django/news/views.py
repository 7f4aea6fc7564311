"""Views of a Django project that the study `develop` edits."""

import time

from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from news import texts

VERSION = "000000"


@csrf_exempt
def index(request):
    if request.path == "/slow":
        time.sleep(0.05)
    return HttpResponse(texts.text(VERSION, len(request.body)), content_type="text/plain")
