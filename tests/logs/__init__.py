"""Access log, error log, slow log: formats, files, syslog, systemd's journal."""
