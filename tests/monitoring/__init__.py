"""Monitoring: metrics in all formats, and what operators are told to do with them.

test_figures.py          Figures: exact over reloads, upgrades and kills; what each counts
test_refusals.py         What the server itself refuses; connections that wait to be accepted
test_statsd.py           Metrics sent to StatsD: lines, changes, a real receiver
test_opentelemetry.py    Metrics and traces sent by OpenTelemetry to a real receiver
test_prometheus.py       Metrics as text; rules with Prometheus' own tools, the dashboard's queries
test_runbooks.py         Runbooks of docs/guides: servers in trouble, and what shows it
test_inspection.py       Stacks, profiles and memory of live workers, whatever holds them up
test_admin_requests.py   Requests at the address `admin`: who may send them, protocol cases
test_commands.py         Commands of operators, by HTTP and by `poorhttp ctl`
test_status_page.py      The status page in a real browser, and its events
test_history.py          The last hour in minutes, quantiles, rates, notices, and `ctl advise`
test_top.py              `poorhttp top` in a real terminal
"""
