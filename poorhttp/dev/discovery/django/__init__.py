"""Django: the static files of its applications, and `manage.py dev`.

wsgi.py           the application of a project that names none
static_files.py   static files without `collectstatic`
apps.py           what Django is told of this package
management/       the command `manage.py dev`

As an entry of INSTALLED_APPS, `poorhttp.frameworks.django` adds that command and nothing else.
"""
