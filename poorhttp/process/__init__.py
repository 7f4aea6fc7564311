"""What every process of the server has to do with the system and with its relatives.

privileges.py        user, groups and umask
safe_open.py         opens files in folders that others may write
pidfile.py           the PID file
signals.py           which signals are acted upon
fork.py              forks, and ends with the main process
worker_context.py    what a worker gets from the main process
control_channel.py   messages between the main process and a worker
c_socket.py          the C module of `socket`
fd_passing.py        file descriptors over a Unix socket
exit_status.py       how child processes have ended
"""
