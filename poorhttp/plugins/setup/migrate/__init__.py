"""The command `poorhttp migrate`: writes an ini file from the configuration of another server.

command.py             the command: its arguments, its output and the exit code
sources.py             finds out what a file is, and reads it
source_files.py        opens files, also as root in folders of other users
environment.py         decides which variables a configuration may see
gunicorn_file.py       reads gunicorn.conf.py, with the help of a process without rights
sandbox.py             that process: what it gives up, and in which order
landlock.py            files that it may read
seccomp.py             system calls that it may make
statements.py          runs the file statement by statement, and tells what each has set
uwsgi_file.py          reads uwsgi.ini, and the same as YAML, XML or JSON
uwsgi_application.py   finds out which of `module` and `wsgi-file` uWSGI serves
command_lines.py       reads the command line of a server, as words or in a shell's line
containers.py          finds the command line in a Procfile, a systemd unit, a Dockerfile, a script
server_flags.py        the flags of other servers, and the settings that they stand for
equivalents/           what the settings of each server become
"""
