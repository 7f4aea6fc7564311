"""The command `poorhttp init`: writes the files that a deployment of an application needs.

command.py      the command: what is written, and what is said
arguments.py    its command line and `--help`
plan.py         what the files are about: names, folders, the target, the mode
project.py      which libraries a project imports, and the packages that it needs
mode.py         the mode that suits what a project imports
ini_file.py     poorhttp.ini, and options in other ini files
quoting.py      values in the grammar of each file, or refused
templates.py    reads and changes the files of `conf/` and `proxy/`
systemd.py      units of systemd
proxies.py      configurations of nginx, Caddy, lighttpd, HAProxy and Apache
containers.py   the container file, and manifests of Kubernetes
"""
