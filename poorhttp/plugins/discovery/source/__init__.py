"""Reads an application's source without running it.

python.py    names that a Python file defines, and files that it imports
django.py    settings module and application of a Django project
"""
