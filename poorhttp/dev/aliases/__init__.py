"""Modules under the names that they had before, for what users have written into files.

`poorhttp/__init__.py` adds this folder to the path on which submodules of `poorhttp` are found.

frameworks/    `poorhttp.frameworks.django`, an entry of Django's INSTALLED_APPS
"""
