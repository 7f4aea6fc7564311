"""Database tables of a Django project that the study `develop` edits."""

from django.db import models


class Article(models.Model):
    title = models.CharField(max_length=200)
    written = models.DateTimeField(auto_now_add=True)
