"""The programs of a folder (RFC 3875), as a WSGI application.

application.py       which program a path means, and its environment
inheritance.py       descriptors and signals that programs do not inherit
program_slots.py     how many programs run at a time
program.py           a running program and its answer
error_responses.py   answers in the place of a program

How a program is found, started, read and ended is the business of `core/cgi`. Nothing of this is
imported by a server that has no programs.
"""
