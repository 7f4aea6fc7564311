"""Django: the static files of its applications, and `manage.py dev`.

wsgi.py           the default application, for a project that names none
static_files.py   serves static files without `collectstatic`
collected.py      static files of a project in production, as `collectstatic` has collected them
apps.py           Django's application configuration of this package
management/       the command `manage.py dev`

As an entry of INSTALLED_APPS, `poorhttp.frameworks.django` adds that command and nothing else.
"""
