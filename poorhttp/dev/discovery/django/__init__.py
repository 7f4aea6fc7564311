"""Django: finding a project, its static files, and `manage.py dev`.

As an entry of INSTALLED_APPS, `poorhttp.frameworks.django` adds that command and nothing else.
"""
