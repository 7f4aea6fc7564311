"""The modes, their processes and threads, and applications that fail in them.

test_application_edge_cases.py   Broken exceptions, pipelined answers, forks, clients that leave
test_application_faults.py       Faults of applications: the client's response and the log
test_asgi.py                     Mode asyncio: ASGI applications, and WSGI in threads
test_asgi_life.py                Mode asyncio: reload, upgrade, stop and a killed worker
test_asgi_peers.py               What other ASGI servers test: scripts of applications, verdicts
test_asgi_websocket.py           WebSockets of ASGI applications
test_autoscaling.py              Threads and workers follow the load
test_event_streams.py            Responses that stream, and handlers that ask for their client
test_forked_children.py          What children and programs of applications inherit, or not
test_frameworks.py               Flask and Django applications, served in every mode
test_interpreter_exit.py         The end of a process: Python's whole shutdown runs
test_library.py                  poorhttp as a library: a server within a program
test_modes.py                    Workers, signals, many clients, slow clients, clock jumps
test_patched_libraries.py        Applications that replace threads and locks, as gevent does
test_process_titles.py           Titles of processes in `ps`, with a request of each worker
test_replaced_handlers.py        Signal handlers of the application in the place of the server's
test_saturation.py               Log messages while all threads are busy, and the watchdog
test_protocol_upgrade.py         Protocol upgrade: which requests may have it, and how it ends
test_threads.py                  Their heaps, computing ones, connections that wait for them
test_websocket_libraries.py      flask-sock, Flask-SocketIO, gevent-websocket, with real clients
"""
