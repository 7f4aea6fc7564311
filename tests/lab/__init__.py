"""The load lab, loadtests/: its clients, servers, reports and studies.

accepting.py           A made-up server, whose connections are served in threads of their own
conftest.py            A command of the lab in the process of the test
refused_requests.py    Writes the lab's malformed requests from the protocol cases
test_advise.py         Advice: the search on made-up servers, files of requests, a real run
test_clients.py        The clients of the load lab: requests, counts and reports
test_command.py        A run of a study that is interrupted, resumed, or has no room for its results
test_commits.py        Figures of two commits: instructions by callgrind, and memory
test_cpu_affinity.py   The CPUs that the lab may keep busy: quotas of cgroups, and here
test_given.py          Servers that the command line names: by a command, or by a URL
test_http2_line.py     Clients of HTTP/2 of a steady load: lost streams, and those to be sent again
test_imports.py        What the lab imports: of the server what its documents promise
test_installation.py   The lab's wheel in a fresh environment; the lab in a clone that is not built
test_network.py        Delay, rate and loss of the load lab's network links, on a simulated clock
test_repeatedly.py     Repeated sampling in the background (`loadtests/measure/repeatedly.py`)
test_replay.py         Requests at a rate, or of an access log at their times, and the report
test_reporting.py      Layout of reports: numbers, figures, the page, Markdown and CSV
test_servers.py        The servers of the studies: names, colours and pages, start and stop of each
test_soak.py           The soak: a short run, and detection of every fault
test_variance.py       Analysis of variance: against tables, textbook examples and the study of 2001
test_verdict.py        Verdicts on two servers: error rates by simulation, stored runs, a real run
studies/               The studies of the load lab: calculations, reports, and a small run of each
"""
