"""Programs of the machine of a page that replace those that cannot run there.

The scripts in `bin` are on the PATH; each starts a module of this package, but for `sudo`.

systemctl.py   systemctl and journalctl: asks the manager
manager.py     The manager of services that systemctl asks, a process of its own
sockets.py     Sockets of socket units
units.py       Unit files with their drop-ins
packages.py    apt and apt-get: checks that packages are installed
pip.py         pip and `python3 -m venv`: environments that have the packages of the tests
certbot.py     certbot: certificates of an authority that the machine trusts
images.py      docker, podman and kubectl: checks that files exist that they are given
"""
