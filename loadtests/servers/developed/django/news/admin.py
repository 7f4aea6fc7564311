from django.contrib import admin
from news.models import Article

admin.site.register(Article)
