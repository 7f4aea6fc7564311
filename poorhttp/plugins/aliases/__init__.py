"""Modules under the names of earlier releases, which users have written into their files.

`poorhttp/__init__.py` adds this folder to the path on which submodules of `poorhttp` are found.

dispatch.py       `poorhttp.dispatch`
pages.py          `poorhttp.pages`
frameworks/       `poorhttp.frameworks.django`, an entry of Django's INSTALLED_APPS
logs/             `poorhttp.logs.json_formatter`, in files for `log_config`
dev/              `poorhttp.dev.discovery`, in targets that `poorhttp init` has written
former_names.py   makes a package known under a second name
"""
