"""The studies of the load lab: calculations, reports, small runs; the list of the files.

small_run.py        a study in its tiny form, and the tables of its report
test_auto.py        `auto`: a small run, its report
test_balance.py     `balance`: the simulation of many workers, a small run
test_bench.py       `bench`: parsing, medians and ratios, reports, a small run
test_cluster.py     `cluster`: stored rounds, and reports of lost requests
test_content.py     `content`: its client, servers, tables, a small run of each kind
test_deadconn.py    `deadconn`: its report, its servers' limits, a small run
test_develop.py     `develop`: clients, verdicts, tables, a small run
test_influence.py   `influence`: the client's effect: the sentence, holes, a small run
test_loops.py       `loops`: requests, outliers, a small run
test_memory.py      `memory`: ps, slopes, leaks, memory by line, servers that fail
test_operate.py     `operate`: the steady load finds every fault; the experiments
test_ordered.py     `ordered`: its mathematics, faults, a small run
test_overload.py    `overload`: what is counted, a small run, its report
test_parallel.py    `parallel`: overload, a small run, its report
test_power.py       `power`: phases and regression lines, a small run
test_proxies.py     `proxies`: bursts, setups, tables, a small run of each kind
test_reports.py     whole reports of made-up results, which are in tests/lab/recorded/reports
test_resources.py   `resources`: counters of the kernel, a small run
test_serial.py      `serial`: a small run, its report
test_tables.py      sentences and tables that compare servers, and their noise
test_webbench.py    `webbench`: its files, counts, settings, a small run
test_wire.py        `websocket`, `tls`, `http2`, `uploads`, `compress`: a small run of each
"""
