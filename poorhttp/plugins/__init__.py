"""The server's own plug-ins: monitoring, development server, commands, applications of files.

monitor/       the address `admin`: health checks, metrics, status page; `ctl` and `top`
dev/           the development server: reload, error pages, terminal, profiles
discovery/     finds the application in a folder
setup/         the commands `init`, `migrate`, `completion` and `man`
apps/          dispatch tables, template pages and CGI programs
log_config/    Python's `logging` in place of both logs
websocket/     connections that applications get: WebSocket
asgi/          mode asyncio: ASGI applications
paste/         files of PasteDeploy
systemd/       notifications of systemd, and its watchdog
autoscaling/   the number of threads follows the load (`threads = auto`)
compression/   codings of responses
http2/         which clients may speak HTTP/2
preload/       workers are forked from a process that has loaded the application
tls/           addresses that begin with `https`, and their certificates
testing/       fixtures for tests of applications
native.py      what the extension module has for several of them
aliases/       modules under the names of earlier releases
"""
