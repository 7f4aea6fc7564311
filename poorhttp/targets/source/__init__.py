"""Reading an application's source without running it.

python.py    what a Python file defines, and which files it imports
django.py    the settings and the application of a Django project, from its `manage.py`
"""
