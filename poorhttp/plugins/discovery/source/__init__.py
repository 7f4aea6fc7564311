"""Reads an application's source without running it.

named.py     file, folder or module that a target names
python.py    names that a Python file defines, and files that it imports
django.py    settings module and application of a Django project
"""
