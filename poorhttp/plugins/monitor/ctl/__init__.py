"""The command `poorhttp ctl`: shows and controls a running server at its address `admin`.

commands.py     the subcommands, and exit codes
arguments.py    the command line of `ctl` and its `--help`
completion.py   words of `ctl` and `top` for the completion of shells
find.py         the address of a server, by option, file, pidfile or its processes
client.py       an HTTP client of the address `admin`
shape.py        checks of answers: those of other programs and other versions are refused
tables.py       tables and texts, safe for terminals
top.py          `poorhttp top`, a live view in a terminal
top_tables.py   the tables of `poorhttp top`
"""

from poorhttp.plugins.monitor.ctl.commands import main

__all__ = ["main"]
