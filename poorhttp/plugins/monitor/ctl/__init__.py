"""The command `poorhttp ctl`: shows and controls a running server at its address `admin`.

commands.py     what it does, and its exit codes
arguments.py    its command line and `--help`
completion.py   its words for the completion of shells
find.py         the address of a server, by option, file, pidfile or its processes
client.py       HTTP to that address
shape.py        shapes of its answers: others come from other programs, or other versions
tables.py       tables and texts, safe for terminals
top.py          `poorhttp top`, a live view in a terminal
top_tables.py   its tables
"""

from poorhttp.plugins.monitor.ctl.commands import main

__all__ = ["main"]
