"""Watches the project's files, in a process of its own, and reports changes.

project.py           which files belong to the project, and which of them matter
glob_pattern.py      patterns of `reload_include` and `reload_exclude`
watcher.py           starts the watching process and reads its reports, in the main process
watcher_process.py   the watching process: its loop, with inotify
snapshot.py          state of the watched files, to find changes by comparison
filesystems.py       file systems that inotify does not cover, and the limits of inotify
"""
