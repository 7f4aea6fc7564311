"""Notifications to systemd (sd_notify(3)): start, reload, stop, and the watchdog.

notifier.py       sends the messages of sd_notify(3)
component.py      in the main process: notifies, and pings workers for the watchdog
worker_hooks.py   the same without a main process, but for the watchdog
"""
