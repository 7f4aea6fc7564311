"""Access log, error log, slow log: formats, files, syslog, systemd's journal.

log_files.py                 A server whose access log is a file; rotation
test_access_log.py           The access log: its formats and fields, in every mode
test_access_log_sent.py      Sizes and states in it: bytes taken by the kernel, complete or not
test_log_config.py           `log_config`: Python's `logging` takes over both logs
test_hostile_bytes.py        Bytes of clients that try to forge lines or values, in every format
test_log_atoms.py            Directives of the access log; sampling and exclusion by path
test_request_id.py           `request_id`: in the environ, in responses, on every line of a request
test_log_files.py            Both logs as files and pipes: lines, rotation under load, write errors
test_log_sinks.py            Sinks of logs that a plug-in adds, and what goes wrong with them
test_slow_log.py             `slow_request`: log lines with the phases of a slow request
test_wsgi_errors.py          `wsgi.errors`: cannot be closed, and each request ends its line
test_syslog_and_journal.py   Logs to syslog and systemd's journal, received by sockets of the tests
"""
