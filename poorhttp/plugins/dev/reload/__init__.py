"""Reload on save: a new version of the application replaces the one that serves.

reloader.py         in the main process: starts a version after each save
shared_state.py     state that all versions share
named.py            the file, folder or module that a target names
watch/              reports which files of the project have changed
spawner.py          forks the workers of one version, loads the application in them, wraps it
fork_server.py      process that has imported the libraries and is forked for each version
preimport/          imports libraries in the fork server
preforked.py        process that is forked before it is needed
own_writes.py       recognises files that the application writes itself
pyc_loader.py       imports the project's modules, never from a stale `.pyc`
import_tracker.py   reports modules that requests import
named.py            the file, folder or module that a target names
stack_dump.py       shows the line at which a slow version is
"""
