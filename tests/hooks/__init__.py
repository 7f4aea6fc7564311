"""Tests of hooks: functions of the application that are called for events of the server.

events.py                   Servers whose hooks write down what they get
test_hook_options.py        Where hooks are named, and what `check` says about them
test_hooks.py               Which hook is called when, where, in which order, with what
test_misbehaving.py         Functions that fail, exit, are killed or hang
test_worker_hooks.py        Hooks of a plug-in in the main process and in workers, and their errors
test_prometheus_client.py   prometheus_client in several processes
test_agents.py              Agents that wrap the command, as elasticapm-run does
test_sentry.py              sentry_sdk, of which events of a worker that ends arrive too
test_opentelemetry_sdk.py   A provider of OpenTelemetry that is made in each worker
"""
