"""Hooks: functions of the application that are called for events (docs/guides/hooks.md).

arguments.py    the arguments of the functions: WorkerInfo, ServerInfo, ReloadInfo
functions.py    finds the functions that options name, and calls them
"""
