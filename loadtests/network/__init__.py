"""Several hosts on one machine: network namespaces at a switch whose cables may be slow.

- `hosts`: network namespaces with addresses of their own, at a switch.
- `port`: free ports of this machine.
- `wire`: a program that carries frames with delay, loss and a rate, in place of `tc netem`.
"""
