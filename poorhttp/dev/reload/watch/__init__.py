"""Notices that files of the project have changed.

project.py           which files belong to the project, and which of them matter
glob_pattern.py      `reload_include` and `reload_exclude`
watcher.py           the watching process, as the main process sees it
watcher_process.py   its loop, with inotify
snapshot.py          files as they were seen last
filesystems.py       where inotify tells nothing, and its limits
"""
