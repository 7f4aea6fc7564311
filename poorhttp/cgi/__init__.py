"""The programs of a folder (RFC 3875), as a WSGI application.

    programs.py      a folder of programs: which one a path means, and what it is told
    run.py           a program that runs: what becomes of what it says
    crews.py         who waits for programs, in threads or in greenlets, and for how many at a time
    inheritance.py   what programs shall not have of this process
    refusal.py       answers and lines of the log in the place of a program

How a program is found, started, read and ended is the business of `core/cgi`. Nothing of this is
imported by a server that has no programs.
"""
