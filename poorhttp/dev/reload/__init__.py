"""A new generation of the application serves when a file of the project was saved.

reloader.py         in the main process: one generation follows another
shared_state.py     what all generations share
watch/              notices that files have changed
spawner.py          forks the processes of a generation
fork_server.py      a process that has imported libraries, and is forked for each generation
preimport/          what the fork server imports
preforked.py        a process that is forked in advance
generation.py       a worker of a generation, to its first request
pyc_loader.py       imports the project, never from a stale `.pyc`
application.py      what is put around the application
import_tracker.py   what the first requests have imported
stack_dump.py       where a generation is that loads for long
"""
