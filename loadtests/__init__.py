"""The load lab: compares our modes with other servers, with the same client on the same core.

``python -m loadtests advise TARGET`` finds a configuration for an application; ``serial``,
``parallel`` and eight more are the tests of the old studies (``studies``), ``compare`` runs all.
``bench`` compares servers, ``show`` runs the experiments behind the promised figures, ``endure``
those with adverse clients, ``operate`` those in which servers are reloaded, killed and
stopped, ``content`` compares servers of files and programs, ``proxies`` and ``gateways`` put them
behind others, ``develop`` saves files; ``report`` turns raw results into pages, tables and plots.

A study plans steps; the engine takes them one by one: each starts a server, lets clients ask it,
reads what it used and appends records; the report is made from these.

- `__main__`: the command line.
- `poorlab/`: the command of the installed lab; `setup.py` makes its wheel.
- `studies/`: what is measured, a folder each, and the engine that takes the steps.
- `advise/`: search for the best configuration of an application.
- `replay/`: requests at a rate, or of an access log at their recorded times, to any server.
- `verdict/`: whether one of two servers is faster, with its interval: `compare A B`.
- `commits/`: figures of our server that are compared between two commits.
- `soak/`: mixed load with every fault at once, for any time.
- `reporting/`: reports as pages, Markdown, CSV and figures.
- `stats/`: medians and spreads of results, tests and distributions.
- `store`: raw results, one JSON object per line, in `results/`, compressed there.
- `servers/`: the servers under test: how each is started, awaited, checked and stopped.
- `clients/`: load generators and other clients.
- `measure/`: CPU time, memory and traffic of processes; cores, networks, histograms.
- `network/`: hosts as network namespaces, slow links between them, free ports.
- `python_path`: where the lab finds the server that it measures: beside itself, or installed.
- `programs`: installed programs: path, version, package.
- `apps/`: the applications that servers are measured with.
- `arguments`: the argument parser; selection of servers or studies by the beginnings of names.
- `sections`: lists in INI files: of servers, and of pages of docs.
- `errors`: errors with messages for the person who runs the lab.
"""
