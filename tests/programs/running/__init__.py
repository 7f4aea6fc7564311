"""What runs the programs of `tests.programs`, in the order in which work flows.

application.py   Base class: what is installed, configured, started, and done by clients
environment.py   The virtual environment of a program, made once and kept
inside.py        The command that runs a program's own functions under its environment
visit.py         One server with a program, from its start to its end, and what clients saw
report.py        Compares the visits of a program, and prints them
"""
