"""Tests of hooks: functions of the application that are called for events of the server.

collector.py           A collector of what agents and SDKs send over HTTP
events.py              Servers whose hooks write down what they get
test_hook_options.py   Where hooks are named, and what is said about those that cannot be called
test_hooks.py          Which hook is called when, where, in which order, with what
test_misbehaving.py    Functions that fail, exit, are killed or hang
test_worker_hooks.py   Hooks of a plug-in in the main process and in workers, and their errors
test_recipes.py        prometheus_client, sentry_sdk and OpenTelemetry's SDK as the guide uses them
test_agents.py         Agents that wrap the command, as elasticapm-run does
"""
