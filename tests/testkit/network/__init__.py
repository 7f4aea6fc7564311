"""Several hosts on one machine: network namespaces at a switch whose cables may be slow.

- `hosts`: the network and its hosts.
- `wire`: a cable with delay, loss and rate.
- `port`: free ports of this machine.
"""
