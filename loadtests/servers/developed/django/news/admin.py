"""The administration site of a Django project that the study `develop` edits."""

from django.contrib import admin
from news.models import Article

admin.site.register(Article)
