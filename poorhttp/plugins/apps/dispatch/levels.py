"""Levels of log messages: the numbers of syslog (RFC 5424 section 6.2.1); 0 is the most severe."""

from __future__ import annotations

LOG_EMERG = 0
LOG_ALERT = 1
LOG_CRIT = 2
LOG_ERR = 3
LOG_WARNING = 4
LOG_NOTICE = 5
LOG_INFO = 6
LOG_DEBUG = 7
LOG_NOERRNO = 8

names: dict[int, str] = {
    LOG_EMERG: "emergency",
    LOG_ALERT: "alert",
    LOG_CRIT: "critical",
    LOG_ERR: "error",
    LOG_WARNING: "warning",
    LOG_NOTICE: "notice",
    LOG_INFO: "info",
    LOG_DEBUG: "debug",
    LOG_NOERRNO: "message",
}
