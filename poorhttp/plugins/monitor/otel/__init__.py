"""Sends a trace of each request by OpenTelemetry (the option `otel`).

sdk.py            its SDK, set up as the environment says
tracing.py        a span for each request
worker_hooks.py   what `otel` does in workers
"""
