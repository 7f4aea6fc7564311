"""The commands: arguments, files that they write, completion of shells, man pages.

projects.py                 Projects of each kind, for which files are written
test_completion.py          `poorhttp completion`: the Tab key in bash, zsh and fish
test_init.py                `poorhttp init`: what it finds, what it writes, what it leaves alone
test_init_deployed.py       Files of `poorhttp init`, each with the program that it is for
test_known_names.py         Names from other servers: short forms, aliases, variables, advice
test_man.py                 `poorhttp man`: the pages, checked by mandoc
test_migrate.py             `poorhttp migrate`: what becomes of files and command lines
test_migrate_hostile.py     `poorhttp migrate` and files that do harm
test_migrate_sandbox.py    `poorhttp migrate` as root, attacked by those whose files it reads
test_migrate_tables.py      Each name of gunicorn, waitress and uWSGI is known to `poorhttp migrate`
test_migrated_projects.py   Three projects under their old server and ours
"""
