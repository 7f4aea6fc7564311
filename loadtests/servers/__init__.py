"""Servers under test: how each is started, awaited, checked and stopped.

- `registry/`: every server: command, package and version of each; those that each study takes.
- `configurations/`: files of the servers' own settings.
- `running`: a running server: started on its core, awaited, checked, stopped.
- `poorhttp_server`: our server alone, awaited by its ready line, for soaks and clusters.
- `application`: the WSGI applications that servers are measured with, and the expected answers.
- `fixtures`: the published files of `published/`, copied to a temporary folder.
- `certificate`: certificates for localhost.
- `pages`: the pages of the studies, as files and as applications.
- `projects`: the projects of `developed/`, whose files are saved while a server reloads.
- `peers`: installs the servers of comparisons, which `peers.txt` names.
- `proxies`: servers behind a proxy: started together, sampled separately.
- `baseline/floor.c`: the baseline of every comparison, a bare epoll loop.
"""
