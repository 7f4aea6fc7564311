"""The main process: workers, reloads, upgrades, signals, sockets, health.

reloads.py                    A reload, and what the main process says at its end
service_manager.py            What systemd has for each service: a socket on which it is notified
stops.py                      A stop: the closed port, and the end of the server
test_admin.py                 The admin address: health checks and metrics
test_components.py            Components of plug-ins: faults, reloads, what an upgrade hands on
test_drain.py                 Workers end while others serve on the same socket: no request is lost
test_handshakes_at_stop.py    Connections being established when a server stops
test_health_paths.py          Health paths: answered by the server itself, also while it drains
test_idle.py                  Nothing wakes up while nothing happens, in all modes
test_listening_sockets.py     Listening sockets: opening, keeping over a reload, handing over
test_main_process_killed.py   `kill -9` of the main process: nothing outlives `graceful_timeout`
test_pidfile.py               Written atomically, refused if its process is alive, replaced if not
test_preload.py               The process that has loaded the application forks workers (`preload`)
test_recycling.py             Replacement of workers by `max_requests`, `max_rss` and the like
test_refork.py                Workers forked from one that has served (`refork_after`)
test_reload.py                Reload by HUP: a new version replaces the old one
test_removed_package.py       The server's own files are removed or replaced while it serves
test_services.py              Several services under one main process
test_shared_imports.py        Modules that workers share, because the main process imports them
test_stop_signals.py          Signals to stop at any moment: while it starts, loads, serves, ends
test_supervisor.py            Numbers of workers, their starts, failures and restarts
test_systemd.py               Socket activation, notifications and the watchdog of systemd
test_tls_renewal.py           Certificates renewed while the server runs, their end, their keys
test_binary_upgrade.py        Binary upgrade (USR2): a new main process takes over the sockets
"""
