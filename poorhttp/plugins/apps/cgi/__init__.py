"""CGI (RFC 3875): runs the programs of a folder.

options.py           the options
target.py            the target `cgi:FOLDER`
application.py       the folder: from a path to a program and its environment
program.py           a run of a program: its output becomes the answer
local_redirect.py    the whole service answers in place of a program
program_slots.py     how many programs run at a time
inheritance.py       descriptors and signals that programs do not inherit
error_responses.py   answers without a program

`core/cgi` finds, starts, reads and ends programs. A server without programs
imports nothing of this.
"""
