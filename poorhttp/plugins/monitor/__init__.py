"""Monitoring and control of a running server: status page, metrics, traces, `ctl`, `top`.

commands.py       the commands `poorhttp ctl` and `poorhttp top`
options.py        the options of metrics and traces
worker_hooks.py   what the options do in workers
component.py      what it does in the main process
admin/            the address `admin`: health checks, status, commands
metrics/          metrics for Prometheus, StatsD and OpenTelemetry
answers.py        which workers answer pings in time
accept_queue.py   connections that wait in the kernel to be accepted
unread.py         connections in which requests wait to be read
log_level.py      the level of the error log, which `ctl log-level` sets
saturation.py     log lines when all threads of a worker are busy
pings.py          pings the workers while somebody asks
derived/          computed from figures and documents: quantiles, rates, the last hour, notices
page/             the status page and its events
ctl/              `poorhttp ctl` and `poorhttp top`, clients of the address
inspection/       looks into live workers: stacks, profile, memory
otel/             traces of OpenTelemetry
"""
