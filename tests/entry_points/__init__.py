"""Ways in for programs and frameworks, through their own tools.

test_paste.py             PasteDeploy: Pyramid's `pserve`, and the target `paste:FILE`
test_django_project.py    `poorhttp serve --django`: the project, its static files, messages
test_pytest_plugin.py     `poorhttp_server`; live servers of pytest-django, pytest-flask, Django
"""
