"""Operating-system processes: privileges, forks, signals, the PID file, and channels between them.

privileges.py         user, groups and umask
safe_open.py          opens files in folders that other users may write
pidfile.py            the PID file
signals.py            the signals that are handled; the C module of `signal`
fork.py               forks, and ends a process with its parent
threads.py            threads that stay threads if the application replaces `threading`
unpatched.py          functions that wait, as they were before the application replaced them
worker_context.py     what a worker gets from the main process
control_channel.py    messages between the main process and a worker
c_socket.py           the C module of `socket`
fd_passing.py         file descriptors over a Unix socket
own_files.py          modules of the server that are imported later, as they were at the start
shared_imports.py     modules that workers share, because the main process imports them too
standard_streams.py   opens descriptors 0 to 2 that are closed
terminal_modes.py     restores the terminal that a debugger has left without echo
orphans.py            reaps orphans as process 1, and waits for the process that serves
exit_status.py        how child processes have ended
"""
