"""systemd is told when the server is ready, and as long as workers answer.

notifier.py       sends the messages of sd_notify(3)
component.py      in the main process: notifies, and pings workers for the watchdog
worker_hooks.py   the same without a main process, but for the watchdog
"""
