"""Servers under test: how each is started, awaited, checked and stopped.

- `registry`: the servers of most comparisons: command, package and version of each.
- `running`: a running server: started on its core, awaited, checked, stopped.
- `application`: the WSGI applications that servers are measured with, and the expected answers.
- `material`: the published files of `published/`, copied to a temporary folder.
- `five_pages`: the pages of the Uniserve study, as files and as an application.
- `projects`: the projects whose files are saved while a server reloads.
- `peers`: installs the servers of comparisons, which `peers.txt` names.
- `nginx`, `apache`: common parts of the configurations of these.
- `baseline/`: the baseline of every comparison, a bare epoll loop in C.
- `proxies/`: servers behind a proxy.
- `lists/`: the servers of each study.
"""
