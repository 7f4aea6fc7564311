"""Several hosts on one machine: network namespaces at a switch whose cables may be slow.

hosts.py   Several hosts on one machine: network namespaces with addresses of their own, at a switch
port.py    Free ports of this machine
wire.py    A network cable with delay, loss and rate: `python wire.py ONE OTHER SECONDS SHARE RATE`
"""
